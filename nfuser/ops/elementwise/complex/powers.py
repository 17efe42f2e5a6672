# SPDX-License-Identifier: Apache-2.0
"""Powers of complex numbers: integer ones by squaring, others by logarithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.ops.elementwise.complex.growth as growth
import nfuser.ops.elementwise.complex.parts as parts

if TYPE_CHECKING:
    from nfuser.ir.tensor import TensorView
    from nfuser.ops.builder import Builder

_BITS = 7
_LIMIT = 100  # of the sizes of exponents that NumPy takes by squaring, too


def fixed_power(b: Builder, x: TensorView, y: complex) -> TensorView | None:
    """Return ``x ** y`` for an exponent that needs no logarithm, or None."""
    if y == 0.5:
        return parts.sqrt(b, x)
    if y.imag or not abs(y.real) < _LIMIT or y.real != int(y.real) or not y.real:
        return None
    count = abs(int(y.real))
    found, power = None, x
    while count:
        if count & 1:
            found = power if found is None else b.point("multiply", found, power)
        count >>= 1
        power = b.point("multiply", power, power) if count else power
    assert found is not None
    if y.real == -1:
        return parts.reciprocal(b, x)
    return _fallen(b, x, found) if y.real < 0 else found


def _fallen(b: Builder, x: TensorView, found: TensorView) -> TensorView:
    """Return one over a power of ``x``; of 0 it is not a number."""
    nan = b.constant(complex(math.nan, math.nan), x.dtype)
    at_zero = b.point("equal", x, b.constant(0j, x.dtype))
    over = parts.divide(b, b.constant(1 + 0j, x.dtype), found)
    return b.point("select", at_zero, nan, over)


def power(b: Builder, x: TensorView, y: TensorView) -> TensorView:
    """Return ``x ** y``; 0 to a power without positive real part is not a number."""
    exponent, turn = parts.real(b, y), parts.imag(b, y)
    zero, nan = (b.constant(n, exponent.dtype) for n in (0.0, math.nan))
    size = b.point("absolute", exponent)
    is_real = b.point("equal", turn, zero)
    is_whole = b.point("equal", size, b.point("floor", size))
    is_whole = b.point("bit_and", is_whole, is_real)
    few = b.point("less", size, b.constant(float(_LIMIT), size.dtype))
    found = _by_squaring(b, x, size)
    falls = b.point("less", exponent, zero)
    found = b.point("select", falls, _fallen(b, x, found), found)
    by_logarithm = growth.exp(b, b.point("multiply", y, parts.log(b, x)))
    is_whole = b.point("bit_and", is_whole, few)
    found = b.point("select", is_whole, found, by_logarithm)
    if x.ndim and not y.ndim:  # NumPy's own short cut for a number
        is_half = b.point("equal", y, b.constant(0.5 + 0j, y.dtype))
        found = b.point("select", is_half, parts.sqrt(b, x), found)
    grows = b.point("greater", exponent, zero)
    of_zero = b.point("select", grows, zero, nan)
    at_zero = b.point("equal", x, b.constant(0j, x.dtype))
    found = b.point("select", at_zero, parts.join(b, of_zero, of_zero), found)
    is_none = b.point("bit_and", is_real, b.point("equal", exponent, zero))
    return b.point("select", is_none, b.constant(1 + 0j, x.dtype), found)


def _by_squaring(b: Builder, x: TensorView, count: TensorView) -> TensorView:
    """Return ``x`` to a whole power that is less than 2 ** 7."""
    half = b.constant(0.5, count.dtype)
    found, power = None, x
    for step in range(_BITS):
        rest = b.point("floor", b.point("multiply", count, half))
        is_odd = b.point("not_equal", count, b.point("add", rest, rest))
        one = b.constant(1 + 0j, x.dtype)
        more = power if found is None else b.point("multiply", found, power)
        found = b.point("select", is_odd, more, one if found is None else found)
        count = rest
        if step < _BITS - 1:
            power = b.point("multiply", power, power)
    assert found is not None
    return found
