# SPDX-License-Identifier: Apache-2.0
"""Rebuild a fusion with the answers: constants for 0 and 1, one symbol an extent.

Afterwards every axis is Iteration or Broadcast, extents that must be equal are the
same scalar, and no reduction runs over an axis of extent 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.concretize.answers import MANY, Answers, Questions
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Slice,
    Squeeze,
    results,
    sources,
)
from nfuser.ir.fusion import Fusion, with_sources
from nfuser.ir.point_op import POINT_OPS
from nfuser.ir.tensor import IterDomain, IterType, TensorView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.ir.scalar import Scalar


@node
class Concrete:
    """A fusion of which everything is settled that its form depends on."""

    fusion: Fusion
    answers: Answers


def concretize(fusion: Fusion, asked: Questions, answers: Answers) -> Concrete:
    """Return ``fusion`` rebuilt for all calls that give ``answers``."""
    extents = _Extents(asked, answers)
    for expr in fusion.exprs:
        extents.unify(expr)
    builder = _Rebuild(extents)
    for expr in fusion.exprs:
        builder.add(expr)
    outputs = [builder.new[t] for t in fusion.outputs]
    return Concrete(Fusion(fusion.name, builder.exprs, outputs), answers)


class _Extents:
    """Extents after the answers, with those that must be equal made one."""

    def __init__(self, asked: Questions, answers: Answers) -> None:
        self._facts: dict[Scalar, Scalar] = {}
        for extent, size in zip(asked.extents, answers.classes, strict=True):
            is_one = sc.equal(extent, 1)
            self._facts[is_one] = sc.const(int(size == 1))
            if size < MANY:
                self._facts[extent] = sc.const(size)
        self._parent: dict[Scalar, Scalar] = {}

    def settled(self, scalars: Iterable[Scalar]) -> list[Scalar]:
        """Return ``scalars`` in terms of representatives and constants."""
        known = self._facts | {x: self._find(x) for x in self._parent}
        first = scalar_walk.substitute(scalars, self._facts)
        return [self._find(x) for x in scalar_walk.substitute(first, known)]

    def _find(self, x: Scalar) -> Scalar:
        while (parent := self._parent.get(x, x)) is not x:
            x = parent
        return x

    def unify(self, expr: Expr) -> None:
        """Note that operands which stretch together have equal extents."""
        if not isinstance(expr, (Pointwise, Expand)):
            return
        operands = (
            *sources(expr),
            *([expr.result] if isinstance(expr, Expand) else []),
        )
        rank = expr.result.ndim
        for k in range(rank):
            own = [
                t.axes[k - rank + t.ndim].extent
                for t in operands
                if t.ndim > rank - 1 - k
            ]
            real = [x for x in self.settled(own) if x is not sc.const(1)]
            real.sort(key=lambda x: x.key)
            for other in real[1:]:
                if other is not real[0]:
                    self._parent[other] = real[0]


class _Rebuild:
    def __init__(self, extents: _Extents) -> None:
        self.exprs: list[Expr] = []
        self.new: dict[TensorView, TensorView] = {}
        self._extents = extents

    def add(self, old: Expr) -> None:
        """Append the concrete form of ``old``."""
        expr = with_sources(old, [self.new[t] for t in sources(old)])
        made, replacements = _without_trivial_reduction(self._shaped(expr))
        self.exprs.extend(made)
        self.new.update(zip(results(old), replacements, strict=True))

    def _shaped(self, expr: Expr) -> Expr:
        shape = self._shape(expr)
        made = tuple(_concrete(shape, t) for t in results(expr))
        match expr:
            case Reduce():
                return replace(expr, results=made)
            case FromScalar(scalar):
                settled = self._extents.settled([scalar])[0]
                return replace(expr, scalar=settled, result=made[0])
            case Slice(_, _, starts, _):
                settled = tuple(self._extents.settled(starts))
                return replace(expr, starts=settled, result=made[0])
            case _:
                return replace(expr, result=made[0])

    def _shape(self, expr: Expr) -> list[Scalar]:
        match expr:
            case Pointwise(_, operands, result):
                return [
                    _stretched(operands, k, result.ndim) for k in range(result.ndim)
                ]
            case ExpandDims(source, result, axes):
                rest = iter(source.shape)
                one = sc.const(1)
                return [one if k in axes else next(rest) for k in range(result.ndim)]
            case Squeeze(source, _, axes):
                return [x for k, x in enumerate(source.shape) if k not in axes]
            case Permute(source, _, order):
                return [source.shape[k] for k in order]
            case Reduce(_, source, _, axes):
                return [x for k, x in enumerate(source.shape) if k not in axes]
            case Argument() | Constant() | FromScalar() | Iota() | Expand() | Slice():
                return self._extents.settled(results(expr)[0].shape)


def _stretched(operands: tuple[TensorView, ...], k: int, rank: int) -> Scalar:
    own = [t.axes[k - rank + t.ndim].extent for t in operands if t.ndim > rank - 1 - k]
    real = [x for x in own if x is not sc.const(1)]
    return real[0] if real else sc.const(1)


def _concrete(shape: list[Scalar], like: TensorView) -> TensorView:
    one = sc.const(1)
    axes = tuple(
        IterDomain(x, IterType.BROADCAST if x is one else IterType.ITERATION)
        for x in shape
    )
    return TensorView(axes, like.dtype, like.source)


def _without_trivial_reduction(
    expr: Expr,
) -> tuple[list[Expr], tuple[TensorView, ...]]:
    """Replace reductions over axes of extent 1; return what stands for the results."""
    if not isinstance(expr, Reduce):
        return [expr], results(expr)
    source = expr.source
    trivial = tuple(k for k in expr.axes if source.axes[k].is_broadcast)
    if not trivial:
        return [expr], expr.results
    kept = [k for k in range(source.ndim) if k not in trivial]
    shape = tuple(source.axes[k] for k in kept)
    squeezed = TensorView(shape, source.dtype, expr.result.source)
    squeeze = Squeeze(source, squeezed, trivial)
    if len(trivial) < len(expr.axes):
        axes = tuple(kept.index(k) for k in expr.axes if k not in trivial)
        return [squeeze, replace(expr, source=squeezed, axes=axes)], expr.results
    match expr.op:
        case ReduceOp.ARGMAX | ReduceOp.ARGMIN:
            zero = TensorView((), expr.result.dtype)
            return [Constant(0, zero), Expand(zero, expr.result)], expr.results
        case ReduceOp.MOMENTS:
            m2 = expr.results[1]
            centred = replace(m2)
            subtract = Pointwise(POINT_OPS["subtract"], (squeezed, squeezed), centred)
            square = Pointwise(POINT_OPS["multiply"], (centred, centred), m2)
            return [squeeze, subtract, square], (squeezed, m2)
        case _:
            return [squeeze], (squeezed,)
