# SPDX-License-Identifier: Apache-2.0
"""Rebuild a fusion with the answers: constants for 0 and 1, one symbol an extent.

Afterwards every axis is Iteration or Broadcast, extents that must be equal are the
same scalar, and no reduction runs over an axis of extent 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.concretize.extents import Extents
from nfuser.compiler.concretize.resizes import (
    concrete,
    decomposed,
    summed,
    without_trivial_resize,
)
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Loop,
    Matmul,
    Pad,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import COPY, POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import TensorView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.concretize.answers import Answers, Questions
    from nfuser.compiler.domains.reshape import ReshapePattern
    from nfuser.compiler.ir.scalars.scalar import Scalar


@node
class Concrete:
    """A fusion of which everything is settled that its form depends on."""

    fusion: Fusion
    answers: Answers


def concretize(fusion: Fusion, asked: Questions, answers: Answers) -> Concrete:
    """Return ``fusion`` rebuilt for all calls that give ``answers``."""
    exprs = (fusion.every[number] for number in asked.reshapes)
    patterns = dict(zip(exprs, answers.patterns, strict=True))
    extents = _unified(fusion, patterns, Extents(asked, answers))
    known = 0
    while len(extents.equal_sizes) > known:  # then more extents may be
        known = len(extents.equal_sizes)
        again = Extents(asked, answers, extents.equal_sizes)
        extents = _unified(fusion, patterns, again)
    builder = _Rebuild(extents, patterns)
    for expr in fusion.exprs:
        builder.add(expr)
    outputs = [builder.output(t) for t in fusion.outputs]
    return Concrete(Fusion(fusion.name, builder.exprs, outputs), answers)


def _unified(
    fusion: Fusion, patterns: Mapping[Expr, ReshapePattern], extents: Extents
) -> Extents:
    """Return ``extents`` with those made one that expressions require to be equal."""
    for expr in fusion.every:
        pattern = patterns.get(expr) if isinstance(expr, Reshape) else None
        extents.unify(expr, pattern)
    return extents


class _Rebuild:
    def __init__(
        self, extents: Extents, patterns: Mapping[Expr, ReshapePattern]
    ) -> None:
        self.exprs: list[Expr] = []
        self._arguments: set[TensorView] = set()
        self.new: dict[TensorView, TensorView] = {}
        self._extents = extents
        self._patterns = patterns

    def add(self, old: Expr) -> None:
        """Append the concrete form of ``old``."""
        if isinstance(old, Argument):
            self._arguments.add(old.result)
        expr = with_sources(old, [self.new[t] for t in sources(old)])
        match expr:
            case Reshape():
                shape = self._extents.settled(expr.result.shape)
                made, replaced = decomposed(expr, self._patterns[old], shape)
            case SumTo():
                made, replaced = summed(expr, self._extents.settled(expr.result.shape))
            case Loop():
                made, replaced = self._loop(expr)
            case Called():
                settled = self._extents.settled
                replaced = tuple(concrete(settled(t.shape), t) for t in expr.results)
                made = [replace(expr, results=replaced)]
            case (
                Slice() | Pad() | Concatenate() | Remap() | Take() | Assign() | Expand()
            ):
                made, replaced = without_trivial_resize(self._shaped(expr))
            case _:
                made, replaced = _without_trivial_reduction(self._shaped(expr))
        self.exprs.extend(made)
        self.new.update(zip(results(old), replaced, strict=True))

    def _loop(self, expr: Loop) -> tuple[list[Expr], tuple[TensorView, ...]]:
        """Return ``expr`` with the body rebuilt by itself, of the same answers."""
        inner = _Rebuild(self._extents, self._patterns)
        for one in expr.body.exprs:
            inner.add(one)
        outputs = [inner.output(t) for t in expr.body.outputs]
        settled = self._extents.settled
        made = tuple(concrete(settled(t.shape), t) for t in expr.results)
        trips = expr.trips if expr.trips is None else settled([expr.trips])[0]
        body = Fusion(expr.body.name, inner.exprs, outputs)
        return [replace(expr, body=body, results=made, trips=trips)], made

    def output(self, old: TensorView) -> TensorView:
        """Return what stands for an output: never an argument, which lies elsewhere."""
        new = self.new[old]
        if old not in self._arguments and new in self._made_arguments:
            copied = replace(new, source=old.source)
            self.exprs.append(Pointwise(COPY, (new,), copied))
            return copied
        return new

    @property
    def _made_arguments(self) -> set[TensorView]:
        return {self.new[t] for t in self._arguments}

    def _shaped(self, expr: Expr) -> Expr:
        shape = self._shape(expr)
        made = tuple(concrete(shape, t) for t in results(expr))
        settled = self._extents.settled
        match expr:
            case Reduce():
                return replace(expr, results=made)
            case FromScalar(scalar):
                return replace(expr, scalar=settled([scalar])[0], result=made[0])
            case Slice(_, _, starts, _):
                return replace(expr, starts=tuple(settled(starts)), result=made[0])
            case Assign(_, _, _, starts):
                return replace(expr, starts=tuple(settled(starts)), result=made[0])
            case Pad(_, _, _, lefts):
                return replace(expr, lefts=tuple(settled(lefts)), result=made[0])
            case Remap(_, result, index):
                pairs = enumerate(zip(result.shape, shape, strict=True))
                places: dict[Scalar, Scalar] = {
                    scalar_symbols.place(k, a): scalar_symbols.place(k, b)
                    for k, (a, b) in pairs
                }
                found = tuple(self._extents.settled(index, places))
                return replace(expr, index=found, result=made[0])
            case _:
                return replace(expr, result=made[0])

    def _shape(self, expr: Expr) -> list[Scalar]:
        match expr:
            case Pointwise(_, operands):
                return _stretched([t.shape for t in operands])
            case Matmul(lhs, rhs):
                rows, columns = lhs.shape[-2:-1], rhs.shape[-1:] * (rhs.ndim > 1)
                return [*_stretched([lhs.shape[:-2], rhs.shape[:-2]]), *rows, *columns]
            case ExpandDims(source, result, axes):
                rest = iter(source.shape)
                one = sc.const(1)
                return [one if k in axes else next(rest) for k in range(result.ndim)]
            case Squeeze(source, _, axes):
                return [x for k, x in enumerate(source.shape) if k not in axes]
            case Permute(source, _, order):
                return [source.shape[k] for k in order]
            case Scan(_, source) | Scatter(_, source) | Sort(source) | Assign(source):
                return list(source.shape)
            case Reduce(_, source, _, axes):
                return [x for k, x in enumerate(source.shape) if k not in axes]
            case _:
                return self._extents.settled(results(expr)[0].shape)


def _stretched(shapes: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """Return the shape in which others meet, where equal extents are the same."""
    found: list[Scalar] = []
    for back in range(max(map(len, shapes)), 0, -1):
        own = (shape[-back] for shape in shapes if len(shape) >= back)
        real = [x for x in own if x is not sc.const(1)]
        found.append(real[0] if real else sc.const(1))
    return found


def _without_trivial_reduction(
    expr: Expr,
) -> tuple[list[Expr], tuple[TensorView, ...]]:
    """Replace what folds axes of extent 1; return what stands for the results."""
    if isinstance(expr, Scan) and expr.source.axes[expr.axis].is_broadcast:
        return [], (expr.source,)
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
        case ReduceOp.SUM if source.dtype.is_float or source.dtype.is_complex:
            zero = TensorView((), source.dtype)  # to which -0.0 adds up as 0.0
            add = Pointwise(POINT_OPS["add"], (squeezed, zero), expr.result)
            return [squeeze, Constant(0.0, zero), add], expr.results
        case _:
            return [squeeze], (squeezed,)
