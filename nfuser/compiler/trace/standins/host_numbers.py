# SPDX-License-Identifier: Apache-2.0
"""Evaluate a 0-d tensor that depends on scalars and sizes alone."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Argument, Constant, FromScalar, Pointwise
from nfuser.compiler.ir.fusion import Fusion, live_exprs
from nfuser.compiler.ir.scalars.scalar_walk import evaluate
from nfuser.compiler.ops.elementwise.inverse_errors import erfcinv, erfinv
from nfuser.compiler.ops.elementwise.random_words import philox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


@node
class HostNumber:
    """A 0-d tensor of scalar arguments and sizes alone, which the host can work out.

    ``slots`` and ``scalars`` are what it depends on; ``is_python`` tells a number of
    Python's from one of NumPy's.
    """

    result: TensorView
    steps: tuple[Expr, ...]
    slots: tuple[int, ...]
    scalars: tuple[Scalar, ...]
    is_python: bool

    def value(self, scalars: Mapping[Scalar, int], numbers: Mapping[int, Any]) -> Any:
        """Return the number where these are the symbols' values and the arguments."""
        found: dict[TensorView, Any] = {}
        for expr in self.steps:
            match expr:
                case Argument(slot, result):
                    number = numbers[slot]
                case Constant(number, result):
                    pass
                case FromScalar(scalar, result):
                    number = evaluate(scalar, scalars)
                case _:
                    assert isinstance(expr, Pointwise)
                    result = expr.result
                    operands = [found[t] for t in expr.operands]
                    number = _apply(expr.op.name, operands)
            with np.errstate(all="ignore"):
                found[result] = np.asarray(number).astype(result.dtype.numpy)[()]
        number = found[self.result]
        return number.item() if self.is_python else number


def host_number(b: Builder, x: TensorView) -> HostNumber | None:
    """Return how the host works out ``x``; None where it depends on an array."""
    if x.ndim:
        return None
    program = Fusion(b.name, b.exprs, [x])
    if x not in program.definition:  # of the body of a loop, which has ended
        return None
    steps = live_exprs([x], program.definition)
    slots: list[int] = []
    scalars: list[Scalar] = []
    for expr in steps:
        match expr:
            case Argument(slot, _, by_value=True) if slot >= 0:
                slots.append(slot)
            case FromScalar(scalar):
                scalars.append(scalar)
            case Constant() | Pointwise():
                pass
            case _:
                return None
    return HostNumber(x, tuple(steps), tuple(slots), tuple(scalars), x in b.weak)


_NUMPY_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
    "log_positive": "log",
    "bit_and": "bitwise_and",
    "bit_or": "bitwise_or",
    "bit_xor": "bitwise_xor",
    "select": "where",
}
_OTHERS: dict[str, Callable[..., Any]] = {
    "cast": lambda x: x,
    "copy": lambda x: x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": lambda x: math.erf(float(x)),
    "erfc": lambda x: math.erfc(float(x)),
    "erfinv": lambda x: erfinv(float(x)),
    "erfcinv": lambda x: erfcinv(float(x)),
    "ldexp": lambda x, n: np.ldexp(x, int(min(max(n, -4096), 4096))),
    "multiply_add": lambda x, y, z: x * y + z,
    "philox16": philox(16),
    "philox32": philox(32),
    "philox64": philox(64),
    "real": np.real,
    "imag": np.imag,
    "complex": lambda re, im: complex(re, im),
}


def meaning(name: str) -> Callable[..., Any]:
    """Return what the operation called ``name`` does on the host."""
    return _OTHERS.get(name) or getattr(np, _NUMPY_NAMES.get(name, name))


def _apply(name: str, operands: list[Any]) -> Any:
    function = meaning(name)
    with np.errstate(all="ignore"):
        return function(*operands)
