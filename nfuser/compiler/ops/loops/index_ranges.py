# SPDX-License-Identifier: Apache-2.0
"""What the integers of a loop's body lie between, by the counters of all loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, FromScalar, Loop, Pointwise
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.loops.induction import ends_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Range: TypeAlias = "tuple[Scalar, Scalar]"  # the least and the greatest
_ADD, _SUBTRACT, _MULTIPLY = (POINT_OPS[n] for n in ("add", "subtract", "multiply"))


class Ranges:
    """What the integers of a body lie between; ``given`` is known of its arguments."""

    def __init__(
        self, definition: Mapping[TensorView, Expr], given: Mapping[TensorView, Range]
    ) -> None:
        self.definition = definition
        self._given = given

    def of_operands(self, loop: Loop) -> dict[TensorView, Range]:
        """Return what is known of the operands of a loop inside."""
        found = {t: self.of(t) for t in loop.operands}
        return {t: known for t, known in found.items() if known is not None}

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


def ranges_of(loop: Loop, outside: Mapping[TensorView, Range]) -> Ranges:
    """Return the ranges in the body of ``loop``; ``outside`` is known of operands."""
    given = {
        a.result: outside[loop.operands[a.slot]]
        for a in loop.body.arguments
        if loop.carried <= a.slot < len(loop.operands)
        and loop.operands[a.slot] in outside
    }
    if loop.turn is not None and loop.trips is not None:
        given[loop.turn] = ends_of(loop.trips, (sc.const(0), 1))
    return Ranges(loop.body.definition, given)


def _product(known: Range, by: Range) -> Range | None:
    """Return the range of a product with a number that is a constant."""
    low, high = by
    if low is not high or not isinstance(low, sc.Const):
        return None
    ends = known[0] * low.value, known[1] * low.value
    return ends if low.value >= 0 else (ends[1], ends[0])
