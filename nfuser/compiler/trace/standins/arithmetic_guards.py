# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of two Python numbers that may fail: it ends as Python's own would.

``1 / n`` raises for one ``n`` and not for another, and ``n ** 0.5`` may be complex. A
trace keeps the number open and remembers only how the operation ended; a call in which
it ends otherwise is traced again, and there Python raises in the user's own line.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.scalar import ScalarInput
from nfuser.compiler.ir.scalars.scalar_walk import evaluate, symbols
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.trace.standins.host_numbers import HostNumber, host_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import SourceLine
    from nfuser.compiler.ops import Builder

Number: TypeAlias = "HostNumber | Scalar | bool | int | float | complex"
_DIVISIONS: dict[Any, Callable[[Any, Any], Any]] = {
    ops.divide: operator.truediv,
    ops.floor_divide: operator.floordiv,
    ops.remainder: operator.mod,
    ops.divmod: divmod,
}


@node
class OutcomeGuard:
    """Holds while ``operation`` gives a number of this type, or this error."""

    operation: Callable[[Any, Any], Any]
    left: Number
    right: Number
    key: object
    outcome: type | None = None
    source: SourceLine | None = None

    @property
    def depends_on_numbers(self) -> bool:
        """Whether a number that a caller passes may change the outcome."""
        scalars: list[Scalar] = []
        for side in (self.left, self.right):
            if isinstance(side, HostNumber):
                if side.slots:
                    return True
                scalars.extend(side.scalars)
            elif not isinstance(side, (int, float, complex)):
                scalars.append(side)
        return any(isinstance(s, ScalarInput) for s in symbols(scalars))

    def run(self, scalars: Mapping[Scalar, int], numbers: Mapping[int, Any]) -> Any:
        """Return what Python's operation gives in a call, or raise what it raises."""
        left = _value(self.left, scalars, numbers)
        return self.operation(left, _value(self.right, scalars, numbers))

    def ended(self, outcome: type) -> OutcomeGuard:
        """Return the guard of this outcome."""
        return replace(self, outcome=outcome)

    def holds(self, scalars: Mapping[Scalar, int], numbers: Mapping[int, Any]) -> bool:
        """Tell whether the operation ends as it did while tracing."""
        try:
            found = self.run(scalars, numbers)
        except ArithmeticError as error:
            return type(error) is self.outcome
        return type(found) is self.outcome


def outcome_guard(
    b: Builder, verb: object, operands: list[Any], source: SourceLine | None
) -> OutcomeGuard | None:
    """Return the guard of ``verb`` on Python numbers; None where it cannot fail."""
    operation = pow if verb is ops.power else _DIVISIONS.get(verb)
    if operation is None:
        return None
    right = operands[1]
    if operation is not pow and isinstance(right, (int, float)) and right:
        return None
    left, right = (
        host_number(b, x) if isinstance(x, TensorView) else x for x in operands
    )
    if left is None and operation is not pow:
        left = 1  # a division fails by its divisor alone
    if left is None or right is None:
        return None
    key = (operation, *(x if _is_symbolic(x) else repr(x) for x in operands))
    return OutcomeGuard(operation, left, right, key, None, source)


def _is_symbolic(x: object) -> bool:
    return not isinstance(x, (int, float, complex))


def _value(x: Number, scalars: Mapping[Scalar, int], numbers: Mapping[int, Any]) -> Any:
    if isinstance(x, HostNumber):
        return x.value(scalars, numbers)
    return x if isinstance(x, (int, float, complex)) else evaluate(x, scalars)
