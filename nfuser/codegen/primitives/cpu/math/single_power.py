# SPDX-License-Identifier: Apache-2.0
"""Powers of float32 on the CPU: in pairs of float32, with tables of 32 numbers."""

from __future__ import annotations

from math import log2

from numpy import float32

from nfuser.codegen.primitives.cpu.math.exponential import INFINITY, scale_by
from nfuser.codegen.primitives.cpu.math.lookup import LookupTable, look_up
from nfuser.codegen.primitives.cpu.math.tables import SINGLE
from nfuser.codegen.primitives.cpu.math.value import (
    Value,
    bits,
    clamp,
    fast_two_sum,
    fma,
    from_bits,
    polynomial,
    select,
    to_float,
    two_product,
)

_STEPS = 5  # bits of the numbers of pieces that tables are of
_FRACTION = SINGLE.fraction_bits
_RECIPROCALS = (
    *(360, 352, 344, 336, 328, 324, 316, 312, 304, 300, 292, 288, 284, 280, 276, 268),
    *(264, 260, 256, 252, 244, 236, 228, 224, 216, 212, 206, 200, 196, 192, 188, 184),
)
"""Of numbers in the pieces that binades are cut into, times 256.

The product of each with a number of its piece, less 1, is a float32: no bit is lost.
"""
_FIRST = 0x3F350000  # the bits of the least number of a binade: piece 18 is around 1
_HIGH_BITS = 15  # of logarithms, behind the point: what exponents leave of a float32


def _words(numbers: list[float], step: float) -> tuple[list[float], list[float]]:
    """Return the multiples of ``step`` nearest to ``numbers``, and what is left."""
    high = [round(x / step) * step for x in numbers]
    return high, [x - h for x, h in zip(numbers, high, strict=True)]


def _single(number: float) -> float:
    return float(float32(number))


_LOGARITHMS = _words([-log2(x / 256) for x in _RECIPROCALS], 2.0**-_HIGH_BITS)
_POWERS = _words([2.0 ** (i / 32) for i in range(32)], 2.0**-_FRACTION)

RECIPROCAL = LookupTable("reciprocal", tuple(x / 256 for x in _RECIPROCALS))
LOG2_HIGH = LookupTable("log2_high", tuple(_LOGARITHMS[0]))
LOG2_LOW = LookupTable("log2_low", tuple(map(_single, _LOGARITHMS[1])))
EXP2_HIGH = LookupTable("exp2_high", tuple(_POWERS[0]))
EXP2_LOW = LookupTable("exp2_low", tuple(map(_single, _POWERS[1])))

LOG1P_FIT = (0.33333332, -0.25007602, 0.20010426)
"""(log(1 + r) - r + r^2 / 2) / r^3, |r| <= 0.023, within 2^-32 of r."""
EXP2_FIT = (0.69314718, 0.24022854, 0.05550453)
"""(2^r - 1) / r, |r| <= 1/64, within 2^-33."""
RANGE = (-160.0, 136.0)
"""Exponents outside make 0 or infinity, and so do those that are 8 further in."""
MOST_LOST = 4.0
_SHIFT = SINGLE.round_shift / 32  # adding it rounds to a multiple of 1/32


def _log2(x: Value, *, is_moderate: bool) -> tuple[Value, Value]:
    """Return the logarithm to base 2 of a positive number, in two words.

    The number is ``2^k (1 + r) / c``, with a reciprocal c of its piece, so that r is at
    most 0.023. Near 1 all but r is nothing. The result is within 2^-33 of itself.
    """
    small = None if is_moderate else x < SINGLE.smallest_normal
    if small is not None:
        x = select(small, x * 2.0**SINGLE.bits, x)
    shifted = bits(x) - _FIRST
    k = to_float(shifted >> _FRACTION)
    if small is not None:
        k = k - select(small, k.constant(SINGLE.bits), 0.0)
    piece = shifted >> (_FRACTION - _STEPS)
    mantissa = from_bits(bits(x) - (shifted & -(1 << _FRACTION)))
    r = fma(mantissa, look_up(RECIPROCAL, piece), -1.0)
    half = r * -0.5
    near = fma(r, half, r)
    tail = fma(r, half, r - near)  # exact
    tail = fma(r * r * r, polynomial(r, LOG1P_FIT), tail)
    product, lost = two_product(near, SINGLE.constants.log2e[0])
    lost = fma(near, SINGLE.constants.log2e[1], lost)
    lost = fma(tail, SINGLE.constants.log2e[0], lost)
    whole = k + look_up(LOG2_HIGH, piece)  # exact
    high, rest = fast_two_sum(whole, product)
    return high, rest + (lost + look_up(LOG2_LOW, piece))


def power_of_single(size: Value, y: Value, *, is_moderate: bool) -> Value:
    """Return ``size ** y`` of float32, for a size, which is not negative."""
    high, low = _log2(size, is_moderate=is_moderate)
    if not is_moderate:
        high = select(size < INFINITY, high, size)
        high = select(size.equals(0.0), -INFINITY, high)
    product, lost = two_product(y, high)
    lost = fma(y, low, lost)
    if not is_moderate:
        product = clamp(product, *RANGE)
        # Only beyond the range is it as large as that, or infinite, or NaN.
        lost = select(lost > -MOST_LOST, lost, -MOST_LOST)
        lost = select(lost < MOST_LOST, lost, MOST_LOST)
    shifted = (product + lost) + _SHIFT
    rest = (product - (shifted - _SHIFT)) + lost
    step = bits(shifted)
    near = look_up(EXP2_HIGH, step)
    tail = fma(near * rest, polynomial(rest, EXP2_FIT), look_up(EXP2_LOW, step))
    exponent = (step - int(float32(_SHIFT).view("i4"))) >> _STEPS
    if is_moderate:
        return from_bits(bits(near + tail) + (exponent << _FRACTION))
    return scale_by(near + tail, exponent)
