# SPDX-License-Identifier: Apache-2.0
"""The least and the greatest integer of a body in all turns: both are met in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, SELECT
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


_DIVIDE = POINT_OPS["floor_divide"]
_MASK, _LEFT, _RIGHT = (POINT_OPS[n] for n in ("bit_and", "left_shift", "right_shift"))
_BY_BITS = {_MASK, _LEFT, _RIGHT}
_EITHER_WAY = {*_RISING, _MULTIPLY, _MASK}
_MOST_BITS = 62
_LEAST = {
    POINT_OPS[name]: name.startswith("less")
    for name in ("less", "less_equal", "greater", "greater_equal")
}  # whether the one that the test holds of is the less


def _by_bits(op: PointOp, by: Scalar) -> tuple[PointOp, Scalar | None]:
    """Return a mask or a shift by a constant as what it is to integers, if one."""
    number = by.value if isinstance(by, sc.Const) else -1
    if op is _MASK:
        is_mask = 0 <= number < 1 << _MOST_BITS and not number & (number + 1)
        return _REMAINDER, sc.const(number + 1) if is_mask else None
    power = sc.const(1 << number) if 0 <= number <= _MOST_BITS else None
    return (_MULTIPLY if op is _LEFT else _DIVIDE), power


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
            case Pointwise(op, (test, left, right)) if op is SELECT:
                rising = self._chooses(test, left, right)
                return rising and self._of_two(rising, left, right)
            case _:
                return None

    def _of_two(self, op: PointOp, left: TensorView, right: TensorView) -> Ends | None:
        by = self._same(right)
        if by is None and op in _EITHER_WAY:
            left, right, by = right, left, self._same(left)
        if op in _BY_BITS and by is not None:
            op, by = _by_bits(op, by)
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
        if op is _DIVIDE and isinstance(by, sc.Const):
            return (ends[0] // by, ends[1] // by) if by.value > 0 else None
        rising = _RISING.get(op)
        return rising and (rising(ends[0], by), rising(ends[1], by))

    def _remainder(self, tensor: TensorView, by: Scalar | None) -> Ends | None:
        """Return the ends of a remainder of numbers that follow each other."""
        linear = self._sums.of(tensor)
        if linear is None or by is None or (isinstance(by, sc.Const) and by.value <= 0):
            return None
        if any(step not in (sc.const(1), sc.const(-1)) for step in linear[1].values()):
            return None
        low, high = self._reached(linear)
        divisor = maximum(by, 1)  # a negative one may leave 0 at least and at most
        first, count = low % divisor, high - low
        is_within = less(first + count, divisor)
        known = less(0, by)
        return first * is_within * known, minimum(first + count, divisor - 1) * known

    def _chooses(
        self, test: TensorView, left: TensorView, right: TensorView
    ) -> PointOp | None:
        """Return how a choice rises with both, if it is of the less or the greater."""
        expr = self._definition.get(original(self._definition, test))
        if not isinstance(expr, Pointwise) or expr.op not in _LEAST:
            return None
        sides = [self._which(x) for x in expr.operands]
        chosen = [self._which(x) for x in (left, right)]
        if sides not in (chosen, chosen[::-1]):
            return None
        is_least = _LEAST[expr.op] == (sides == chosen)
        return POINT_OPS["minimum" if is_least else "maximum"]

    def _which(self, tensor: TensorView) -> TensorView | Scalar:
        """Return what two tensors have in common that are the same in each turn."""
        found = self._same(tensor)
        return original(self._definition, tensor) if found is None else found

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
