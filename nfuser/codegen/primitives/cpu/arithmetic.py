# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, bits, comparisons and casts on the CPU, with NumPy's edge cases."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.binding import llvm_version_info
from numba.core import types

from nfuser.codegen.primitives.cpu.math import value as v
from nfuser.codegen.primitives.cpu.math.value import Value, call, select
from nfuser.codegen.primitives.divisors import greatest_common_divisor
from nfuser.codegen.primitives.philox import philox_word

# Of a zero and its negative NumPy gives one or the other, too. What is folded into
# comes last: only the first operand is asked whether it is NaN.
_ANY_ZERO = ("nsz",)
_NUMBERS = ("nnan", "nsz")
_KNOWS_NUMBERS = (22, 0, 0)


def is_float(kind: Any) -> bool:
    """Whether a Numba type is a float."""
    return isinstance(kind, types.Float)


def is_signed(kind: Any) -> bool:
    """Whether a Numba type is a signed integer."""
    return kind in types.signed_domain


def negative(_kind: Any, x: Value) -> Value:
    """Return -x, wrapping."""
    return -x


def absolute(kind: Any, x: Value) -> Value:
    """Return the size of x; the most negative integer is its own."""
    if is_float(kind):
        return v.absolute(x)
    return select(x < 0, -x, x) if is_signed(kind) else x


def sign(kind: Any, x: Value) -> Value:
    """Return -1, 0 or 1, or NaN for NaN."""
    if not is_float(kind):
        below = -1 if is_signed(kind) else 1
        return select(x.equals(0), 0, select(x < 0, x.constant(below), 1))
    one = select(x < 0.0, x.constant(-1.0), 1.0)
    return select(x.is_nan(), x, select(x.equals(0.0), 0.0, one))


def invert(_kind: Any, x: Value) -> Value:
    """Flip the bits of an integer or a bool."""
    return ~x


def add(_kind: Any, a: Value, b: Value) -> Value:
    """Return a + b, wrapping."""
    return a + b


def subtract(_kind: Any, a: Value, b: Value) -> Value:
    """Return a - b, wrapping."""
    return a - b


def multiply(_kind: Any, a: Value, b: Value) -> Value:
    """Return a * b, wrapping."""
    return a * b


def multiply_add(_kind: Any, a: Value, b: Value, c: Value) -> Value:
    """Return a * b + c, in one instruction where there is one."""
    return v.fma(a, b, c)


def divide(_kind: Any, a: Value, b: Value) -> Value:
    """Return a / b for floats."""
    return a / b


def reciprocal(_kind: Any, x: Value) -> Value:
    """Return 1 / x for floats."""
    return 1.0 / x


def _extreme(kind: Any, a: Value, b: Value, way: str) -> Value:
    if kind == types.boolean:
        return a | b if way == "max" else a & b
    return call(f"llvm.{'s' if is_signed(kind) else 'u'}{way}", a, b)


def maximum(kind: Any, a: Value, b: Value) -> Value:
    """Return the larger, or NaN if either is NaN."""
    if is_float(kind):
        return call("llvm.maximum", b, a, flags=_ANY_ZERO)
    return _extreme(kind, a, b, "max")


def minimum(kind: Any, a: Value, b: Value) -> Value:
    """Return the smaller, or NaN if either is NaN."""
    if is_float(kind):
        return call("llvm.minimum", b, a, flags=_ANY_ZERO)
    return _extreme(kind, a, b, "min")


def larger_number(_kind: Any, a: Value, b: Value) -> Value:
    """Return the larger; what that is of NaN is not to be read."""
    return call("llvm.maxnum", b, a, flags=_NUMBERS)


def smaller_number(_kind: Any, a: Value, b: Value) -> Value:
    """Return the smaller; what that is of NaN is not to be read."""
    return call("llvm.minnum", b, a, flags=_NUMBERS)


def _further(a: Value, b: Value, way: str) -> Value:
    """Return the one that lies further that ``way``, or the other if one is NaN.

    LLVM folds with the older intrinsic one element at a time from the first NaN on.
    """
    if llvm_version_info < _KNOWS_NUMBERS:
        return call(f"llvm.{way}num", a, b)
    return call(f"llvm.{way}imumnum", b, a, flags=_ANY_ZERO)


def fmax(kind: Any, a: Value, b: Value) -> Value:
    """Return the larger, or the other if one is NaN."""
    return _further(a, b, "max") if is_float(kind) else maximum(kind, a, b)


def fmin(kind: Any, a: Value, b: Value) -> Value:
    """Return the smaller, or the other if one is NaN."""
    return _further(a, b, "min") if is_float(kind) else minimum(kind, a, b)


def bit_and(_kind: Any, a: Value, b: Value) -> Value:
    """Return the bitwise and."""
    return a & b


def bit_or(_kind: Any, a: Value, b: Value) -> Value:
    """Return the bitwise or."""
    return a | b


def bit_xor(_kind: Any, a: Value, b: Value) -> Value:
    """Return the bitwise exclusive or."""
    return a ^ b


def _is_short(x: Value, count: Value) -> tuple[Value, Value]:
    """Return whether a shift count is below the width, and the count made so."""
    width = ir.Constant(x.type, x.type.width)
    builder: Any = x.builder
    short = x.make(builder.icmp_unsigned("<", count.ir, width))
    return short, select(short, count, 0)


def left_shift(_kind: Any, a: Value, b: Value) -> Value:
    """Return a << b: zero when b is negative or no less than the width."""
    short, count = _is_short(a, b)
    return select(short, a << count, 0)


def right_shift(kind: Any, a: Value, b: Value) -> Value:
    """Return a >> b: 0 or -1 when b is negative or no less than the width."""
    short, count = _is_short(a, b)
    if is_signed(kind):
        return a >> select(short, count, a.type.width - 1)
    return select(short, a.logical_right(count), 0)


def _safe_divisor(kind: Any, a: Value, b: Value) -> Value:
    """Replace by 1 each divisor that the hardware would trap on."""
    bad = b.equals(0)
    if is_signed(kind):
        lowest = -1 << (a.type.width - 1)
        bad = bad | (b.equals(-1) & a.equals(lowest))
    return select(bad, 1, b)


def _divide_integers(kind: Any, a: Value, b: Value) -> tuple[Value, Value]:
    """Return quotient and remainder towards zero, for a safe divisor."""
    builder: Any = a.builder
    if is_signed(kind):
        return a.make(builder.sdiv(a.ir, b.ir)), a.make(builder.srem(a.ir, b.ir))
    return a.make(builder.udiv(a.ir, b.ir)), a.make(builder.urem(a.ir, b.ir))


def _floor_divmod_floats(a: Value, b: Value) -> tuple[Value, Value]:
    """Return NumPy's floor quotient and remainder of floats."""
    rest = a.make(a.builder.frem(a.ir, b.ir))
    opposite = rest.differs(0.0) & ((b < 0.0) ^ (rest < 0.0))
    quotient = (a - rest) / b
    quotient = select(opposite, quotient - 1.0, quotient)
    whole = call("llvm.floor", quotient)
    whole = select((quotient - whole) > 0.5, whole + 1.0, whole)
    whole = select(quotient.equals(0.0), v.copysign(a * 0.0, a / b), whole)
    rest = select(rest.equals(0.0), v.copysign(rest, b), rest)
    rest = select(opposite, rest + b, rest)
    return select(b.equals(0.0), a / b, whole), rest


def floor_divide(kind: Any, a: Value, b: Value) -> Value:
    """Return the floor of a / b; integers give 0 over zero and wrap."""
    if is_float(kind):
        return _floor_divmod_floats(a, b)[0]
    quotient, rest = _divide_integers(kind, a, _safe_divisor(kind, a, b))
    if is_signed(kind):
        below = rest.differs(0) & ((rest ^ b) < 0)
        quotient = select(below, quotient - 1, quotient)
    return select(b.equals(0), 0, quotient)


def remainder(kind: Any, a: Value, b: Value) -> Value:
    """Return the remainder with the sign of b; integers give 0 over zero."""
    if is_float(kind):
        return _floor_divmod_floats(a, b)[1]
    _, rest = _divide_integers(kind, a, _safe_divisor(kind, a, b))
    if is_signed(kind):
        below = rest.differs(0) & ((rest ^ b) < 0)
        rest = select(below, rest + b, rest)
    return select(b.equals(0), 0, rest)


def fmod(kind: Any, a: Value, b: Value) -> Value:
    """Return the remainder with the sign of a; integers give 0 over zero."""
    if is_float(kind):
        return a.make(a.builder.frem(a.ir, b.ir))
    _, rest = _divide_integers(kind, a, _safe_divisor(kind, a, b))
    return select(b.equals(0), 0, rest)


def gcd(kind: Any, a: Value, b: Value) -> Value:
    """Return the greatest common divisor; that of the most negative integer wraps."""
    x, y = absolute(kind, a), absolute(kind, b)
    return a.make(greatest_common_divisor(a.builder, x.ir, y.ir))


def philox16(_kind: Any, place: Value, key: Value, call: Value) -> Value:
    """Return a random word of 16 bits."""
    return place.make(philox_word(place.builder, 16, place.ir, key.ir, call.ir, 64))


def philox32(_kind: Any, place: Value, key: Value, call: Value) -> Value:
    """Return a random word of 32 bits."""
    return place.make(philox_word(place.builder, 32, place.ir, key.ir, call.ir, 64))


def philox64(_kind: Any, place: Value, key: Value, call: Value) -> Value:
    """Return a random word of 64 bits."""
    return place.make(philox_word(place.builder, 64, place.ir, key.ir, call.ir, 64))


def udiv(_kind: Any, a: Value, b: Value) -> Value:
    """Return a // b for a non-negative a and a positive b."""
    return a.make(a.builder.udiv(a.ir, b.ir))


def urem(_kind: Any, a: Value, b: Value) -> Value:
    """Return a % b for a non-negative a and a positive b."""
    return a.make(a.builder.urem(a.ir, b.ir))


def isnan(_kind: Any, x: Value) -> Value:
    """Whether x is NaN."""
    return x.is_nan()


def isinf(_kind: Any, x: Value) -> Value:
    """Whether x is infinite."""
    return v.absolute(x).equals(float("inf"))


def isfinite(_kind: Any, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return v.absolute(x) < float("inf")


def signbit(_kind: Any, x: Value) -> Value:
    """Whether the sign of x is set."""
    return v.bits(x) < 0


def nextafter(_kind: Any, a: Value, b: Value) -> Value:
    """Return the float next to a in the direction of b."""
    pattern = v.bits(a)
    grows = (b > a) ^ (a < 0.0)
    step = select(grows, pattern.constant(1), -1)
    smallest = v.copysign(v.from_bits(pattern.constant(1)), b)
    moved = select(a.equals(0.0), smallest, v.from_bits(pattern + step))
    moved = select(a.equals(b), b, moved)
    return select(a.is_nan() | b.is_nan(), a + b, moved)
