# SPDX-License-Identifier: Apache-2.0
"""Powers and hypotenuses on the CPU."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from nfuser.codegen.primitives.cpu.arithmetic import is_float
from nfuser.codegen.primitives.cpu.math.exponential import (
    INFINITY,
    NAN,
    exp_pair,
    exp_pair_inside,
    log_parts,
    precision_of,
)
from nfuser.codegen.primitives.cpu.math.lookup import lookup, takes_entries
from nfuser.codegen.primitives.cpu.math.power_tables import (
    EXP2_FIT,
    EXP2_NARROW_FIT,
    EXP2_SINGLE,
    INVERSES,
    INVERSES_SINGLE,
    LN2_SHORT,
    LOG2_FIT,
    LOG2_NARROW_FIT,
    LOG2_SINGLE,
    LOG2_SINGLE_REST,
    LOG_FIT,
    LOGARITHMS,
    LOGARITHMS_REST,
    PARTS_BITS,
    PARTS_BITS_SINGLE,
)
from nfuser.codegen.primitives.cpu.math.tables import DOUBLE, SINGLE
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
    unless_rare,
)

if TYPE_CHECKING:
    from collections.abc import Callable

INSIDE = 700.0
"""The exponential of what is less in size is a normal number."""
INSIDE_SINGLE = 125.0
"""The same to base 2, and of float32."""
MOST = 2.0**64
"""An exponent of this size makes 0 or infinity of any number but 1."""
SIXTEENTHS = 1.5 * 2.0**48
"""Added to a float64, it rounds to a multiple of 1/16."""


class _Parts(NamedTuple):
    """What a positive number is: ``2^exponent * mantissa``."""

    exponent: Value
    mantissa: Value  # near 1 to near 2
    place: Value  # of the mantissa in tables, in its last bits


def _parts(x: Value, bits_of_place: int) -> _Parts:
    """Split a positive normal number."""
    p = precision_of(x)
    half = 1 << (p.fraction_bits - bits_of_place - 1)
    pattern = bits(x)
    shifted = pattern + (half - p.one_bits)
    exponent = (shifted >> p.fraction_bits) + p.shift_bits
    mantissa = pattern - (shifted & -(1 << p.fraction_bits))
    place = shifted.logical_right(p.fraction_bits - bits_of_place)
    return _Parts(from_bits(exponent) - p.round_shift, from_bits(mantissa), place)


def _any_parts(x: Value, bits_of_place: int) -> _Parts:
    """Split a size, subnormal or not; what is infinite or NaN has parts as well."""
    p = precision_of(x)
    small = x < p.smallest_normal
    lift = p.fraction_bits + 2
    parts = _parts(select(small, x * 2.0**lift, x), bits_of_place)
    lifted = select(small, x.constant(float(lift)), 0.0)
    return parts._replace(exponent=parts.exponent - lifted)


def _log_edges(size: Value, logarithm: Value) -> Value:
    """Give a logarithm its values at zero, infinity and NaN."""
    logarithm = select(size < INFINITY, logarithm, size)
    return select(size.equals(0.0), -INFINITY, logarithm)


def _log_pair(parts: _Parts) -> tuple[Value, Value]:
    """Return the logarithm of a float64 in two words."""
    k, m, place = parts
    r = fma(m, lookup(INVERSES, place), -1.0)
    whole = fma(k, LN2_SHORT[0], lookup(LOGARITHMS, place))
    low = fma(k, LN2_SHORT[1], lookup(LOGARITHMS_REST, place))
    square, rest = two_product(r, r * -0.5)
    high, lost = fast_two_sum(whole, r)
    high, more = fast_two_sum(high, square)
    low = (low + rest) + (lost + more)
    low = fma(r * r * r, polynomial(r, LOG_FIT), low)
    return fast_two_sum(high, low)


def _log2_of_single(parts: _Parts) -> tuple[Value, Value]:
    """Return the logarithm to base 2 of a float32 as a sum of two float64.

    It is right to 2^-37; only the first terms of its polynomial need more digits than a
    float32 has.
    """
    k, m, place = parts
    r = fma(m, lookup(INVERSES_SINGLE, place), -1.0)
    whole = k + lookup(LOG2_SINGLE, place)
    square = r * r
    first, second = (fma(r, LOG2_FIT[n + 1], LOG2_FIT[n]) for n in (2, 4))
    bend = fma(square, second, first)
    rest = fma(square * r, bend, lookup(LOG2_SINGLE_REST, place))
    wide = to_double(r)
    near = fma(wide, fma(wide, LOG2_FIT[1], LOG2_FIT[0]), to_double(whole))
    return near, to_double(rest)


def _product_of_single(parts: _Parts, y: Value) -> Value:
    high, low = _log2_of_single(parts)
    wide = to_double(y)
    return fma(wide, low, wide * high)


def _exp2_to_single(x: Value) -> Value:
    """Return 2^x as a float32, which is rounded once, subnormal or not."""
    shifted = x + SIXTEENTHS
    rest = x - (shifted - SIXTEENTHS)
    first, second = (fma(rest, EXP2_FIT[n + 1], EXP2_FIT[n]) for n in (0, 2))
    slope = fma(rest * rest, second, first)
    exponent = bits(shifted) << (DOUBLE.fraction_bits - 4)
    power = from_bits(bits(lookup(EXP2_SINGLE, bits(shifted))) + exponent)
    return to_single(fma(power * rest, slope, power))


def _power_of_single(size: Value, y: Value) -> Value:
    """Return ``size ** y`` of float32 by long polynomials, where tables are dear."""
    k, f = log_parts(size)
    wide = to_double(f)
    whole = to_double(_log_edges(size, k))
    logarithm = fma(wide, polynomial(wide, LOG2_NARROW_FIT), whole)
    product = clamp(to_double(y) * logarithm, *SINGLE.exp2_range)
    shifted = product + DOUBLE.round_shift
    rest = product - (shifted - DOUBLE.round_shift)
    near = fma(rest, polynomial(rest, EXP2_NARROW_FIT), 1.0)
    exponent = bits(shifted) + (DOUBLE.bias - DOUBLE.shift_bits)
    return to_single(near * from_bits(exponent << DOUBLE.fraction_bits))


def _power_of_size(size: Value, y: Value) -> Value:
    """Return ``size ** y`` for a size, which is not negative."""
    if size.type == FLOAT and not takes_entries():
        return _power_of_single(size, y)
    if size.type == FLOAT:
        parts = _any_parts(size, PARTS_BITS_SINGLE)
        parts = parts._replace(exponent=_log_edges(size, parts.exponent))
        product = _product_of_single(parts, y)
        return _exp2_to_single(clamp(product, *SINGLE.exp2_range))
    high, low = _log_pair(_any_parts(size, PARTS_BITS))
    high = _log_edges(size, high)
    product, lost = two_product(y, high)
    return exp_pair(product, fma(y, low, lost))


def _power_floats(x: Value, y: Value) -> Value:
    """Return ``x ** y``; what is infinite or NaN goes the way of all numbers.

    Only a result of 1 that no product gives is chosen, and what signs make of others.
    """
    y = clamp(y, -MOST, MOST)
    result = _power_of_size(absolute(x), y)
    whole = rint(y).equals(y)
    half = y * 0.5
    odd = whole & rint(half).differs(half)
    result = select(odd, copysign(result, x), result)
    result = select(_is_below_zero(x) & ~whole, x.constant(NAN), result)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def _power_inside(x: Value, y: Value) -> tuple[Value, Value]:
    """Return ``x ** y``, and where all is ordinary, so that it is right.

    An infinite exponent, or one that is not a number, gives a product of its kind.
    """
    if x.type == FLOAT:
        product = _product_of_single(_parts(x, PARTS_BITS_SINGLE), y)
        result, most = _exp2_to_single(product), INSIDE_SINGLE
    else:
        high, low = _log_pair(_parts(x, PARTS_BITS))
        product, lost = two_product(y, high)
        result, most = exp_pair_inside(product, fma(y, low, lost)), INSIDE
    return result, _is_normal(x) & (absolute(product) < most)


def _is_normal(x: Value) -> Value:
    """Tell whether ``x`` is positive, and neither subnormal, infinite nor NaN."""
    p = precision_of(x)
    lowest = -(1 << (p.bits - 1))
    # What is no such number comes, as a signed integer, after the last of them.
    from_least = bits(x) + (lowest - (1 << p.fraction_bits))
    return from_least < lowest + (2 * p.bias << p.fraction_bits)


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


def for_vectors(kind: Any) -> Callable[..., Value] | None:
    """Return what gives powers of vectors, the same numbers as `power`, if it is other.

    Float32 gains nothing by it where tables are dear.
    """
    if not is_float(kind) or (kind.bitwidth == 32 and not takes_entries()):
        return None
    return _power_of_vectors


def _power_of_vectors(rare: Any, x: Value, y: Value) -> Value:
    """Return the power of two vectors; ``rare`` is a function for those that have one.

    Mostly all bases of a vector are positive and all results ordinary, so that nothing
    has to be asked of each.
    """
    result, usual = _power_inside(x, y)
    return unless_rare(
        usual, result, lambda: x.make(x.builder.call(rare, [x.ir, y.ir]))
    )


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
