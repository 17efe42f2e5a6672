# SPDX-License-Identifier: Apache-2.0
"""How native code sees that arithmetic of Python numbers ends as it did in the trace.

It says yes only where that is certain: a division is by something else than zero, and a
power is finite. What is infinite or no number goes the way through Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument, Constant, FromScalar, Pointwise
from nfuser.compiler.trace.standins.host_numbers import HostNumber
from nfuser.execution.device.native import layout as at
from nfuser.execution.host.call.native.number_steps import NotNativeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.standins.arithmetic_guards import OutcomeGuard
    from nfuser.execution.host.call.native.number_steps import NumberWriter

_OPERATIONS = {
    "add": at.N_ADD_FLOATS,
    "subtract": at.N_SUBTRACT_FLOATS,
    "multiply": at.N_MULTIPLY_FLOATS,
    "divide": at.N_DIVIDE_FLOATS,
    "power": at.N_POWER,
}


def require_outcome(
    guard: OutcomeGuard, numbers: NumberWriter, given: Mapping[int, tuple[int, type]]
) -> None:
    """Serve only calls in which ``guard`` certainly holds.

    ``given`` are the positions and types of the call's numbers, by slot.
    """
    if guard.outcome is None or issubclass(guard.outcome, (ArithmeticError, complex)):
        raise NotNativeError
    maker = _Operands(numbers, given)
    if guard.operation is not pow:
        numbers.step(at.N_NONZERO, maker.real(guard.right))
        return
    power = (maker.real(guard.left), maker.real(guard.right))
    numbers.step(at.N_FINITE, numbers.step(at.N_POWER, *power))


class _Operands:
    def __init__(
        self, numbers: NumberWriter, given: Mapping[int, tuple[int, type]]
    ) -> None:
        self._numbers = numbers
        self._given = given

    def real(self, x: HostNumber | Scalar | complex) -> int:
        """Return the place of an operand as a float."""
        if isinstance(x, HostNumber):
            return self._host_number(x)
        if isinstance(x, complex):
            raise NotNativeError
        if isinstance(x, (int, float)):
            return self._numbers.real(_float_of(x))
        return self._numbers.step(at.N_TO_FLOAT, self._numbers.scalar(x))

    def _host_number(self, x: HostNumber) -> int:
        found: dict[TensorView, int] = {}
        for expr in x.steps:
            match expr:
                case Argument(slot, result):
                    found[result] = self._argument(slot)
                case Constant(value, result):
                    if isinstance(value, complex):
                        raise NotNativeError
                    found[result] = self._numbers.real(_float_of(value))
                case FromScalar(scalar, result):
                    found[result] = self.real(scalar)
                case Pointwise(op, operands, result):
                    given = [found[t] for t in operands]
                    found[result] = self._applied(op.name, given, result)
                case _:
                    raise NotNativeError
        return found[x.result]

    def _argument(self, slot: int) -> int:
        position, cls = self._given.get(slot, (0, object))
        if not issubclass(cls, float):  # of Python, or of NumPy with 64 bits
            raise NotNativeError
        return self._numbers.given(position)

    def _applied(self, name: str, given: list[int], result: TensorView) -> int:
        if result.dtype is not DType.F64:
            raise NotNativeError
        if name in ("cast", "copy"):
            return given[0]
        if name == "negative":
            return self._numbers.step(
                at.N_SUBTRACT_FLOATS, self._numbers.real(-0.0), given[0]
            )
        if name not in _OPERATIONS:
            raise NotNativeError
        return self._numbers.step(_OPERATIONS[name], *given)


def _float_of(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NotNativeError from None


__all__ = ["require_outcome"]
