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

    from nfuser.ir.tensor import TensorView
    from nfuser.ops.builder import Builder


def real(b: Builder, z: TensorView) -> TensorView:
    """Return the real part."""
    return b.point("real", z, dtype=z.dtype.real)


def imag(b: Builder, z: TensorView) -> TensorView:
    """Return the imaginary part."""
    return b.point("imag", z, dtype=z.dtype.real)


def join(b: Builder, re: TensorView, im: TensorView) -> TensorView:
    """Return ``re + i im``."""
    return b.point("complex", re, im, dtype=re.dtype.complex)


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


def exp(b: Builder, z: TensorView) -> TensorView:
    """Return ``e ** z``; a real number stays real, also at infinity."""
    scale = b.point("exp", real(b, z))
    y = imag(b, z)
    zero = b.constant(0.0, y.dtype)
    is_real = b.point("equal", y, zero)
    re = b.point("multiply", scale, b.point("cos", y))
    im = b.point("multiply", scale, b.point("sin", y))
    at_zero = b.point("equal", scale, zero)
    unknown = b.point("invert", b.point("isfinite", y))
    vanishes = b.point("bit_and", at_zero, unknown)
    re = b.point("select", vanishes, zero, re)
    im = b.point("select", vanishes, zero, im)
    return join(b, re, b.point("select", is_real, y, im))


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


def _parts_of_angle(
    b: Builder, angle_part: TensorView, growth: TensorView
) -> tuple[TensorView, TensorView, TensorView, TensorView]:
    names = (("sin", angle_part), ("cos", angle_part), ("sinh", growth))
    s, c, sh = (b.point(name, operand) for name, operand in names)
    return s, c, sh, b.point("cosh", growth)


def sinh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic sine."""
    s, c, sh, ch = _parts_of_angle(b, imag(b, z), real(b, z))
    return join(b, b.point("multiply", sh, c), b.point("multiply", ch, s))


def cosh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic cosine."""
    s, c, sh, ch = _parts_of_angle(b, imag(b, z), real(b, z))
    return join(b, b.point("multiply", ch, c), b.point("multiply", sh, s))


def sin(b: Builder, z: TensorView) -> TensorView:
    """Return the sine."""
    s, c, sh, ch = _parts_of_angle(b, real(b, z), imag(b, z))
    return join(b, b.point("multiply", s, ch), b.point("multiply", c, sh))


def cos(b: Builder, z: TensorView) -> TensorView:
    """Return the cosine."""
    s, c, sh, ch = _parts_of_angle(b, real(b, z), imag(b, z))
    im = b.point("negative", b.point("multiply", s, sh))
    return join(b, b.point("multiply", c, ch), im)


def tanh(b: Builder, z: TensorView) -> TensorView:
    """Return the hyperbolic tangent; it tends to ±1 where cosh overflows."""
    x, y = real(b, z), imag(b, z)
    t, tau = b.point("tan", y), b.point("tanh", x)
    one, zero = b.constant(1.0, x.dtype), b.constant(0.0, x.dtype)
    t2, tau2 = b.point("multiply", t, t), b.point("multiply", tau, tau)
    below = b.point("add", one, b.point("multiply", t2, tau2))
    re = b.point("divide", b.point("multiply", tau, b.point("add", one, t2)), below)
    sech = b.point("reciprocal", b.point("cosh", x))
    sech2 = b.point("multiply", sech, sech)
    im = b.point("divide", b.point("multiply", t, sech2), below)
    limit = b.constant(20.0, x.dtype)
    far = b.point("greater", b.point("absolute", x), limit)
    re = b.point("select", far, tau, re)
    im = b.point("select", far, b.point("copysign", zero, t), im)
    return join(b, re, im)


def tan(b: Builder, z: TensorView) -> TensorView:
    """Return the tangent, ``-i tanh(i z)``."""
    turned = tanh(b, join(b, b.point("negative", imag(b, z)), real(b, z)))
    return join(b, imag(b, turned), b.point("negative", real(b, turned)))


def power(b: Builder, x: TensorView, y: TensorView) -> TensorView:
    """Return ``exp(y log x)``; 0 to a power with positive real part is 0."""
    result = exp(b, b.point("multiply", y, log(b, x)))
    zero = b.constant(0j, x.dtype)
    one = b.constant(1.0 + 0j, x.dtype)
    at_zero = b.point("equal", x, zero)
    result = b.point("select", at_zero, zero, result)
    return b.point("select", b.point("equal", y, zero), one, result)


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
    "exp": exp,
    "log": log,
    "log2": _scaled_log(2),
    "log10": _scaled_log(10),
    "rsqrt": rsqrt,
    "sqrt": sqrt,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
}
