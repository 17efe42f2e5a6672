# SPDX-License-Identifier: Apache-2.0
"""Operations between dtypes: casts, and the parts of complex numbers.

Cotangents pair with tangents by the real part of their product, without a conjugate:
JAX's convention. The gradient of a real function of ``x + i y`` is thus its derivative
in ``x`` less i times that in ``y``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder

KINDS = frozenset({"cast", "real", "imag", "complex"})


def pulled(
    b: Builder, name: str, t: TensorView, dtype: DType, place: int
) -> TensorView:
    """Return the cotangent of operand ``place``, which has this dtype."""
    match name:
        case "cast":
            return b.cast(t, dtype)
        case "real" if dtype.is_complex:
            return ops.complex_of(b, t, b.constant(0.0, t.dtype))
        case "imag" if dtype.is_complex:
            return ops.complex_of(b, b.constant(0.0, t.dtype), b.point("negative", t))
        case "complex" if place == 0:
            return ops.real(b, t)
        case "complex":
            return b.point("negative", ops.imag(b, t))
        case _:  # the real part of a real number
            return t


def pushed(
    b: Builder, name: str, t: TensorView, dtype: DType, place: int
) -> TensorView:
    """Return the tangent of a result of this dtype, of that of one operand."""
    match name:
        case "cast":
            return b.cast(t, dtype)
        case "complex":
            zero = b.constant(0.0, t.dtype)
            return ops.complex_of(b, *((t, zero) if place == 0 else (zero, t)))
        case "imag":
            return ops.imag(b, t)
        case _:
            return ops.real(b, t)
