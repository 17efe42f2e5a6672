# SPDX-License-Identifier: Apache-2.0
"""Parts of complex numbers; a real number is its own real part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.complex.parts as parts
from nfuser.compiler.dtypes import DType, float_of

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand


def real(b: Builder, x: Operand) -> TensorView:
    """Return the real part."""
    operand = b.tensor(x)
    return parts.real(b, operand) if operand.dtype.is_complex else operand


def imag(b: Builder, x: Operand) -> TensorView:
    """Return the imaginary part; of a real number, zero."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        return parts.imag(b, operand)
    zero = b.constant(_zero(operand.dtype), operand.dtype)
    # Both sides are zero: the choice only lends the zero its shape.
    same = b.point("equal", operand, operand)
    return b.point("select", same, zero, zero)


def _zero(dtype: DType) -> bool | int | float:
    if dtype.is_bool:
        return False
    return 0.0 if dtype.is_float else 0


def conj(b: Builder, x: Operand) -> TensorView:
    """Return the conjugate; a real number as it is."""
    operand = b.tensor(x)
    if operand.dtype.is_bool:
        operand = b.cast(operand, DType.I8)
    if operand.dtype.is_complex:
        return parts.conjugate(b, operand)
    return b.point("copy", operand)


def angle(b: Builder, x: Operand) -> TensorView:
    """Return the argument; of a negative real number pi, NaN of NaN."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        return parts.angle(b, operand)
    dtype = DType.F64 if operand.dtype.is_bool else float_of(operand.dtype)
    operand = b.cast(operand, dtype)
    return b.point("atan2", b.constant(0.0, dtype), operand)


def complex_of(b: Builder, re: Operand, im: Operand) -> TensorView:
    """Return ``re + i im``."""
    dtype = float_of(b.promote(re, im))
    dtype = dtype if dtype is DType.F64 else DType.F32
    return parts.join(b, b.convert(re, dtype), b.convert(im, dtype))
