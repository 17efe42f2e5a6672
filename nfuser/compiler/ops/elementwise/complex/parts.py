# SPDX-License-Identifier: Apache-2.0
"""Functions of complex numbers, written with real ones on their two parts.

Only add, subtract, multiply, negative, copy, select, cast, equality and the three
operations that take numbers apart and together appear in the IR with a complex dtype.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def real(b: Builder, z: TensorView) -> TensorView:
    """Return the real part."""
    return b.point("real", z, dtype=z.dtype.real)


def imag(b: Builder, z: TensorView) -> TensorView:
    """Return the imaginary part."""
    return b.point("imag", z, dtype=z.dtype.real)


def join(b: Builder, re: TensorView, im: TensorView) -> TensorView:
    """Return ``re + i im``."""
    return b.point("complex", re, im, dtype=re.dtype.complex)


def swapped(b: Builder, z: TensorView) -> TensorView:
    """Return ``y + i x``: hyperbolic functions of it are circular ones, swapped."""
    return join(b, imag(b, z), real(b, z))


def conjugate(b: Builder, z: TensorView) -> TensorView:
    """Return the conjugate."""
    return join(b, real(b, z), b.point("negative", imag(b, z)))


def absolute(b: Builder, z: TensorView) -> TensorView:
    """Return the modulus, without overflow on the way."""
    return b.point("hypot", real(b, z), imag(b, z))


def angle(b: Builder, z: TensorView) -> TensorView:
    """Return the argument."""
    return b.point("atan2", imag(b, z), real(b, z))


def divide(b: Builder, x: TensorView, y: TensorView) -> TensorView:
    """Return ``x / y`` by Smith's method, as NumPy does."""
    a, c, d, e = real(b, x), imag(b, x), real(b, y), imag(b, y)
    by_real = b.point("greater_equal", b.point("absolute", d), b.point("absolute", e))
    zero = b.constant(0.0, d.dtype)
    large = b.point("select", by_real, d, e)
    small = b.point("select", by_real, e, d)
    both_zero = b.point("equal", large, zero)
    ratio = b.point("divide", small, large)
    ratio = b.point("select", both_zero, zero, ratio)
    scale = b.point("add", large, b.point("multiply", small, ratio))
    first = b.point("select", by_real, a, c)
    second = b.point("select", by_real, c, a)
    re = b.point("add", first, b.point("multiply", second, ratio))
    cross = b.point("multiply", first, ratio)
    im = b.point("subtract", second, cross)
    im = b.point("select", by_real, im, b.point("negative", im))
    return join(b, b.point("divide", re, scale), b.point("divide", im, scale))


def sign(b: Builder, z: TensorView) -> TensorView:
    """Return ``z / |z|``, 0 at 0."""
    modulus = absolute(b, z)
    zero = b.constant(0.0, modulus.dtype)
    at_zero = b.point("equal", modulus, zero)
    re = b.point("divide", real(b, z), modulus)
    im = b.point("divide", imag(b, z), modulus)
    re, im = (b.point("select", at_zero, zero, part) for part in (re, im))
    return join(b, re, im)


def reciprocal(b: Builder, z: TensorView) -> TensorView:
    """Return ``1 / z`` as NumPy does: neither part of 1 / 0 is a number."""
    x, y = real(b, z), imag(b, z)
    flat = b.point("less_equal", b.point("absolute", y), b.point("absolute", x))
    large, small = b.point("select", flat, x, y), b.point("select", flat, y, x)
    ratio = b.point("divide", small, large)
    scale = b.point("add", large, b.point("multiply", small, ratio))
    whole = b.point("reciprocal", scale)
    part = b.point("divide", ratio, scale)
    re, im = b.point("select", flat, whole, part), b.point("select", flat, part, whole)
    return join(b, re, b.point("negative", im))


def log(b: Builder, z: TensorView) -> TensorView:
    """Return the principal logarithm."""
    return join(b, b.point("log", absolute(b, z)), angle(b, z))


def sqrt(b: Builder, z: TensorView) -> TensorView:
    """Return the principal square root, from the half without cancellation."""
    x, y = real(b, z), imag(b, z)
    half, zero = b.constant(0.5, x.dtype), b.constant(0.0, x.dtype)
    modulus = b.point("add", b.point("absolute", x), absolute(b, z))
    large = b.point("sqrt", b.point("multiply", half, modulus))
    small = b.point("divide", b.point("multiply", half, b.point("absolute", y)), large)
    small = b.point("select", b.point("equal", large, zero), zero, small)
    right = b.point("greater_equal", x, zero)
    infinite = b.point("isinf", y)
    top = b.point("absolute", y)
    re = b.point("select", infinite, top, b.point("select", right, large, small))
    im = b.point("select", infinite, top, b.point("select", right, small, large))
    return join(b, re, b.point("copysign", im, y))


def log1p(b: Builder, z: TensorView) -> TensorView:
    """Return the logarithm of ``1 + z``, without cancellation for small ``z``."""
    x, y = real(b, z), imag(b, z)
    one, half = b.constant(1.0, x.dtype), b.constant(0.5, x.dtype)
    moved = b.point("add", x, one)
    modulus = b.point("log", b.point("hypot", moved, y))
    twice = b.point("multiply", x, b.point("add", moved, one))
    square = b.point("add", twice, b.point("multiply", y, y))
    small = b.point("multiply", half, b.point("log1p", square))
    near = b.point("less", b.point("hypot", x, y), half)
    re = b.point("select", near, small, modulus)
    return join(b, re, b.point("atan2", y, moved))


def rint(b: Builder, z: TensorView) -> TensorView:
    """Return both parts rounded to even."""
    return join(b, b.point("rint", real(b, z)), b.point("rint", imag(b, z)))


def _scaled_log(base: float) -> Callable[[Builder, TensorView], TensorView]:
    def verb(b: Builder, z: TensorView) -> TensorView:
        found, scale = log(b, z), b.constant(1 / math.log(base), z.dtype.real)
        re = b.point("multiply", real(b, found), scale)
        return join(b, re, b.point("multiply", imag(b, found), scale))

    verb.__doc__ = f"Return the principal logarithm to base {base}."
    return verb


def rsqrt(b: Builder, z: TensorView) -> TensorView:
    """Return one over the principal square root."""
    one = b.constant(1.0 + 0j, z.dtype)
    return divide(b, one, sqrt(b, z))


def refuse(name: str) -> DTypeError:
    """Return the error for a function that has no complex form here."""
    message = (
        f"{name} is not supported for complex numbers; take x.real and x.imag, or "
        "compute it outside the fused function"
    )
    return DTypeError(message)


FUNCTIONS = {
    "log": log,
    "log2": _scaled_log(2),
    "log10": _scaled_log(10),
    "log1p": log1p,
    "rint": rint,
    "rsqrt": rsqrt,
    "sqrt": sqrt,
}
