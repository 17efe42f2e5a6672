# SPDX-License-Identifier: Apache-2.0
"""Exponentials, logarithms and the hyperbolic functions on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nfuser.codegen.primitives.cpu.math.tables import DOUBLE, SINGLE
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    I32,
    Value,
    absolute,
    bits,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    ldexp,
    polynomial,
    select,
    sqrt,
)
from nfuser.codegen.primitives.cpu.target import has_ldexp

if TYPE_CHECKING:
    from nfuser.codegen.primitives.cpu.math.precision import Precision

INFINITY = float("inf")
NAN = float("nan")
MOST_TAIL = 2.0**-10


def precision_of(x: Value) -> Precision:
    """Return the precision of a float value or of the integer that holds its bits."""
    return SINGLE if x.type in (FLOAT, I32) else DOUBLE


def _power_of_two(n: Value) -> Value:
    p = precision_of(n)
    return from_bits((n + p.bias) << p.fraction_bits)


def scale_by(x: Value, n: Value) -> Value:
    """Multiply by 2^n, at once or in two steps: of these only one rounds."""
    if has_ldexp():
        return ldexp(x, n)
    half = n >> 1
    return x * _power_of_two(half) * _power_of_two(n - half)


class _Nearest(NamedTuple):
    n: Value  # as an integer
    whole: Value  # the same as a float
    exact: Value  # what n times the first word of ln2 leaves


class _Reduced(NamedTuple):
    n: Value  # the nearest integer, as an integer
    rest: Value
    tail: Value  # what rounding lost of the rest


def _nearest(x: Value) -> _Nearest:
    """Return the multiple of ln2 that is nearest to ``x``."""
    p = precision_of(x)
    shifted = fma(x, p.constants.log2e[0], p.round_shift)
    whole = shifted - p.round_shift
    exact = fma(whole, -p.constants.ln2[0], x)
    return _Nearest(bits(shifted) - p.shift_bits, whole, exact)


def _reduce(x: Value) -> _Reduced:
    """Write ``x`` as ``n * ln2 + rest``."""
    low = precision_of(x).constants.ln2[1]
    n, whole, exact = _nearest(x)
    rest = fma(whole, -low, exact)
    return _Reduced(n, rest, fma(whole, -low, exact - rest))


def exp(x: Value) -> Value:
    """Return e^x."""
    p = precision_of(x)
    n, rest, _ = _reduce(clamp(x, *p.exp_range))
    return scale_by(fma(rest * rest, polynomial(rest, p.fits.exp), rest) + 1.0, n)


def exp_pair(x: Value, tail: Value, *, is_moderate: bool = False) -> Value:
    """Return e^(x + tail) for a tail far below x; beyond the range any tail will do.

    It is in the range of normal results where it is moderate.
    """
    p = precision_of(x)
    if not is_moderate:
        x = clamp(x, *p.exp_range)
        # Only beyond the range is a tail this large, or infinite, or NaN.
        tail = select(tail > -MOST_TAIL, tail, -MOST_TAIL)
        tail = select(tail < MOST_TAIL, tail, MOST_TAIL)
    n, whole, exact = _nearest(x)
    tail = fma(whole, -p.constants.ln2[1], tail)
    rest = exact + tail
    near = fma(rest * rest, polynomial(rest, p.fits.exp), tail)
    high, lost = fast_two_sum(x.constant(1.0), exact)
    return scale_by(high + (near + lost), n)


def exp2(x: Value) -> Value:
    """Return 2^x."""
    p = precision_of(x)
    x = clamp(x, *p.exp2_range)
    shifted = x + p.round_shift
    rest = x - (shifted - p.round_shift)
    constant, *others = p.fits.exp2
    # Added alone: a long polynomial rounds twice at the size of its constant.
    near = fma(rest, fma(rest, polynomial(rest, others), constant), 1.0)
    return scale_by(near, bits(shifted) - p.shift_bits)


def scale(x: Value, n: Value) -> Value:
    """Return ``x * 2**n`` rounded once, for any whole float ``n``."""
    p = precision_of(x)
    top, bottom = p.bias, 1 - p.bias
    # At most two steps bring the exponent where its power is a normal number. Down,
    # each stops above the subnormal numbers, unless the result is far below them.
    far = p.bias - 1 - p.fraction_bits - 1
    n = clamp(n, float(2 * bottom - 2 * p.fraction_bits), float(2 * top + far))
    for _ in range(2):
        is_large, is_small = n > float(top), n < float(bottom)
        x = select(is_large, x * 2.0**top, select(is_small, x * 2.0**-far, x))
        n = select(is_large, n - float(top), select(is_small, n + float(far), n))
    n = clamp(n, float(bottom), float(top))
    return x * _power_of_two(bits(n + p.round_shift) - p.shift_bits)


class _Quarter(NamedTuple):
    less_one: Value  # (e^x - 1) / 4
    whole: Value  # e^x / 4


def _quarter_exp(x: Value) -> _Quarter:
    """Return quarters, because e^x itself overflows before sinh(x) does."""
    n, rest, lost = _reduce(x)
    p = precision_of(x)
    near = fma(rest * rest, polynomial(rest, p.fits.expm1), lost)
    scale = _power_of_two(n - 2)
    less_one = fma(scale, near, fma(scale, rest, scale - 0.25))
    return _Quarter(less_one, fma(scale, rest + near, scale))


def expm1(x: Value) -> Value:
    """Return e^x - 1."""
    p = precision_of(x)
    result = _quarter_exp(clamp(x, p.expm1_floor, p.exp_range[1])).less_one * 4.0
    return select(absolute(x) < p.tiny * p.tiny, x, result)


def sinh(x: Value) -> Value:
    """Return the hyperbolic sine."""
    p = precision_of(x)
    size = absolute(x)
    quarter = _quarter_exp(clamp(size, 0.0, p.sinh_limit)).whole
    far = (quarter - 0.0625 / quarter) * 2.0
    square = x * x
    near = fma(x * square, polynomial(square, p.fits.sinh), x)
    return select(size < 1.0, near, copysign(far, x))


def cosh(x: Value) -> Value:
    """Return the hyperbolic cosine."""
    p = precision_of(x)
    quarter = _quarter_exp(clamp(absolute(x), 0.0, p.sinh_limit)).whole
    return (quarter + 0.0625 / quarter) * 2.0


def tanh(x: Value) -> Value:
    """Return the hyperbolic tangent."""
    p = precision_of(x)
    square = x * x
    near = fma(x * square, polynomial(square, p.fits.tanh), x)
    size = clamp(absolute(x), 0.0, p.tanh_limit)
    n, rest, _ = _reduce(size + size)
    scale = _power_of_two(n)
    power = fma(rest * rest, polynomial(rest, p.fits.exp), rest)
    far = 1.0 - 2.0 / (fma(scale, power, scale) + 1.0)
    # The sign is put on both, because the sum in `near` turns -0 into 0.
    return copysign(select(absolute(x) < 0.6, near, far), x)


class _LogParts(NamedTuple):
    exponent: Value  # a float integer k
    fraction: Value  # f, with x = 2^k (1 + f) and 1 + f near 1


def log_parts(x: Value, *, is_moderate: bool = False) -> _LogParts:
    """Split a positive number for the logarithms; a moderate one is not subnormal."""
    p = precision_of(x)
    if is_moderate:
        return _positive_log_parts(bits(x), p)
    small = x < p.smallest_normal
    lift = p.fraction_bits + 2
    k, f = _positive_log_parts(bits(select(small, x * 2.0**lift, x)), p)
    return _LogParts(k - select(small, x.constant(float(lift)), 0.0), f)


def _positive_log_parts(pattern: Value, p: Precision) -> _LogParts:
    """Split a positive normal number, given its bits."""
    shifted = pattern + (p.one_bits - p.sqrt_half_bits)
    biased = shifted.logical_right(p.fraction_bits)
    exponent = from_bits(biased + (p.shift_bits - p.bias)) - p.round_shift
    fraction_mask = (1 << p.fraction_bits) - 1
    mantissa = from_bits((shifted & fraction_mask) + p.sqrt_half_bits)
    return _LogParts(exponent, mantissa - 1.0)


def _log_rest(f: Value, half_square: Value) -> Value:
    """Return log(1 + f) - f + f^2 / 2."""
    s = f / (f + 2.0)
    z = s * s
    return s * fma(z, polynomial(z, precision_of(f).fits.log), half_square)


def _log_edges(x: Value, result: Value) -> Value:
    """Give a logarithm its values at zero, infinity, NaN and below zero."""
    outside = select(x.equals(0.0), x.constant(-INFINITY), NAN)
    result = select(x > 0.0, result, outside)
    return select(x.equals(INFINITY), x, result)


def log(x: Value, *, is_moderate: bool = False) -> Value:
    """Return the natural logarithm; a moderate number is positive and normal."""
    high, low = precision_of(x).constants.ln2
    k, f = log_parts(x, is_moderate=is_moderate)
    half_square = f * f * 0.5
    rest = fma(k, low, _log_rest(f, half_square))
    result = fma(k, high, f - (half_square - rest))
    return result if is_moderate else _log_edges(x, result)


def log_positive(x: Value) -> Value:
    """Return the logarithm of a positive number, neither subnormal nor infinite.

    It is within 3 ulp: where the exponent is not 0, its part of the result is larger
    than that of the fraction, and where it is 0 the fraction has all digits.
    """
    p = precision_of(x)
    k, f = _positive_log_parts(bits(x), p)
    s = f / (f + 2.0)
    z = s * s
    near = s * fma(z, polynomial(z, p.fits.log), 2.0)
    return fma(k, p.constants.ln2[0], near)


def log1p(x: Value) -> Value:
    """Return log(1 + x)."""
    high, low = precision_of(x).constants.ln2
    total = x + 1.0
    lost = select(x < 1.0, x - (total - 1.0), 1.0 - (total - x)) / total
    k, f = log_parts(total)
    half_square = f * f * 0.5
    rest = fma(k, low, _log_rest(f, half_square) + lost)
    result = fma(k, high, f - (half_square - rest))
    return copysign(_log_edges(total, result), x)


def _log_to_base(
    x: Value, base: tuple[float, float], two: tuple[float, float]
) -> Value:
    """Return log(x) times `base`, where `two` is that of 2."""
    k, f = log_parts(x)
    half_square = f * f * 0.5
    high = f - half_square
    low = ((f - high) - half_square) + _log_rest(f, half_square)
    product = high * base[0]
    rest = fma(high, base[0], -product) + fma(high, base[1], low * base[0])
    whole = k * two[0]
    total = whole + product
    # |whole| is either zero or above |product|: the sum's error is exact.
    rest = rest + fma(k, two[1], fma(k, two[0], -whole) + (product - (total - whole)))
    return _log_edges(x, total + rest)


def log2(x: Value) -> Value:
    """Return the logarithm to base 2."""
    return _log_to_base(x, precision_of(x).constants.log2e, (1.0, 0.0))


def log10(x: Value) -> Value:
    """Return the logarithm to base 10."""
    constants = precision_of(x).constants
    return _log_to_base(x, constants.log10e, constants.log10_2)


def logaddexp(a: Value, b: Value) -> Value:
    """Return log(e^a + e^b)."""
    larger = select(a > b, a, b)
    apart = a - b
    result = larger + log1p(exp(-absolute(apart)))
    result = select(apart.is_nan(), apart, result)
    # Equal infinities have no difference, and equal numbers need none.
    return select(a.equals(b), a + precision_of(a).constants.ln2[0], result)


def asinh(x: Value) -> Value:
    """Return the inverse hyperbolic sine."""
    p = precision_of(x)
    size = absolute(x)
    big = size > 2.0 ** (p.fraction_bits // 2 + 4)
    safe = select(big, 1.0, size)
    square = safe * safe
    near = safe + square / (sqrt(square + 1.0) + 1.0)
    result = log1p(select(big, size - 1.0, near))
    result = result + select(big, x.constant(p.constants.ln2[0]), 0.0)
    return select(size < p.tiny, x, copysign(result, x))


def acosh(x: Value) -> Value:
    """Return the inverse hyperbolic cosine."""
    p = precision_of(x)
    big = x > 2.0 ** (p.fraction_bits // 2 + 4)
    above = select(big, 1.0, x - 1.0)
    near = above + sqrt(fma(above, above, above + above))
    result = log1p(select(big, x - 1.0, near))
    result = result + select(big, x.constant(p.constants.ln2[0]), 0.0)
    return select(x < 1.0, x.constant(NAN), result)


def atanh(x: Value) -> Value:
    """Return the inverse hyperbolic tangent."""
    size = absolute(x)
    result = log1p((size + size) / (1.0 - size)) * 0.5
    return select(size < precision_of(x).tiny, x, copysign(result, x))
