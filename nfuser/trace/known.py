# SPDX-License-Identifier: Apache-2.0
"""Evaluate a 0-d tensor that depends on scalars and sizes alone."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.ir.base import value
from nfuser.ir.expr import Argument, Constant, FromScalar, Pointwise, sources
from nfuser.ir.fusion import Fusion, live_exprs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.ops import Builder


@value
class Known:
    """A value, and the scalar slots and sizes it depends on."""

    value: Any
    slots: tuple[int, ...]
    scalars: tuple[Scalar, ...]


def value_of(b: Builder, x: TensorView, values: Mapping[int, Any]) -> Known | None:
    """Return today's value of ``x``; None where it depends on an array."""
    if x.ndim:
        return None
    program = Fusion(b.name, b.exprs, [x])
    found: dict[TensorView, Any] = {}
    slots: list[int] = []
    scalars: list[Scalar] = []
    for expr in live_exprs([x], program.definition):
        match expr:
            case Argument(slot, result, by_value=True):
                number = values[slot]
                slots.append(slot)
            case Constant(number, result):
                pass
            case FromScalar(scalar, result):
                number = b.today(scalar)
                scalars.append(scalar)
            case Pointwise(op, _, result):
                operands = [found[t] for t in sources(expr)]
                number = _apply(op.name, operands, result)
            case _:
                return None
        with np.errstate(all="ignore"):
            found[result] = np.asarray(number).astype(result.dtype.numpy)[()]
    return Known(_plain(b, x, found[x]), tuple(slots), tuple(scalars))


def _plain(b: Builder, x: TensorView, number: Any) -> Any:
    return number.item() if x in b.weak else number


_NUMPY_NAMES = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
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
    "real": np.real,
    "imag": np.imag,
    "complex": lambda re, im: complex(re, im),
}


def _apply(name: str, operands: list[Any], result: TensorView) -> Any:
    function = _OTHERS.get(name) or getattr(np, _NUMPY_NAMES.get(name, name))
    with np.errstate(all="ignore"):
        return function(*operands)
