# SPDX-License-Identifier: Apache-2.0
"""Trigonometric functions and their inverses on the CPU."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from llvmlite import ir

from nfuser.codegen.primitives.cpu.math.exponential import INFINITY, precision_of
from nfuser.codegen.primitives.cpu.math.tables import DOUBLE
from nfuser.codegen.primitives.cpu.math.turns import (
    HUGE_EXPONENT,
    HUGE_LIFT,
    PER_HALF_PI,
    TURN_PIECES,
    TWO_PI,
    turn_rows,
)
from nfuser.codegen.primitives.cpu.math.value import (
    BOOL,
    FLOAT,
    I64,
    Value,
    absolute,
    bits,
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
    two_sum,
)
from nfuser.codegen.primitives.cpu.math.value import DOUBLE as DOUBLE_TYPE

TAN_EIGHTH_PI = 0.41421356237309503
ROW_STEP_BITS = 5
FIRST_ROW_EXPONENT = 20


Reach: TypeAlias = Literal["any", "bounded", "narrow"]
"""Angles of any size, up to 2^24, or (of float32) up to 2^13."""

BOUND, NARROW_BOUND = 2.0**24, 2.0**13


class _Angle(NamedTuple):
    quadrant: Value  # an integer; only its two low bits count
    rest: Value  # within pi / 4 of zero
    tail: Value


def _fraction(x: Value) -> Value:
    return x - rint(x)


def _quadrant(turns: Value) -> tuple[Value, Value]:
    """Return the nearest quadrant as an integer and as a part of a turn."""
    shifted = fma(turns, 4.0, DOUBLE.round_shift)
    return bits(shifted), (shifted - DOUBLE.round_shift) * 0.25


def _reduce_single(x: Value) -> _Angle:
    """Reduce a non-negative float32 of any size, in float64 and without branches.

    Every product with a piece of 1 / (2 pi) is exact but the last, so whole turns
    vanish exactly. The nearest quarter is taken off before the finer pieces are added:
    a result near zero keeps its relative accuracy.
    """
    wide = to_double(x)
    *coarse, finest = TURN_PIECES
    pieces = [_fraction(wide * piece) for piece in coarse]
    pieces.append(wide * finest)
    turns = pieces[0]
    for piece in pieces[1:]:
        turns = turns + piece
    quadrant, quarters = _quadrant(turns)
    rest = pieces[0] - quarters
    for piece in pieces[1:]:
        rest = rest + piece
    return _narrowed(quadrant, rest * TWO_PI[0])


def _narrowed(quadrant: Value, radians: Value) -> _Angle:
    """Return an angle that is known in float64 as a sum of float32."""
    near = to_single(radians)
    tail = to_single(radians - to_double(near))
    low = quadrant.make(quadrant.builder.trunc(quadrant.ir, ir.IntType(32)))
    return _Angle(low, near, tail)


def _reduce_bounded_single(x: Value) -> _Angle:
    """Reduce a non-negative float32 up to 2^24, in float64 (Cody and Waite).

    No such float32 comes nearer to a quarter turn than 2^-28, and two words of pi / 2
    leave out less than 2^-62 of any.
    """
    wide = to_double(x)
    first, second, _ = DOUBLE.half_pi_words
    shifted = fma(wide, PER_HALF_PI, DOUBLE.round_shift)
    count = shifted - DOUBLE.round_shift
    rest = fma(count, -second, fma(count, -first, wide))
    return _narrowed(bits(shifted), rest)


def _turn_table(module: Any) -> Any:
    """Return the global table of 1 / (2 pi), one row of four words a range of size."""
    name = "nfuser.turn_rows"
    if name in module.globals:
        return module.globals[name]
    words = [
        word for row in turn_rows(ROW_STEP_BITS, FIRST_ROW_EXPONENT) for word in row
    ]
    kind = ir.ArrayType(DOUBLE_TYPE, len(words))
    table: Any = ir.GlobalVariable(module, kind, name)
    table.initializer = ir.Constant(kind, words)
    table.global_constant = True
    table.linkage = "internal"
    return table


def _turn_words(x: Value) -> list[Value]:
    """Return the four words of 1 / (2 pi) that matter for a number of this size."""
    exponent = bits(x).logical_right(DOUBLE.fraction_bits)
    first = DOUBLE.bias + FIRST_ROW_EXPONENT
    above = select(exponent > first, exponent - first, 0)
    start = (above >> ROW_STEP_BITS) << 2
    builder = x.builder
    table = _turn_table(builder.module)
    zero = ir.Constant(I64, 0)
    words: list[Value] = []
    for k in range(4):
        address = builder.gep(table, [zero, (start + k).ir], inbounds=True)
        words.append(x.make(builder.load(address)))
    return words


def _reduce_double(x: Value) -> _Angle:
    """Reduce a non-negative float64 of any size (Payne and Hanek, in float64)."""
    word = _turn_words(x)
    x = select(x < 2.0**HUGE_EXPONENT, x, x * 2.0**-HUGE_LIFT)
    high1, low1 = two_product(x, word[0])
    high2, low2 = two_product(x, word[1])
    high3, low3 = two_product(x, word[2])
    first, second, third = _fraction(high1), _fraction(low1), _fraction(high2)
    quadrant, quarters = _quadrant(first + second + third + (low2 + high3))
    rest, error1 = two_sum(first - quarters, second)
    rest, error2 = two_sum(rest, third)
    rest, error3 = two_sum(rest, low2)
    rest, error4 = two_sum(rest, high3)
    tail = (error1 + error2) + ((error3 + error4) + fma(x, word[3], low3))
    rest, tail = fast_two_sum(rest, tail)
    radians, lost = two_product(rest, TWO_PI[0])
    return _Angle(quadrant, radians, fma(rest, TWO_PI[1], fma(tail, TWO_PI[0], lost)))


def _reduce_in_place(x: Value) -> _Angle:
    """Reduce a non-negative float32 up to 2^13, or a float64 up to 2^24, in its type.

    By Cody and Waite, with FMA. The first difference is exact: a multiple of the first
    word's last bit, and below 1. The second word has so few bits that its product is
    exact, and so is what the second difference loses.
    """
    precision = precision_of(x)
    first, second, third = precision.half_pi_words
    shifted = fma(x, PER_HALF_PI, precision.round_shift)
    count = shifted - precision.round_shift
    near = fma(count, -first, x)
    rest = fma(count, -second, near)
    lost = fma(count, -second, near - rest)
    return _Angle(bits(shifted), rest, fma(count, -third, lost))


def _reduce(x: Value, reach: Reach, *, in_place: bool = True) -> _Angle:
    """Reduce an angle as its own size asks, whatever the others reach.

    So it has the same bits wherever it is computed: what is equal to a largest element
    in one loop is equal to it in the next. A tangent of float32 has none ``in_place``.
    """
    size = absolute(x)
    if x.type != FLOAT:
        near = _reduce_in_place(size)
        far = _reduce_double(size) if reach == "any" else near
        return _chosen(size <= BOUND, near, far)
    if reach == "narrow":
        return _reduce_in_place(size)
    found = _reduce_bounded_single(size)
    if reach == "any":
        found = _chosen(size <= BOUND, found, _reduce_single(size))
    near = _reduce_in_place(size) if in_place else found
    return _chosen(size <= NARROW_BOUND, near, found)


def _chosen(condition: Value, one: _Angle, other: _Angle) -> _Angle:
    if one is other:
        return one
    return _Angle(*(select(condition, a, b) for a, b in zip(one, other, strict=True)))


def _side(angle: _Angle, is_cosine: Value) -> Value:
    """Return cosine or sine of what is left of an angle, quadrant aside.

    Coefficients are chosen before the polynomial, so that there is one of them.
    """

    def either(cosine: Value, sine: Value | float) -> Value:
        return select(is_cosine, cosine, sine)

    r, tail = angle.rest, angle.tail
    fits = precision_of(r).fits
    z = r * r
    near_one = fma(z, -0.5, 1.0)
    lost = fma(z, -0.5, 1.0 - near_one)
    fit = [either(r.constant(c), s) for c, s in zip(fits.cos, fits.sin, strict=True)]
    rest = either(fma(-r, tail, lost), tail * near_one)
    rest = fma(either(z, r) * z, polynomial(z, fit), rest)
    return either(near_one, r) + rest


def _negate_where(x: Value, quadrant: Value) -> Value:
    """Negate where bit 1 of the quadrant is set."""
    width = precision_of(x).bits
    return from_bits(bits(x) ^ ((quadrant & 2) << (width - 2)))


def sin(x: Value, reach: Reach = "any") -> Value:
    """Return the sine; `reach` says of what angles."""
    angle = _reduce(x, reach)
    side = _side(angle, (angle.quadrant & 1).differs(0))
    result = _negate_where(side, angle.quadrant)
    sign = bits(x) ^ bits(absolute(x))
    result = from_bits(bits(result) ^ sign)
    # A bounded one rounds to itself where it is tiny.
    return (
        result
        if reach != "any"
        else select(absolute(x) < precision_of(x).tiny, x, result)
    )


def cos(x: Value, reach: Reach = "any") -> Value:
    """Return the cosine; `reach` says of what angles."""
    angle = _reduce(x, reach)
    side = _side(angle, (angle.quadrant & 1).equals(0))
    return _negate_where(side, angle.quadrant + 1)


class _Sides(NamedTuple):
    sine: Value
    cosine: Value


def _sides(angle: _Angle) -> _Sides:
    """Return sine and cosine for the tangent, a float32's in float64."""
    if angle.rest.type != FLOAT:
        never, always = (angle.rest.make(ir.Constant(BOOL, k)) for k in (0, 1))
        return _Sides(_side(angle, never), _side(angle, always))
    r = to_double(angle.rest) + to_double(angle.tail)
    fits = precision_of(angle.rest).fits
    z = r * r
    cosine = fma(z * z, polynomial(z, fits.cos), fma(z, -0.5, 1.0))
    return _Sides(fma(z * r, polynomial(z, fits.sin), r), cosine)


def tan(x: Value, reach: Reach = "any") -> Value:
    """Return the tangent; `reach` says of what angles."""
    angle = _reduce(x, reach, in_place=False)
    sides = _sides(angle)
    odd = (angle.quadrant & 1).differs(0)
    above = select(odd, -sides.cosine, sides.sine)
    result = above / select(odd, sides.sine, sides.cosine)
    result = to_single(result) if x.type == FLOAT else result
    sign = bits(x) ^ bits(absolute(x))
    result = from_bits(bits(result) ^ sign)
    return select(absolute(x) < precision_of(x).tiny, x, result)


class _Arcsine(NamedTuple):
    """asin(sqrt((1 - size) / 2)) where ``size > 1/2``, else asin(size): a sum."""

    big: Value
    root: Value
    rest: Value


def _arcsine_of_half(size: Value) -> _Arcsine:
    big = size > 0.5
    z = select(big, (1.0 - size) * 0.5, size * size)
    root = select(big, sqrt(z), size)
    fit = precision_of(size).fits.asin
    return _Arcsine(big, root, root * z * polynomial(z, fit))


def asin(x: Value) -> Value:
    """Return the inverse sine."""
    high, low = precision_of(x).constants.half_pi
    big, root, rest = _arcsine_of_half(absolute(x))
    # The first difference is exact or below the last digit of the result.
    outer = (high - (root + root)) - ((rest + rest) - low)
    return copysign(select(big, outer, root + rest), x)


def acos(x: Value) -> Value:
    """Return the inverse cosine."""
    constants = precision_of(x).constants
    big, root, rest = _arcsine_of_half(absolute(x))
    inner = root + rest
    negative = x < 0.0
    twice = inner + inner
    far = constants.pi[0] - (twice - constants.pi[1])
    high, low = constants.half_pi
    near = high - (copysign(inner, x) - low)
    return select(big, select(negative, far, twice), near)


def _arctangent(over: Value, under: Value) -> tuple[Value, Value]:
    """Return atan(over / under) as a sum, for a ratio within tan(pi / 8) of zero."""
    ratio = over / under
    z = ratio * ratio
    return ratio, ratio * z * polynomial(z, precision_of(over).fits.atan)


def atan(x: Value) -> Value:
    """Return the inverse tangent."""
    constants = precision_of(x).constants
    size = absolute(x)
    middle = size > TAN_EIGHTH_PI
    far = size > 1.0 / TAN_EIGHTH_PI
    over = select(far, -1.0, select(middle, size - 1.0, size))
    under = select(far, size, select(middle, size + 1.0, 1.0))
    ratio, rest = _arctangent(over, under)
    result = ratio + rest
    for where, (high, low) in (
        (middle, constants.quarter_pi),
        (far, constants.half_pi),
    ):
        result = select(where, (high + ratio) + (rest + low), result)
    return copysign(result, x)


class _Octant(NamedTuple):
    """An angle in the first octant: ratio + rest, and pi / 4 if in its middle."""

    ratio: Value
    rest: Value
    middle: Value
    steep: Value  # whether the point is nearer to the y axis


def atan2(y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y)."""
    height, width = absolute(y), absolute(x)
    steep = height > width
    small = select(steep, width, height)
    large = select(steep, height, width)
    # Equal infinities act as equal numbers; any number over infinity is zero; and a
    # quarter keeps the sum below from overflow.
    endless = large.equals(INFINITY)
    small = select(endless, select(small.equals(INFINITY), 1.0, small * 0.0), small)
    large = select(endless, 1.0, select(large.equals(0.0), 1.0, large))
    huge = large > 2.0 ** (precision_of(x).bias - 1)
    small = select(huge, small * 0.25, small)
    large = select(huge, large * 0.25, large)
    middle = small > large * TAN_EIGHTH_PI
    ratio, rest = _arctangent(
        select(middle, small - large, small), select(middle, small + large, large)
    )
    return _place(y, x, _Octant(ratio, rest, middle, steep))


def _place(y: Value, x: Value, octant: _Octant) -> Value:
    """Turn an angle of the first octant into that of the point's own octant."""
    constants = precision_of(x).constants
    high, low = constants.quarter_pi
    base = select(octant.middle, x.constant(high), 0.0)
    rest = select(octant.middle, x.constant(low), 0.0)
    # One signed sum of constants, so that only the last additions round much.
    high, low = constants.half_pi
    base = select(octant.steep, high - base, base)
    rest = select(octant.steep, low - rest, rest)
    backward = bits(x) < 0
    high, low = constants.pi
    base = select(backward, high - base, base)
    rest = select(backward, low - rest, rest)
    flips = octant.steep ^ backward
    ratio = select(flips, -octant.ratio, octant.ratio)
    rest = rest + select(flips, -octant.rest, octant.rest)
    result = copysign((base + ratio) + rest, y)
    return select(x.is_nan() | y.is_nan(), x + y, result)
