# SPDX-License-Identifier: Apache-2.0
"""Powers and hypotenuses on the CPU."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

from nfuser.codegen.primitives.cpu.arithmetic import is_float
from nfuser.codegen.primitives.cpu.math.exponential import (
    INFINITY,
    NAN,
    exp_pair,
    log_parts,
)
from nfuser.codegen.primitives.cpu.math.tables import (
    DOUBLE,
    EXP2_NARROW_FIT,
    LOG2_NARROW_FIT,
    LOG_PAIR_FIT,
    SINGLE,
)
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    Value,
    absolute,
    bits,
    clamp,
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
    two_sum,
)

TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN2_SHORT = (0.6931471803691238, 1.9082149292705877e-10)
"""ln(2), its first word short enough for exact products with exponents."""


def _pair_product(
    a: tuple[Value, Value], b: tuple[Value, Value]
) -> tuple[Value, Value]:
    high, low = two_product(a[0], b[0])
    return high, fma(a[0], b[1], fma(a[1], b[0], low))


def _log_pair(x: Value) -> tuple[Value, Value]:
    """Return the logarithm of a positive float64 in two words."""
    k, f = log_parts(x)
    under = f + 2.0
    lost = f - (under - 2.0)
    s = f / under
    s_pair = (s, (fma(-s, under, f) - s * lost) / under)
    z = _pair_product(s_pair, s_pair)
    series = fma(z[0], polynomial(z[0], LOG_PAIR_FIT), TWO_THIRDS[1])
    weight = fast_two_sum(x.constant(TWO_THIRDS[0]), series)
    cubic = _pair_product(s_pair, _pair_product(z, weight))
    high, low = fast_two_sum(s + s, cubic[0])
    low = low + (cubic[1] + (s_pair[1] + s_pair[1]))
    total, rest = two_sum(k * LN2_SHORT[0], high)
    return fast_two_sum(total, rest + fma(k, LN2_SHORT[1], low))


def _power_of_single(size: Value, y: Value) -> Value:
    """Return ``size ** y`` of float32, in float64 and without a quotient.

    Logarithm and power are right to 2^-32, by polynomials of no more than that; the
    result is rounded once, subnormal or not.
    """
    k, f = log_parts(size)
    wide = to_double(f)
    logarithm = fma(wide, polynomial(wide, LOG2_NARROW_FIT), to_double(k))
    product = clamp(to_double(y) * logarithm, *SINGLE.exp2_range)
    shifted = product + DOUBLE.round_shift
    rest = product - (shifted - DOUBLE.round_shift)
    near = fma(rest, polynomial(rest, EXP2_NARROW_FIT), 1.0)
    exponent = bits(shifted) + (DOUBLE.bias - DOUBLE.shift_bits)
    return to_single(near * from_bits(exponent << DOUBLE.fraction_bits))


def _power_of_size(size: Value, y: Value) -> Value:
    """Return ``size ** y`` for a positive finite size."""
    if size.type == FLOAT:
        return _power_of_single(size, y)
    high, low = _log_pair(size)
    product, lost = two_product(y, high)
    return exp_pair(product, fma(y, low, lost))


def _power_floats(x: Value, y: Value) -> Value:
    size = absolute(x)
    ordinary = (size > 0.0) & (size < INFINITY)
    result = _power_of_size(select(ordinary, size, 1.0), y)
    # Zero and infinity to a power: one of the two, by which and by the sign of y.
    vanishes = size.equals(0.0) ^ (y < 0.0)
    result = select(ordinary, result, select(vanishes, x.constant(0.0), INFINITY))
    whole = rint(y).equals(y)
    half = y * 0.5
    odd = whole & rint(half).differs(half) & (absolute(y) < INFINITY)
    negative = bits(x) < 0
    result = select(odd & negative, -result, result)
    result = select((x < 0.0) & ordinary & ~whole, x.constant(NAN), result)
    result = select(x.is_nan() | y.is_nan(), x + y, result)
    endless = absolute(y).equals(INFINITY)
    one = y.equals(0.0) | x.equals(1.0) | (size.equals(1.0) & endless)
    return select(one, 1.0, result)


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
