# SPDX-License-Identifier: Apache-2.0
"""Extents after the answers, with those that must be equal made one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.concretize.answers import MANY, TRIVIAL, Answers, Questions
from nfuser.compiler.ir.expr import (
    Concatenate,
    Expand,
    Loop,
    Matmul,
    Pointwise,
    Reshape,
    SumTo,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const, Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nfuser.compiler.domains.reshape import ReshapePattern
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar


class Extents:
    """What each extent is in terms of constants and one symbol for equal ones.

    ``equal_sizes`` has another for each size that was found to be equal to it before.
    """

    def __init__(
        self,
        asked: Questions,
        answers: Answers,
        equal_sizes: Mapping[Scalar, Scalar] | None = None,
    ) -> None:
        self.equal_sizes = dict(equal_sizes or {})
        self._facts: dict[Scalar, Scalar] = dict(self.equal_sizes)
        self._parent: dict[Scalar, Scalar] = {}
        self._with_facts: dict[Scalar, Scalar] = {}
        self._met: set[tuple[Scalar, ...]] = set()
        for extent, size in zip(asked.extents, answers.classes, strict=True):
            is_one = scalar_functions.equal(extent, 1)
            self._facts[is_one] = sc.const(int(size == 1))
            if size < MANY:
                self._facts[extent] = sc.const(size)
        for one, triple in zip(asked.resized, answers.resized, strict=True):
            if triple == TRIVIAL:
                self._know(one.left, 0)
                self._same(one.extent, one.extent + one.left + one.right)
            elif triple[0] >= 0:
                extent, left, right = triple
                self._know(one.left, left)
                self._know(one.extent, extent)
                whole = one.extent + one.left + one.right
                self._know(whole, extent + left + right)
        if answers.sizes:
            for extent, size in zip(asked.extents, answers.sizes, strict=True):
                self._know(extent, size)

    def _know(self, x: Scalar, number: int) -> None:
        self._with_facts.clear()
        if not isinstance(x, Const):
            self._facts.setdefault(x, sc.const(number))
            self._facts.setdefault(-x, sc.const(-number))

    def _same(self, x: Scalar, y: Scalar) -> None:
        # The simpler one stands for both: the other may be computed of it.
        first, second = sorted(self.settled([x, y]), key=lambda scalar: scalar.key)
        if first is second or {x, y} & {sc.const(0), sc.const(1)}:
            return
        self._parent[second] = first

    def settled(
        self, scalars: Iterable[Scalar], places: Mapping[Scalar, Scalar] | None = None
    ) -> list[Scalar]:
        """Return ``scalars`` in terms of representatives and constants.

        ``places`` says what else is replaced on the way.
        """
        if places:
            first = scalar_walk.substitute(scalars, self._facts | dict(places))
        else:
            first = self._as_known(list(scalars))
        if all(isinstance(x, (Const, Size)) for x in first):
            known = [x if x in self._parent else self._facts.get(x, x) for x in first]
            return [self._find(x) for x in known]
        known = self._facts | {x: self._find(x) for x in self._parent}
        return [self._find(x) for x in scalar_walk.substitute(first, known)]

    def _as_known(self, scalars: list[Scalar]) -> list[Scalar]:
        """Return ``scalars`` with the facts put in; each is gone through once."""
        done = self._with_facts
        if not done:
            done.update(self._facts)
        missing = [x for x in scalars if x not in done]
        if missing:
            done.update(
                zip(missing, scalar_walk.substitute(missing, done), strict=True)
            )
        return [done[x] for x in scalars]

    def _find(self, x: Scalar) -> Scalar:
        while (parent := self._parent.get(x, x)) is not x:
            x = parent
        return x

    def unify(self, expr: Expr, pattern: ReshapePattern | None) -> None:
        """Note which extents ``expr`` requires to be equal."""
        match expr:
            case Pointwise(_, operands, result):
                self._unify_stretched([t.shape for t in operands], result.ndim)
            case Expand(source, result):
                self._unify_stretched([source.shape, result.shape], result.ndim)
            case SumTo(source, result):
                self._unify_stretched([source.shape, result.shape], source.ndim)
            case Matmul(lhs, rhs):
                self._meet([lhs.shape[-1], rhs.shape[max(rhs.ndim - 2, 0)]])
                batches = [t.shape[:-2] for t in (lhs, rhs)]
                self._unify_stretched(batches, max(map(len, batches)))
            case Reshape(source, result) if pattern is not None:
                for old, new in pattern.groups:
                    if len(old) == len(new) == 1:
                        self._meet([source.shape[old[0]], result.shape[new[0]]])
            case Concatenate(parts, result, axis):
                for k in (k for k in range(result.ndim) if k != axis):
                    self._meet([t.shape[k] for t in (*parts, result)])
            case Loop():
                self._unify_carried(expr)
            case _:
                pass

    def _unify_carried(self, loop: Loop) -> None:
        for tensors in loop.pairs:
            for extents in zip(*(t.shape for t in tensors), strict=True):
                self._meet(extents)

    def _unify_stretched(self, shapes: Sequence[Sequence[Scalar]], rank: int) -> None:
        if shapes.count(shapes[0]) == len(shapes):
            return
        for back in range(rank, 0, -1):
            self._meet([shape[-back] for shape in shapes if len(shape) >= back])

    def _meet(self, extents: Iterable[Scalar]) -> None:
        """Give extents one representative; those of 1 stretch, and constants stay."""
        extents = tuple(dict.fromkeys(extents))
        if len(extents) == 1 or extents in self._met:
            return
        self._met.add(extents)
        real = [x for x in self.settled(extents) if not isinstance(x, Const)]
        real.sort(key=lambda x: x.key)
        for other in real[1:]:
            if other is not real[0]:
                self._parent[other] = real[0]
                self._compare(other, real[0])

    def _compare(self, x: Scalar, y: Scalar) -> None:
        """Note that two sizes are equal, if ``x`` and ``y`` differ by these alone.

        Slices that leave out as many places at the ends of two arrays meet.
        """
        terms = {} if isinstance(x, Size) or isinstance(y, Size) else sc.terms_of(x - y)
        if len(terms) != 2 or sorted(terms.values()) != [-1, 1]:
            return
        sizes = [m[0] for m in terms if len(m) == 1 and isinstance(m[0], Size)]
        if len(sizes) == 2:
            first, second = sorted(sizes, key=lambda size: size.key)
            self.equal_sizes.setdefault(second, first)
