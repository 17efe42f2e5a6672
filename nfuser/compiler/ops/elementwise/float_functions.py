# SPDX-License-Identifier: Apache-2.0
"""Functions of floats; integers are taken as the float that NumPy takes them as."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.arithmetic as arithmetic
import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.float_rows as float_rows
import nfuser.compiler.ops.rules as rules
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ops.elementwise.of_rows import Unary, unary
from nfuser.errors import DTypeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand

log_positive = unary("log_positive")


def multiply_add(b: Builder, x: Operand, y: Operand, z: Operand) -> TensorView:
    """Return ``x * y + z`` of one float dtype, rounded once where a target does."""
    kind = b.promote(x, y, z)
    return b.point("multiply_add", *(b.convert(part, kind) for part in (x, y, z)))


def ldexp(b: Builder, x: Operand, n: Operand) -> TensorView:
    """Return ``x * 2**n``, rounded once; ``n`` is an integer."""
    dtype, kind = rules.float_type(b, "ldexp", x), b.promote(n)
    if b.type_of(x) is int and isinstance(b.type_of(n), DType) and not kind.is_bool:
        dtype = DType.F16  # of a Python integer NumPy takes the first float there is
    if not (kind.is_integer or kind.is_bool) or kind is DType.U64:
        message = f"ldexp takes integers up to int64 as exponents, not {kind}"
        raise DTypeError(message)
    # Float16 and bfloat16 do not hold all the exponents that they have room for.
    wide = DType.F32 if dtype.is_half else dtype
    if b.type_of(n) is int and isinstance(b.type_of(x), DType):
        kind = DType.I32  # as NumPy takes a Python integer beside an array
    power = b.cast(b.convert(n, kind), wide)
    return b.cast(b.point("ldexp", b.cast(b.convert(x, dtype), wide), power), dtype)


def nextafter(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return the number next to ``x`` in the direction of ``y``."""
    dtype = rules.float_type(b, "nextafter", x, y)
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    if dtype.is_half:
        return _next_half(b, left, right)
    return b.point("nextafter", left, right)


def _next_half(b: Builder, x: TensorView, y: TensorView) -> TensorView:
    """Return ``nextafter`` of 16-bit floats, which kernels compute in f32.

    A little more than half the distance to the neighbours is added there, whichever
    binade ``x`` begins: rounding takes it to the neighbour.
    """
    unit, least, largest = _HALVES[x.dtype]
    wide, wanted = b.cast(x, DType.F32), b.cast(y, DType.F32)

    def number(value: float) -> TensorView:
        return b.constant(value, DType.F32)

    step = b.point("multiply", b.point("absolute", wide), number(unit * (1 + 2**-8)))
    step = b.point("maximum", step, number(0.75 * least))
    is_infinite = b.point("isinf", wide)
    base = b.point("copysign", number(largest), wide)
    base = b.point("select", is_infinite, base, wide)
    step = b.point("select", is_infinite, number(0.0), step)
    grows = b.point("less", wide, wanted)
    step = b.point("select", grows, step, b.point("negative", step))
    moved = b.cast(b.point("add", base, step), x.dtype)
    same = x if x.dtype is DType.F16 else y  # NumPy's of two zeros, and ml_dtypes's
    moved = b.point("select", b.point("equal", wide, wanted), same, moved)
    is_nan = b.point("bit_or", b.point("isnan", wide), b.point("isnan", wanted))
    return b.point("select", is_nan, b.constant(math.nan, x.dtype), moved)


# Half the distance between 1 and the next, the smallest number, and the largest.
_HALVES = {
    DType.F16: (2**-11, 2.0**-24, 65504.0),
    DType.BF16: (2**-8, 2.0**-133, (2 - 2**-7) * 2.0**127),
}


def logaddexp2(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return ``log2(2 ** x + 2 ** y)``."""
    dtype = rules.float_type(b, "logaddexp2", x, y)
    left, right = b.convert(x, dtype), b.convert(y, dtype)
    high, low = b.point("maximum", left, right), b.point("minimum", left, right)
    gap = b.point("exp2", b.point("subtract", low, high))
    grown = b.point(
        "multiply", b.point("log1p", gap), b.constant(1 / math.log(2), dtype)
    )
    # inf - inf is NaN: two equal infinities add 1 to themselves.
    same = b.point("equal", left, right)
    grown = b.point("select", same, b.constant(1.0, dtype), grown)
    return b.point("add", high, grown)


def fabs(b: Builder, x: Operand) -> TensorView:
    """Return ``|x|`` as a float."""
    dtype = rules.float_type(b, "fabs", x)
    return b.point("absolute", b.convert(x, dtype))


def heaviside(b: Builder, x: Operand, at_zero: Operand) -> TensorView:
    """Return 0 below zero, 1 above it, ``at_zero`` at zero, NaN for NaN."""
    dtype = rules.float_type(b, "heaviside", x, at_zero)
    operand, middle = b.convert(x, dtype), b.convert(at_zero, dtype)
    zero, one = b.constant(0.0, dtype), b.constant(1.0, dtype)
    step = b.point("select", b.point("less", operand, zero), zero, one)
    step = b.point("select", b.point("equal", operand, zero), middle, step)
    return b.point("select", b.point("isnan", operand), operand, step)


def _scaled(name: str, factor: float) -> Unary:
    def verb(b: Builder, x: Operand) -> TensorView:
        operand = b.convert(x, rules.float_type(b, name, x))
        return b.point("multiply", operand, b.constant(factor, operand.dtype))

    verb.__name__ = name
    verb.__doc__ = f"Return ``{name}`` of each element."
    return verb


deg2rad, rad2deg = _scaled("deg2rad", math.pi / 180), _scaled("rad2deg", 180 / math.pi)


_PARTS = (parts.real, parts.imag)


def round_to(b: Builder, x: Operand, decimals: int = 0) -> TensorView:
    """Return ``x`` rounded to even at ``decimals`` places, by scaling as NumPy does."""
    operand = b.tensor(x)
    if operand.dtype.is_complex:
        both = (round_to(b, part(b, operand), decimals) for part in _PARTS)
        return parts.join(b, *both)
    if operand.dtype.is_bool:
        operand = b.cast(operand, DType.F16)
    if operand.dtype.is_integer:
        if decimals < 0:
            message = "rounding integers to tens is not supported; cast to float first"
            raise DTypeError(message)
        return b.point("copy", operand)
    if decimals == 0:
        return b.point("rint", operand)
    scale = b.convert(10.0 ** abs(decimals), operand.dtype)
    into, back = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    return b.point(back, b.point("rint", b.point(into, operand, scale)), scale)


def sinc(b: Builder, x: Operand) -> TensorView:
    """Return ``sin(pi x) / (pi x)``, 1 at 0; of integers in f64."""
    dtype = b.promote(x, math.pi)
    operand = b.point("multiply", b.convert(x, dtype), b.constant(math.pi, dtype))
    at_zero = b.point("equal", operand, b.constant(0.0, dtype))
    quotient = arithmetic.divide(b, float_rows.sin(b, operand), operand)
    # What is 1 at 0 bends as the function does, for second derivatives.
    square = b.point("multiply", operand, operand)
    sixth = b.point("multiply", square, b.constant(1 / 6, dtype))
    near = b.point("subtract", b.constant(1.0, dtype), sixth)
    return b.point("select", at_zero, near, quotient)
