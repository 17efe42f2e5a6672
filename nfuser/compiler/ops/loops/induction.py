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
    from collections.abc import Mapping, Set

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Counted: TypeAlias = "tuple[Scalar, int]"  # in the first turn, and how much it grows
Sum: TypeAlias = "tuple[Scalar, dict[TensorView, Scalar]]"  # and steps of counters
_ADD, _SUBTRACT, _MULTIPLY, _NEGATIVE = (
    POINT_OPS[n] for n in ("add", "subtract", "multiply", "negative")
)


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
        self._sums = Sums(frozenset(() if turn is None else (turn,)), definition)

    def of(self, tensor: TensorView) -> Counted | None:
        """Return what ``tensor`` is in the first turn, and by how much it grows."""
        found = self._sums.of(tensor)
        if found is None:
            return None
        first, steps = found
        step = next(iter(steps.values()), sc.const(0))
        return (first, step.value) if isinstance(step, sc.Const) else None


class Sums:
    """Integers of a body that are sums of ``counters``, each times a number."""

    def __init__(
        self, counters: Set[TensorView], definition: Mapping[TensorView, Expr]
    ) -> None:
        self._counters = counters
        self._definition = definition
        self._found: dict[TensorView, Sum | None] = {}

    def of(self, tensor: TensorView) -> Sum | None:
        """Return ``tensor`` as such a sum, where it is one."""
        if tensor not in self._found:
            self._found[tensor] = self._computed(tensor)
        return self._found[tensor]

    def _computed(self, tensor: TensorView) -> Sum | None:
        if tensor in self._counters:
            return sc.const(0), {tensor: sc.const(1)}
        if tensor.ndim or tensor.dtype is not DType.I64:
            return None
        match self._definition.get(tensor):
            case Constant(int() as number):
                return sc.const(number), {}
            case FromScalar(scalar):
                return scalar, {}
            case Pointwise(op, (operand,)) if op is CAST or is_copy(op):
                return self.of(operand)
            case Pointwise(op, (operand,)) if op is _NEGATIVE:
                return _times(self.of(operand), sc.const(-1))
            case Pointwise(op, (left, right)) if op in (_ADD, _SUBTRACT):
                sign = sc.const(1 if op is _ADD else -1)
                return _added(self.of(left), _times(self.of(right), sign))
            case Pointwise(op, (left, right)) if op is _MULTIPLY:
                one, other = self.of(left), self.of(right)
                if one is not None and not one[1]:
                    one, other = other, one
                return _times(one, other[0]) if other and not other[1] else None
            case _:
                return None


def _times(given: Sum | None, by: Scalar) -> Sum | None:
    if given is None:
        return None
    steps = {counter: step * by for counter, step in given[1].items()}
    return given[0] * by, _without_zeros(steps)


def _added(one: Sum | None, other: Sum | None) -> Sum | None:
    if one is None or other is None:
        return None
    steps = dict(one[1])
    for counter, step in other[1].items():
        steps[counter] = steps.get(counter, sc.const(0)) + step
    return one[0] + other[0], _without_zeros(steps)


def _without_zeros(steps: dict[TensorView, Scalar]) -> dict[TensorView, Scalar]:
    return {c: step for c, step in steps.items() if step is not sc.const(0)}
