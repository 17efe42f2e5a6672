# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives that change a value's dtype, and rounding to 16-bit floats.

Floats truncate towards zero; a value outside the integer's range is undefined in
NumPy too, and here gives what NumPy gives on x86-64 wherever that costs nothing.
"""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    ANY,
    BOOL,
    F16,
    F32,
    F64,
    FLOAT,
    I16,
    I32,
    I64,
    SIGNED,
    Site,
    Value,
    primitive,
    same,
    types,
)


def _to_bool(site: Site, x: Value) -> Value:
    source = site.argument(0)
    if source in BOOL:
        return x
    zero = ir.Constant(x.type, 0)
    if source in FLOAT:
        return site.builder.fcmp_unordered("!=", x, zero)
    return site.builder.icmp_unsigned("!=", x, zero)


def _to_integer(site: Site, x: Value) -> Value:
    b = site.builder
    source, target = site.argument(0), site.context.get_value_type(site.result)
    if source in FLOAT:
        return _float_to_integer(site, x, target)
    if x.type.width == target.width:
        return x
    if x.type.width > target.width:
        return b.trunc(x, target)
    return b.sext(x, target) if source in SIGNED else b.zext(x, target)


def _float_to_integer(site: Site, x: Value, target: Any) -> Value:
    b = site.builder
    if site.result == types.uint64:
        below = b.fcmp_ordered("<", x, ir.Constant(x.type, 0.0))
        return b.select(below, b.fptosi(x, I64), b.fptoui(x, I64))
    if site.result == types.uint32:
        return b.trunc(b.fptosi(x, I64), target)
    if target.width < 32:
        return b.trunc(b.fptosi(x, I32), target)
    return b.fptosi(x, target)


def _to_float(site: Site, x: Value) -> Value:
    b = site.builder
    source, target = site.argument(0), site.context.get_value_type(site.result)
    if x.type == target:
        return x
    if source in FLOAT:
        return b.fpext(x, target) if target == F64 else b.fptrunc(x, target)
    return b.sitofp(x, target) if source in SIGNED else b.uitofp(x, target)


def _to_f32_odd(site: Site, x: Value) -> Value:
    """Return f32 with its last bit set where ``x`` lies between two of them.

    A rounding to fewer digits then gives what one rounding of ``x`` would.
    """
    b = site.builder
    below = site.assembly("cvt.rz.f32.f64 $0, $1;", "=f,d", F32, [x])
    is_inexact = b.fcmp_ordered("!=", b.fpext(below, F64), x)
    bits = b.bitcast(below, I32)
    return b.bitcast(b.or_(bits, b.zext(is_inexact, I32)), F32)


def widen_f16(site: Site, bits: Value) -> Value:
    """Return the float32 that the 16 ``bits`` of an IEEE half stand for."""
    return site.builder.fpext(site.builder.bitcast(bits, F16), F32)


def widen_bf16(site: Site, bits: Value) -> Value:
    """Return the float32 whose upper half is ``bits``."""
    b = site.builder
    return b.bitcast(b.shl(b.zext(bits, I32), ir.Constant(I32, 16)), F32)


def narrow_f16(site: Site, x: Value) -> Value:
    """Return the 16 bits of ``x`` rounded to the nearest IEEE half, ties to even."""
    return site.builder.bitcast(site.builder.fptrunc(x, F16), I16)


def narrow_bf16(site: Site, x: Value) -> Value:
    """Return the 16 bits of ``x`` rounded to the nearest bfloat16, ties to even."""
    if x.type == F64:
        x = site.builder.fptrunc(x, F32)
    return site.assembly("cvt.rn.bf16.f32 $0, $1;", "=h,f", I16, [x])


def _round_f16(site: Site, x: Value) -> Value:
    return widen_f16(site, narrow_f16(site, x))


def _round_bf16(site: Site, x: Value) -> Value:
    return widen_bf16(site, narrow_bf16(site, x))


to_bool = primitive("to_bool", same(ANY, types.boolean), _to_bool)
to_i8 = primitive("to_i8", same(ANY, types.int8), _to_integer)
to_i16 = primitive("to_i16", same(ANY, types.int16), _to_integer)
to_i32 = primitive("to_i32", same(ANY, types.int32), _to_integer)
to_i64 = primitive("to_i64", same(ANY, types.int64), _to_integer)
to_u8 = primitive("to_u8", same(ANY, types.uint8), _to_integer)
to_u16 = primitive("to_u16", same(ANY, types.uint16), _to_integer)
to_u32 = primitive("to_u32", same(ANY, types.uint32), _to_integer)
to_u64 = primitive("to_u64", same(ANY, types.uint64), _to_integer)
to_f32 = primitive("to_f32", same(ANY, types.float32), _to_float)
to_f64 = primitive("to_f64", same(ANY, types.float64), _to_float)
to_f32_odd = primitive(
    "to_f32_odd", same(frozenset({types.float64}), types.float32), _to_f32_odd
)
round_f16 = primitive("round_f16", same(FLOAT, types.float32), _round_f16)
round_bf16 = primitive("round_bf16", same(FLOAT, types.float32), _round_bf16)
