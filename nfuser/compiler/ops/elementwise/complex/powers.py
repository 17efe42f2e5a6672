# SPDX-License-Identifier: Apache-2.0
"""Powers of complex numbers: integer ones by squaring, others by logarithm."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.complex.growth as growth
import nfuser.compiler.ops.elementwise.complex.parts as parts

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

_BITS = 7
_PRODUCTS = (1, 2, 3)
_LIMIT = 100  # of the sizes of exponents that NumPy takes by squaring, too


def fixed_power(
    b: Builder, x: TensorView, y: complex, *, is_int: bool
) -> TensorView | None:
    """Return ``x ** y`` for an exponent that needs no logarithm, or None."""
    if y == 0.5:
        return parts.sqrt(b, x)
    if y.imag or not abs(y.real) < _LIMIT or y.real != int(y.real) or not y.real:
        return None
    if y.real == -1 and is_int:
        return parts.reciprocal(b, x)
    if y.real in _PRODUCTS:
        return _product(b, x, int(y.real))
    count = abs(int(y.real))
    found, power = b.constant(1 + 0j, x.dtype), x
    while count:
        if count & 1:
            found = b.point("multiply", found, power)
        count >>= 1
        power = b.point("multiply", power, power) if count else power
    return _fallen(b, x, found) if y.real < 0 else found


def _product(b: Builder, x: TensorView, count: int) -> TensorView:
    """Return a power that NumPy takes as the plain product.

    It begins the others with a product of one, which makes an infinite part and its
    zero not a number in the other part.
    """
    if count == 1:
        return b.point("copy", x)
    square = b.point("multiply", x, x)
    return square if count == 2 else b.point("multiply", x, square)


def _fallen(b: Builder, x: TensorView, found: TensorView) -> TensorView:
    """Return one over a power of ``x``; of 0 it is not a number."""
    nan = b.constant(complex(math.nan, math.nan), x.dtype)
    at_zero = b.point("equal", x, b.constant(0j, x.dtype))
    over = parts.divide(b, b.constant(1 + 0j, x.dtype), found)
    return b.point("select", at_zero, nan, over)


def power(
    b: Builder, x: TensorView, y: TensorView, *, is_int: bool = False
) -> TensorView:
    """Return ``x ** y``; 0 to a power without positive real part is not a number.

    ``is_int``: ``y`` is an integer of Python's, of which NumPy takes -1 by itself.
    """
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
    for count in _PRODUCTS:
        is_it = b.point("equal", exponent, b.constant(float(count), size.dtype))
        found = b.point("select", is_it, _product(b, x, count), found)
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
    found = b.point("select", is_none, b.constant(1 + 0j, x.dtype), found)
    if x.ndim and is_int:
        is_over = b.point("equal", y, b.constant(-1 + 0j, y.dtype))
        found = b.point("select", is_over, parts.reciprocal(b, x), found)
    return found


def _by_squaring(b: Builder, x: TensorView, count: TensorView) -> TensorView:
    """Return ``x`` to a whole power that is less than 2 ** 7."""
    half = b.constant(0.5, count.dtype)
    found, power = b.constant(1 + 0j, x.dtype), x
    for step in range(_BITS):
        rest = b.point("floor", b.point("multiply", count, half))
        is_odd = b.point("not_equal", count, b.point("add", rest, rest))
        more = b.point("multiply", found, power)
        found = b.point("select", is_odd, more, found)
        count = rest
        if step < _BITS - 1:
            power = b.point("multiply", power, power)
    return found
