# SPDX-License-Identifier: Apache-2.0
"""Integers of a loop's body that grow by the same number in each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import nfuser.compiler.ir.scalars.operators as scalar_op
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, FromScalar, Pointwise
from nfuser.compiler.ir.point_op import CAST, POINT_OPS, is_copy
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.point_op import PointOp
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Counted: TypeAlias = "tuple[Scalar, int]"  # in the first turn, and how much it grows
_ADD, _SUBTRACT, _MULTIPLY = (POINT_OPS[n] for n in ("add", "subtract", "multiply"))


def ends_of(trips: Scalar, place: Counted) -> tuple[Scalar, Scalar]:
    """Return the least and the greatest of what is counted so, if there is a turn."""
    first, step = place
    last = last_turn(trips, place)
    return (first, last) if step > 0 else (last, first)


def last_turn(trips: Scalar, place: Counted) -> Scalar:
    """Return what is counted so in the last turn, if there is any."""
    first, step = place
    if isinstance(trips, sc.Binary) and trips.op is scalar_op.Op.MAX:
        sides = (trips.lhs, trips.rhs)
        if sc.const(0) in sides:
            trips = sides[sides[0] is sc.const(0)]
    return first + (trips - 1) * step


class Counts:
    """Integers of a body that grow by the same number in each turn."""

    def __init__(
        self, turn: TensorView | None, definition: Mapping[TensorView, Expr]
    ) -> None:
        self._turn = turn
        self._definition = definition

    def of(self, tensor: TensorView) -> Counted | None:
        """Return what ``tensor`` is in the first turn, and by how much it grows."""
        if tensor is self._turn:
            return sc.const(0), 1
        if tensor.ndim or tensor.dtype is not DType.I64:
            return None
        match self._definition.get(tensor):
            case Constant(int() as number):
                return sc.const(number), 0
            case FromScalar(scalar):
                return scalar, 0
            case Pointwise(op, operands):
                return self._computed(op, operands)
            case _:
                return None

    def _computed(
        self, op: PointOp, operands: tuple[TensorView, ...]
    ) -> Counted | None:
        if (
            op is not CAST
            and not is_copy(op)
            and op not in (_ADD, _SUBTRACT, _MULTIPLY)
        ):
            return None
        found = [self.of(t) for t in operands]
        if None in found:
            return None
        known = [x for x in found if x is not None]
        if len(known) == 1:
            return known[0]
        (a, m), (b, n) = known
        if op is _ADD:
            return a + b, m + n
        if op is _SUBTRACT:
            return a - b, m - n
        for (x, step), (y, other) in ((known[0], known[1]), (known[1], known[0])):
            if other == 0 and isinstance(y, sc.Const):
                return x * y, step * y.value
        return None
