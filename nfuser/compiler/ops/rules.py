# SPDX-License-Identifier: Apache-2.0
"""The dtype in which an operation takes its operands, as in NumPy's type tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType, float_of, promote
from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ops.builder import Builder, Operand


def float_type(b: Builder, name: str, *operands: Operand) -> DType:
    """Return the float in which ``operands`` meet: int8 as float16, int16 as float32.

    NumPy looks for the first float loop that takes each operand safely, so (int8,
    uint8) meets in float16, though the two integers meet in int16.
    """
    kinds = [b.type_of(x) for x in operands]
    weak = [k for k in kinds if not isinstance(k, DType)]
    strong = [promote(k, *weak) for k in kinds if isinstance(k, DType)]
    found = promote(*(_as_float(k, strong) for k in strong or [promote(*weak)]))
    if found.is_complex:
        message = f"{name} is not supported for complex numbers"
        raise DTypeError(message)
    return found


def _as_float(dtype: DType, others: list[DType]) -> DType:
    """Return the float for ``dtype``; beside bfloat16 a small integer is one, too."""
    found = float_of(dtype)
    beside = DType.BF16 in others and not dtype.is_float
    return DType.BF16 if beside and found is DType.F16 else found


def number_type(b: Builder, name: str, *operands: Operand) -> DType:
    """Return the dtype in which ``operands`` meet; bool counts as int8."""
    found = b.promote(*operands)
    if found.is_bool:
        strong = any(b.type_of(x) is DType.BOOL for x in operands)
        return DType.I8 if strong else DType.I64
    return found


def real_type(b: Builder, name: str, *operands: Operand) -> DType:
    """Return the number type in which ``operands`` meet; complex is refused."""
    found = number_type(b, name, *operands)
    if found.is_complex:
        message = f"{name} is not supported for complex numbers"
        raise DTypeError(message)
    return found


def bits_type(b: Builder, name: str, *operands: Operand, boolean: bool) -> DType:
    """Return the integer type in which ``operands`` meet, or bool where it counts."""
    found = b.promote(*operands) if boolean else number_type(b, name, *operands)
    if not (found.is_integer or found.is_bool):
        raise _no_integers(b, f"{name} takes integers{' or bool' * boolean}", operands)
    return found


def integer_type(b: Builder, name: str, *operands: Operand) -> DType:
    """Return the integer type in which ``operands`` meet; bool alone is refused."""
    found = b.promote(*operands)
    if not found.is_integer:
        raise _no_integers(b, f"{name} takes integers", operands)
    return found


def _no_integers(b: Builder, what: str, operands: Sequence[Operand]) -> DTypeError:
    listed = ", ".join(str(b.type_of(x)) for x in operands)
    return DTypeError(f"{what}, not {listed}")


def reals(b: Builder, name: str, *operands: Operand) -> DType:
    """Return the dtype in which ``operands`` meet, bool included; no complex."""
    found = b.promote(*operands)
    if found.is_complex:
        message = f"{name} is not supported for complex numbers"
        raise DTypeError(message)
    return found
