# SPDX-License-Identifier: Apache-2.0
"""Sizes, counts and places that a user passes: open integers stay open."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.expr import Argument, Constant, FromScalar, Pointwise
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.trace.standins.host_numbers import host_number
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def is_sequence(x: Any) -> bool:
    """Tell whether ``x`` lists several things, as NumPy sees it."""
    if is_ndarray(x):
        return x.ndim > 0
    return isinstance(x, (tuple, list, range)) and not isinstance(x, Standin)


def size(t: Tracer, x: Any, name: str) -> Scalar | int:
    """Return an integer as verbs take it; one computed by NumPy becomes a guard."""
    if isinstance(x, SymbolicInt):
        return t.operand(x)
    is_ours: bool = isinstance(x, Standin)
    if is_ours and (passed := passed_integer(t, t.operand(x))):
        return passed
    try:
        return x.__index__()
    except (AttributeError, TypeError) as error:
        message = (
            f"{name}: expected an integer, found {x!r} ({type(x).__name__}); "
            "write int(n) or n // m for a whole number"
        )
        if is_ours and t.operand(x).dtype.is_integer:
            message = (
                f"pass the number as an argument, or loop `for k in range(start, stop)`"
                f" over single elements: {name} is given a number that is computed of "
                "arrays, and sizes of a fused function do not depend on values"
            )
        raise ArgumentError(message) from error


def passed_integer(t: Tracer, held: TensorView) -> Scalar | None:
    """Return an integer that the caller passed as one of NumPy's, if ``held`` is one.

    So are sums and products of them, as long as their dtype holds them.
    """
    if held.ndim or not held.dtype.is_integer:
        return None
    program = host_number(t.builder, held)
    if program is None or not (program.slots or program.scalars):
        return None
    found: dict[TensorView, Scalar] = {}
    for expr in program.steps:
        match expr:
            case Argument(slot, result) if result.dtype.is_integer:
                found[result] = scalar_symbols.scalar_input(slot)
            case Constant(int() | np.integer() as number, result):
                found[result] = sc.const(int(number))
            case FromScalar(scalar, result):
                found[result] = scalar
            case Pointwise(op, operands, result) if op.name in _EXACT:
                made = _EXACT[op.name](*(found[x] for x in operands))
                if not result.dtype.is_integer or not _fits(t, made, result.dtype):
                    return None
                found[result] = made
            case _:
                return None
    return found[held]


_EXACT: dict[str, Callable[..., Scalar]] = {
    "add": sc.add,
    "subtract": lambda x, y: x - y,
    "multiply": sc.multiply,
    "negative": lambda x: -x,
    "cast": lambda x: x,
    "copy": lambda x: x,
}


def _fits(t: Tracer, x: Scalar, dtype: DType) -> bool:
    limits = np.iinfo(dtype.numpy.name)
    below = t.ask(less(x, int(limits.min)))
    return not below and not t.ask(less(int(limits.max), x))


def sizes(t: Tracer, x: Any, name: str) -> list[Scalar | int]:
    """Return the integers that ``x`` lists, or the one that it is."""
    listed = x if is_sequence(x) else (x,)
    return [size(t, n, name) for n in listed]


def shape_sizes(t: Tracer, x: Any, name: str) -> list[Scalar | int]:
    """Return the sizes of a shape, which NumPy takes no truth values for."""
    for n in x if is_sequence(x) else (x,):
        refuse_bool(n, name)
    return sizes(t, x, name)


def refuse_bool(x: Any, name: str) -> None:
    """Refuse a truth value where NumPy wants an integer."""
    if isinstance(x, (bool, np.bool_)) and not isinstance(x, Standin):
        message = f"{name}: write {int(x)}; expected an integer, found {bool(x)}"
        raise ArgumentError(message)
