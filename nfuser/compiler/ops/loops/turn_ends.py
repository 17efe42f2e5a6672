# SPDX-License-Identifier: Apache-2.0
"""The least and the greatest integer of a body in all turns: both are met in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import CAST, POINT_OPS
from nfuser.compiler.ir.same_value import original
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less, maximum, minimum
from nfuser.compiler.ops.loops.induction import Sums, last_turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.loops.induction import Sum

Ends: TypeAlias = "tuple[Scalar, Scalar]"
_ADD, _SUBTRACT, _MULTIPLY, _NEGATIVE, _REMAINDER = (
    POINT_OPS[n] for n in ("add", "subtract", "multiply", "negative", "remainder")
)
_RISING = {
    POINT_OPS["maximum"]: maximum,
    POINT_OPS["minimum"]: minimum,
}  # of one side, where the other stays as it is


class TurnEnds:
    """Ends of integers in all turns of loops; ``trips`` says how many each counts.

    The counters of loops within each other take all values together, as the number of
    turns is known before. An integer has ends where it is a sum of counters, or rises
    with one: what each end is in some turn, so that nothing is refused wrongly.
    """

    def __init__(
        self, definition: Mapping[TensorView, Expr], trips: Mapping[TensorView, Scalar]
    ) -> None:
        self._definition = definition
        self._trips = trips
        self._ends: dict[TensorView, Ends | None] = {}
        self._sums = Sums(trips.keys(), definition)
        self._counted: dict[TensorView, frozenset[TensorView]] = {}

    def of(self, tensor: TensorView) -> Ends | None:
        """Return the ends of ``tensor``, if they are known.

        Narrower integers may be what is left of wider ones, and have none.
        """
        if tensor.dtype is not DType.I64:
            return None
        if tensor not in self._ends:
            self._ends[tensor] = self._found(tensor)
        return self._ends[tensor]

    def _found(self, tensor: TensorView) -> Ends | None:
        linear = self._sums.of(tensor)
        if linear is not None:
            return self._reached(linear)
        match self._definition.get(original(self._definition, tensor)):
            case Pointwise(op, (operand,)) if op is CAST or op is _NEGATIVE:
                ends = self.of(operand)
                return ends and (ends if op is CAST else (-ends[1], -ends[0]))
            case Pointwise(op, (left, right)):
                return self._of_two(op, left, right)
            case _:
                return None

    def _of_two(self, op: PointOp, left: TensorView, right: TensorView) -> Ends | None:
        by = self._same(right)
        if op is _REMAINDER:
            return self._remainder(left, by)
        if op in (_ADD, _SUBTRACT):
            one, other = self.of(left), self.of(right)
            if one is None or other is None:
                return None
            if self._counters(left) & self._counters(right):
                return None
            low, high = other if op is _ADD else (-other[1], -other[0])
            return one[0] + low, one[1] + high
        if by is None and op in {*_RISING, _MULTIPLY}:
            left, right, by = right, left, self._same(left)
        ends = self.of(left)
        if ends is None:
            return None
        if op is _MULTIPLY and left is right and sc.is_natural(ends[0]):
            return ends[0] * ends[0], ends[1] * ends[1]
        if by is None:
            return None
        if op is _MULTIPLY and isinstance(by, sc.Const):
            low, high = sorted((0, 1), reverse=by.value < 0)
            return ends[low] * by, ends[high] * by
        if op is POINT_OPS["floor_divide"] and isinstance(by, sc.Const):
            return (ends[0] // by, ends[1] // by) if by.value > 0 else None
        rising = _RISING.get(op)
        return rising and (rising(ends[0], by), rising(ends[1], by))

    def _remainder(self, tensor: TensorView, by: Scalar | None) -> Ends | None:
        """Return the ends of a remainder of numbers that follow each other."""
        linear = self._sums.of(tensor)
        if linear is None or not isinstance(by, sc.Const) or by.value <= 0:
            return None
        if any(step not in (sc.const(1), sc.const(-1)) for step in linear[1].values()):
            return None
        low, high = self._reached(linear)
        first, count = low % by, high - low
        is_within = less(first + count, by)
        return first * is_within, minimum(first + count, by - 1)

    def _counters(self, tensor: TensorView) -> frozenset[TensorView]:
        """Return the counters that ``tensor`` is computed of."""
        if tensor not in self._counted:
            expr = self._definition.get(tensor)
            operands = expr.operands if isinstance(expr, Pointwise) else ()
            found = frozenset({tensor} & self._trips.keys())
            self._counted[tensor] = found.union(*map(self._counters, operands))
        return self._counted[tensor]

    def _same(self, tensor: TensorView) -> Scalar | None:
        """Return what ``tensor`` is in each turn, if that is one number."""
        linear = self._sums.of(tensor)
        return linear[0] if linear and not linear[1] else None

    def _reached(self, linear: Sum) -> Ends:
        low, steps = linear
        high = low
        for counter, step in steps.items():
            last = last_turn(self._trips[counter], (sc.const(0), 1)) * step
            if isinstance(step, sc.Const):
                low, high = (low, high + last) if step.value > 0 else (low + last, high)
            else:
                low, high = low + minimum(0, last), high + maximum(0, last)
        return low, high
