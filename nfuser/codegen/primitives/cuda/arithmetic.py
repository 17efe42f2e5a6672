# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives on any number, with NumPy's integer results.

Integers wrap in their dtype, a division by zero gives 0, ``INT_MIN // -1`` wraps, and
a shift by a negative or over-long count gives 0, or -1 where a negative number shifts
right.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    BOOL,
    F32,
    FLOAT,
    I32,
    INTEGER,
    NUMBER,
    SIGNED,
    Site,
    Value,
    primitive,
    same,
    suffixed,
    types,
)
from nfuser.codegen.primitives.cuda.math import magnitude
from nfuser.codegen.primitives.divisors import greatest_common_divisor
from nfuser.codegen.primitives.philox import philox_word


def _negative(site: Site, x: Value) -> Value:
    if site.result in FLOAT:
        return site.builder.fsub(ir.Constant(x.type, -0.0), x)
    return _difference(site, ir.Constant(x.type, 0), x)


def _difference(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    if x.type.width >= 32:
        return b.sub(x, y)
    # ptxas of CUDA 13.0 takes neg.s16 of the smallest number for positive when it is
    # widened next; 32-bit arithmetic that it cannot narrow has no such case.
    kind = ir.FunctionType(I32, [I32, I32])
    subtract = ir.InlineAsm(kind, "sub.s32 $0, $1, $2;", "=r,r,r")
    return b.trunc(b.call(subtract, [b.sext(x, I32), b.sext(y, I32)]), x.type)


def _absolute(site: Site, x: Value) -> Value:
    if site.result in FLOAT:
        return magnitude(site, x)
    if site.result not in SIGNED:
        return x
    b = site.builder
    below = b.icmp_signed("<", x, ir.Constant(x.type, 0))
    return b.select(below, _negative(site, x), x)


def _sign(site: Site, x: Value) -> Value:
    b = site.builder
    zero, one = site.constant(site.result, 0), site.constant(site.result, 1)
    if site.result in FLOAT:
        unit = site.external(suffixed("copysign", site.result), x.type, [one, x])
        signed = b.select(b.fcmp_ordered("==", x, zero), zero, unit)
        return b.select(b.fcmp_unordered("uno", x, x), x, signed)
    positive = b.select(b.icmp_signed("==", x, zero), zero, one)
    if site.result not in SIGNED:
        return positive
    return b.select(
        b.icmp_signed("<", x, zero), site.constant(site.result, -1), positive
    )


def _invert(site: Site, x: Value) -> Value:
    return site.builder.not_(x)


def _add(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    return b.fadd(x, y) if site.result in FLOAT else b.add(x, y)


def _subtract(site: Site, x: Value, y: Value) -> Value:
    if site.result in FLOAT:
        return site.builder.fsub(x, y)
    return _difference(site, x, y)


def _multiply(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    return b.fmul(x, y) if site.result in FLOAT else b.mul(x, y)


def _less(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    if site.result in FLOAT:
        return b.fcmp_ordered("<", x, y)
    compare = b.icmp_signed if site.result in SIGNED else b.icmp_unsigned
    return compare("<", x, y)


def _extremum(site: Site, x: Value, y: Value, *, largest: bool) -> Value:
    b = site.builder
    if x.type == F32:  # one instruction from sm_80 on
        name = "max" if largest else "min"
        return site.assembly(f"{name}.NaN.f32 $0, $1, $2;", "=f,f,f", F32, [x, y])
    low, high = (y, x) if largest else (x, y)
    chosen = b.select(_less(site, low, high), x, y)
    if site.result not in FLOAT:
        return chosen
    # The comparison chose y if either is NaN: right unless x is the NaN.
    return b.select(b.fcmp_unordered("uno", x, x), x, chosen)


def _maximum(site: Site, x: Value, y: Value) -> Value:
    return _extremum(site, x, y, largest=True)


def _minimum(site: Site, x: Value, y: Value) -> Value:
    return _extremum(site, x, y, largest=False)


def _fmax(site: Site, x: Value, y: Value) -> Value:
    if site.result not in FLOAT:
        return _maximum(site, x, y)
    return site.external(suffixed("fmax", site.result), x.type, [x, y])


def _fmin(site: Site, x: Value, y: Value) -> Value:
    if site.result not in FLOAT:
        return _minimum(site, x, y)
    return site.external(suffixed("fmin", site.result), x.type, [x, y])


def _integer_quotient(site: Site, x: Value, y: Value) -> tuple[Value, Value]:
    """Return C's quotient and remainder; both 0 for ``x / 0``, wrapped for ``/ -1``."""
    b = site.builder
    zero, one = ir.Constant(x.type, 0), ir.Constant(x.type, 1)
    by_zero = b.icmp_unsigned("==", y, zero)
    if site.result not in SIGNED:
        safe = b.select(by_zero, one, y)
        quotient, rest = b.udiv(x, safe), b.urem(x, safe)
        return b.select(by_zero, zero, quotient), b.select(by_zero, zero, rest)
    by_minus_one = b.icmp_signed("==", y, ir.Constant(x.type, -1))
    safe = b.select(b.or_(by_zero, by_minus_one), one, y)
    quotient = b.select(by_minus_one, b.neg(x), b.sdiv(x, safe))
    rest = b.srem(x, safe)
    return b.select(by_zero, zero, quotient), b.select(by_zero, zero, rest)


def _differ_in_sign(site: Site, rest: Value, y: Value) -> Value:
    """Return whether flooring moves the quotient: ``rest`` is not 0 and against y."""
    b = site.builder
    zero = ir.Constant(rest.type, 0)
    against = b.icmp_signed("<", b.xor(rest, y), zero)
    return b.and_(b.icmp_signed("!=", rest, zero), against)


def _float_divmod(site: Site, x: Value, y: Value) -> tuple[Value, Value]:
    """Return NumPy's ``divmod``, step by step as its C code does it."""
    b = site.builder
    kind = site.result
    zero, one = site.constant(kind, 0.0), site.constant(kind, 1.0)
    rest = site.external(suffixed("fmod", kind), x.type, [x, y])
    quotient = b.fdiv(b.fsub(x, rest), y)
    against = b.xor(b.fcmp_ordered("<", y, zero), b.fcmp_ordered("<", rest, zero))
    uneven = b.fcmp_unordered("!=", rest, zero)
    moved = b.and_(uneven, against)
    level = site.external(suffixed("copysign", kind), x.type, [zero, y])
    remainder = b.select(uneven, b.select(moved, b.fadd(rest, y), rest), level)
    quotient = b.select(moved, b.fsub(quotient, one), quotient)
    floored = site.external(suffixed("floor", kind), x.type, [quotient])
    above = b.fcmp_ordered(">", b.fsub(quotient, floored), site.constant(kind, 0.5))
    floored = b.select(above, b.fadd(floored, one), floored)
    exact = b.fdiv(x, y)
    nought = site.external(suffixed("copysign", kind), x.type, [zero, exact])
    floored = b.select(b.fcmp_unordered("!=", quotient, zero), floored, nought)
    by_zero = b.fcmp_ordered("==", y, zero)
    return b.select(by_zero, exact, floored), b.select(by_zero, rest, remainder)


def _floor_divide(site: Site, x: Value, y: Value) -> Value:
    if site.result in FLOAT:
        return _float_divmod(site, x, y)[0]
    quotient, rest = _integer_quotient(site, x, y)
    if site.result not in SIGNED:
        return quotient
    b = site.builder
    lower = b.sub(quotient, ir.Constant(x.type, 1))
    return b.select(_differ_in_sign(site, rest, y), lower, quotient)


def _remainder(site: Site, x: Value, y: Value) -> Value:
    if site.result in FLOAT:
        return _float_divmod(site, x, y)[1]
    _, rest = _integer_quotient(site, x, y)
    if site.result not in SIGNED:
        return rest
    b = site.builder
    return b.select(_differ_in_sign(site, rest, y), b.add(rest, y), rest)


def _fmod(site: Site, x: Value, y: Value) -> Value:
    if site.result in FLOAT:
        return site.external(suffixed("fmod", site.result), x.type, [x, y])
    return _integer_quotient(site, x, y)[1]


def _power(site: Site, x: Value, y: Value) -> Value:
    if site.result in FLOAT:
        return site.external(suffixed("pow", site.result), x.type, [x, y])
    power = _integer_power(site, x, y)
    if site.result not in SIGNED:
        return power
    # NumPy refuses negative exponents; a kernel cannot, so it truncates 1 / x**-y.
    b = site.builder
    zero, one = ir.Constant(x.type, 0), ir.Constant(x.type, 1)
    minus_one = ir.Constant(x.type, -1)
    odd = b.trunc(y, ir.IntType(1))
    unit = b.select(b.icmp_signed("==", x, minus_one), b.select(odd, x, one), zero)
    unit = b.select(b.icmp_signed("==", x, one), one, unit)
    return b.select(b.icmp_signed("<", y, zero), unit, power)


def _integer_power(site: Site, x: Value, y: Value) -> Value:
    """Square and multiply; the loop runs as often as the exponent has bits."""
    b = site.builder
    start = b.block
    loop, done = b.append_basic_block("power"), b.append_basic_block("power_end")
    b.branch(loop)
    b.position_at_end(loop)
    result, base, left = b.phi(x.type), b.phi(x.type), b.phi(x.type)
    odd = b.trunc(left, ir.IntType(1))
    taken = b.select(odd, b.mul(result, base), result)
    squared = b.mul(base, base)
    halved = b.lshr(left, ir.Constant(x.type, 1))
    for phi, first, following in (
        (result, ir.Constant(x.type, 1), taken),
        (base, x, squared),
        (left, y, halved),
    ):
        phi.add_incoming(first, start)
        phi.add_incoming(following, loop)
    b.cbranch(b.icmp_unsigned("!=", halved, ir.Constant(x.type, 0)), loop, done)
    b.position_at_end(done)
    return taken


def _gcd(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    word = x.type if x.type.width >= 32 else I32
    wide = [b.zext(v, word) if v.type != word else v for v in _sizes(site, x, y)]
    found = greatest_common_divisor(b, *wide)
    return b.trunc(found, x.type) if word != x.type else found


def _philox16(site: Site, place: Value, key: Value, call: Value) -> Value:
    return philox_word(site.builder, 16, place, key, call, registers=32)


def _philox32(site: Site, place: Value, key: Value, call: Value) -> Value:
    return philox_word(site.builder, 32, place, key, call, registers=32)


def _philox64(site: Site, place: Value, key: Value, call: Value) -> Value:
    return philox_word(site.builder, 64, place, key, call, registers=32)


def _sizes(site: Site, *operands: Value) -> list[Value]:
    return [_absolute(site, x) for x in operands]


def _left_shift(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    width = ir.Constant(x.type, x.type.width)
    inside = b.icmp_unsigned("<", y, width)  # a negative count is a huge one
    count = b.select(inside, y, ir.Constant(x.type, 0))
    return b.select(inside, b.shl(x, count), ir.Constant(x.type, 0))


def _right_shift(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    width = ir.Constant(x.type, x.type.width)
    inside = b.icmp_unsigned("<", y, width)
    if site.result in SIGNED:
        return b.ashr(x, b.select(inside, y, ir.Constant(x.type, x.type.width - 1)))
    count = b.select(inside, y, ir.Constant(x.type, 0))
    return b.select(inside, b.lshr(x, count), ir.Constant(x.type, 0))


def _bit_and(site: Site, x: Value, y: Value) -> Value:
    return site.builder.and_(x, y)


def _bit_or(site: Site, x: Value, y: Value) -> Value:
    return site.builder.or_(x, y)


def _bit_xor(site: Site, x: Value, y: Value) -> Value:
    return site.builder.xor(x, y)


def _udiv(site: Site, x: Value, y: Value) -> Value:
    return site.builder.udiv(x, y)


def _urem(site: Site, x: Value, y: Value) -> Value:
    return site.builder.urem(x, y)


def _fast_divide(site: Site, n: Value, multiplier: Value, shift: Value) -> Value:
    b = site.builder
    doubled = b.shl(n, ir.Constant(I32, 1))
    return b.lshr(site.external("__nv_umulhi", I32, [doubled, multiplier]), shift)


def _fast_divide_rule(n: Any, multiplier: Any, shift: Any) -> Any:
    word = {types.int32, types.uint32}
    if n != types.int32 or multiplier not in word or shift not in word:
        return None
    return types.int32(n, multiplier, shift)


_INDEX = frozenset({types.int32, types.int64})
_WORD = frozenset({types.uint64})

negative = primitive("negative", same(NUMBER), _negative)
absolute = primitive("absolute", same(NUMBER), _absolute)
sign = primitive("sign", same(NUMBER), _sign)
invert = primitive("invert", same(INTEGER | BOOL), _invert)
add = primitive("add", same(NUMBER), _add)
subtract = primitive("subtract", same(NUMBER), _subtract)
multiply = primitive("multiply", same(NUMBER), _multiply)
maximum = primitive("maximum", same(NUMBER), _maximum)
minimum = primitive("minimum", same(NUMBER), _minimum)
fmax = primitive("fmax", same(NUMBER), _fmax)
fmin = primitive("fmin", same(NUMBER), _fmin)
floor_divide = primitive("floor_divide", same(NUMBER), _floor_divide)
remainder = primitive("remainder", same(NUMBER), _remainder)
fmod = primitive("fmod", same(NUMBER), _fmod)
power = primitive("power", same(NUMBER), _power)
gcd = primitive("gcd", same(INTEGER), _gcd)
philox16 = primitive("philox16", same(_WORD), _philox16)
philox32 = primitive("philox32", same(_WORD), _philox32)
philox64 = primitive("philox64", same(_WORD), _philox64)
left_shift = primitive("left_shift", same(INTEGER), _left_shift)
right_shift = primitive("right_shift", same(INTEGER), _right_shift)
bit_and = primitive("bit_and", same(INTEGER), _bit_and)
bit_or = primitive("bit_or", same(INTEGER), _bit_or)
bit_xor = primitive("bit_xor", same(INTEGER), _bit_xor)
udiv = primitive("udiv", same(_INDEX), _udiv)
urem = primitive("urem", same(_INDEX), _urem)
fast_divide = primitive("fast_divide", _fast_divide_rule, _fast_divide)
