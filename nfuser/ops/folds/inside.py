# SPDX-License-Identifier: Apache-2.0
"""Elements that are there in all turns of a loop, and of the loops around it.

Nobody has to look for them: what is read is read as it is, and what is written cannot
fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.dtypes import DType
from nfuser.ir import scalar as sc
from nfuser.ir.expr import Constant, Expr, FromScalar, Loop, Pointwise, Scatter, Take
from nfuser.ir.fusion import Fusion
from nfuser.ir.point_op import CAST, POINT_OPS, is_copy
from nfuser.ops.folds.counts import ends_of
from nfuser.ops.shapes.scatter import indices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.ops.builder import Builder

Range: TypeAlias = "tuple[Scalar, Scalar]"  # the least and the greatest
_ADD, _SUBTRACT, _MULTIPLY = (POINT_OPS[n] for n in ("add", "subtract", "multiply"))


def writing_inside(b: Builder, loop: Loop) -> Loop:
    """Let no scatter look for places that are there in each turn, by its number."""

    def change(expr: Expr, ranges: _Ranges) -> Expr:
        is_open = isinstance(expr, Scatter) and not (expr.inside or expr.complaint)
        if not is_open or not isinstance(expr, Scatter):
            return expr
        extents = expr.source.shape[: expr.lead]
        indices = indices_of(ranges.definition, expr.index, extents)
        if indices is None:
            return expr
        found = [ranges.of(t) for t in indices]
        for known, extent in zip(found, extents, strict=True):
            if known is None or not _is_there(b, known, extent, from_end=True):
                return expr
        return replace(expr, inside=True)

    return _Inside(change).loop(loop, {})


def reading_inside(b: Builder, loop: Loop) -> Loop:
    """Let kernels look for no index from the end where turns count inside an axis."""

    def change(expr: Expr, ranges: _Ranges) -> Expr:
        if not isinstance(expr, Take) or expr.inside or expr.along:
            return expr
        known = ranges.of(expr.index)
        if known is None or not _is_there(b, known, expr.source.shape[expr.axis]):
            return expr
        return replace(expr, inside=True)

    return _Inside(change).loop(loop, {})


def _is_there(
    b: Builder, known: Range, extent: Scalar, *, from_end: bool = False
) -> bool:
    """Tell whether all numbers from one to another name elements in all calls."""
    low, high = known
    least = low + extent if from_end else low
    wanted = sc.less(-1, least), sc.less(high, extent)
    return all(b.today(c) is not None and b.ask(c, usual=1) for c in wanted)


class _Ranges:
    """What the integers of a body lie between; ``given`` is known of its arguments."""

    def __init__(
        self, definition: Mapping[TensorView, Expr], given: Mapping[TensorView, Range]
    ) -> None:
        self.definition = definition
        self._given = given

    def of(self, tensor: TensorView) -> Range | None:
        """Return the least and the greatest of ``tensor`` in all turns, if known."""
        if tensor in self._given:
            return self._given[tensor]
        if tensor.ndim or tensor.dtype is not DType.I64:
            return None
        match self.definition.get(tensor):
            case Constant(int() as number):
                return sc.const(number), sc.const(number)
            case FromScalar(scalar):
                return scalar, scalar
            case Pointwise(op, operands) if op is CAST or is_copy(op):
                return self.of(operands[0])
            case Pointwise(op, (left, right)) if op in (_ADD, _SUBTRACT, _MULTIPLY):
                one, other = self.of(left), self.of(right)
                if one is None or other is None:
                    return None
                if op is _ADD:
                    return one[0] + other[0], one[1] + other[1]
                if op is _SUBTRACT:
                    return one[0] - other[1], one[1] - other[0]
                return _product(one, other) or _product(other, one)
            case _:
                return None


def _product(known: Range, by: Range) -> Range | None:
    """Return the range of a product with a number that is a constant."""
    low, high = by
    if low is not high or not isinstance(low, sc.Const):
        return None
    ends = known[0] * low.value, known[1] * low.value
    return ends if low.value >= 0 else (ends[1], ends[0])


class _Inside:
    """Changes expressions of a loop, and of the loops inside of it."""

    def __init__(self, change: Callable[[Expr, _Ranges], Expr]) -> None:
        self._change = change

    def loop(self, loop: Loop, outside: Mapping[TensorView, Range]) -> Loop:
        """Return ``loop`` changed; ``outside`` is known of its operands."""
        body = loop.body
        given = {
            a.result: outside[loop.operands[a.slot]]
            for a in body.arguments
            if loop.carried <= a.slot < len(loop.operands)
            and loop.operands[a.slot] in outside
        }
        if loop.turn is not None and loop.trips is not None:
            given[loop.turn] = ends_of(loop.trips, (sc.const(0), 1))
        ranges = _Ranges(body.definition, given)
        exprs = [self._changed(expr, ranges) for expr in body.exprs]
        if exprs == list(body.exprs):
            return loop
        return replace(loop, body=Fusion(body.name, exprs, body.outputs))

    def _changed(self, expr: Expr, ranges: _Ranges) -> Expr:
        if not isinstance(expr, Loop):
            return self._change(expr, ranges)
        known = {t: ranges.of(t) for t in expr.operands}
        return self.loop(expr, {t: r for t, r in known.items() if r is not None})
