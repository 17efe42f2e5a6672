# SPDX-License-Identifier: Apache-2.0
"""Powers and hypotenuses on the CPU."""

from __future__ import annotations

from typing import Any

from nfuser.codegen.primitives.cpu.arithmetic import is_float
from nfuser.codegen.primitives.cpu.math.exponential import (
    INFINITY,
    NAN,
    exp_pair,
    log_parts,
    precision_of,
)
from nfuser.codegen.primitives.cpu.math.single_power import power_of_single
from nfuser.codegen.primitives.cpu.math.tables import (
    DOUBLE,
    LOG_PAIR_FIT,
)
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    Value,
    absolute,
    bits,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    polynomial,
    rint,
    select,
    sqrt,
    to_double,
    to_single,
    two_product,
)

TWELFTH = (0.08333333333333333, 4.625929269271485e-18)
LN2_SHORT = (0.6931471803691238, 1.9082149292705877e-10)
"""ln(2), its first word short enough for exact products with exponents."""
MOST = 2.0**64
"""An exponent of this size makes 0 or infinity of any number but 1."""


def _log_pair(x: Value, *, is_moderate: bool) -> tuple[Value, Value]:
    """Return the logarithm of a positive float64 in two words.

    It is that of ``(1 + s/2) / (1 - s/2)``, which is ``s + s^3/12`` and less. What the
    quotient lost of s changes it by ``1 / (1 - s^2/4)`` times as much.
    """
    k, f = log_parts(x, is_moderate=is_moderate)
    under = fma(f, 0.5, 1.0)
    lost = fma(f, 0.5, 1.0 - under)
    s = f / under
    square = s * s
    # 1 - s/2 is 1 / (1 + f/2).
    rest = fma(-s, lost, fma(-s, under, f)) * fma(s, -0.5, 1.0)
    rest = fma(rest * square, fma(square, 0.0625, 0.25), rest)
    cube = square * s
    tail = fma(fma(s, s, -square), s, fma(square, s, -cube))
    series = fma(square, polynomial(square, LOG_PAIR_FIT), TWELFTH[1])
    cubic, low = two_product(cube, TWELFTH[0])
    cubic, low = fast_two_sum(cubic, fma(cube, series, fma(tail, TWELFTH[0], low)))
    high, lost = fast_two_sum(s, cubic)
    low = lost + (low + rest)
    total, lost = fast_two_sum(k * LN2_SHORT[0], high)
    return total, lost + fma(k, LN2_SHORT[1], low)


def _log_edges(size: Value, logarithm: Value) -> Value:
    """Give a logarithm its values at zero, infinity and NaN."""
    logarithm = select(size < INFINITY, logarithm, size)
    return select(size.equals(0.0), -INFINITY, logarithm)


def _power_of_size(size: Value, y: Value, *, is_moderate: bool) -> Value:
    """Return ``size ** y`` for a size, which is not negative."""
    if size.type == FLOAT:
        return power_of_single(size, y, is_moderate=is_moderate)
    high, low = _log_pair(size, is_moderate=is_moderate)
    high = high if is_moderate else _log_edges(size, high)
    product, lost = two_product(y, high)
    return exp_pair(product, fma(y, low, lost), is_moderate=is_moderate)


def moderate_power(x: Value, y: Value) -> Value:
    """Return ``x ** y`` of a positive number, neither it nor the result extreme."""
    return _power_of_size(x, y, is_moderate=True)


def _power_floats(x: Value, y: Value) -> Value:
    """Return ``x ** y``; what is infinite or NaN goes the way of all numbers.

    Only a result of 1 that no product gives is chosen, and what signs make of others.
    """
    y = clamp(y, -MOST, MOST)
    result = _power_of_size(absolute(x), y, is_moderate=False)
    whole = rint(y).equals(y)
    half = y * 0.5
    odd = whole & rint(half).differs(half)
    result = select(odd, copysign(result, x), result)
    result = select(_is_below_zero(x) & ~whole, x.constant(NAN), result)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def _is_below_zero(x: Value) -> Value:
    """Tell whether ``x`` is negative and finite, by its bits."""
    p, pattern = precision_of(x), bits(x)
    zero = -(1 << (p.bits - 1))
    infinity = zero + ((2 * p.bias + 1) << p.fraction_bits)
    return (pattern < infinity) & pattern.differs(zero)


def _power_integers(a: Value, b: Value) -> Value:
    """Multiply the squares that the exponent's bits choose, wrapping."""
    result, square = a.constant(1), a
    for position in range(a.type.width):
        chosen = (b.logical_right(position) & 1).differs(0)
        result = select(chosen, result * square, result)
        square = square * square
    return result


def power(kind: Any, a: Value, b: Value) -> Value:
    """Return a to the power b; integer exponents are not negative."""
    return _power_floats(a, b) if is_float(kind) else _power_integers(a, b)


def hypot(a: Value, b: Value) -> Value:
    """Return the length of the hypotenuse, without overflow on the way."""
    if a.type == FLOAT:
        x, y = to_double(a), to_double(b)
        result = to_single(sqrt(fma(x, x, y * y)))
    else:
        result = _hypot_double(absolute(a), absolute(b))
    endless = absolute(a).equals(INFINITY) | absolute(b).equals(INFINITY)
    return select(endless, INFINITY, result)


def _hypot_double(a: Value, b: Value) -> Value:
    swapped = b > a
    large, small = select(swapped, b, a), select(swapped, a, b)
    # A power of two near the larger makes it about one; the limits keep it and its
    # reciprocal normal numbers.
    exponent = bits(large).logical_right(DOUBLE.fraction_bits)
    exponent = select(exponent < 64, exponent.constant(64), exponent)
    exponent = select(exponent > 1982, exponent.constant(1982), exponent)
    scale = from_bits(exponent << DOUBLE.fraction_bits)
    inverse = from_bits((2 * DOUBLE.bias - exponent) << DOUBLE.fraction_bits)
    x, y = large * inverse, small * inverse
    square, lost = two_product(x, x)
    total, error = fast_two_sum(square, y * y)
    return sqrt(total + (lost + error)) * scale
