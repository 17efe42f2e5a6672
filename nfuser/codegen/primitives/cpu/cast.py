# SPDX-License-Identifier: Apache-2.0
"""Casts between the dtypes of kernels on the CPU, as `astype` does them."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

from nfuser.codegen.primitives.cpu.arithmetic import is_float, is_signed
from nfuser.codegen.primitives.cpu.define import (
    ANY,
    TYPES,
    common_type,
    define,
    register,
    untyped,
)
from nfuser.codegen.primitives.cpu.math.value import (
    FLOAT,
    I32,
    I64,
    Value,
    absolute,
    select,
)


def _truncated(x: Value, integer: Any) -> Value:
    """Truncate to a signed integer; out of range and NaN give the lowest one.

    That is what the conversion instructions of x86 return, and so NumPy there; LLVM's
    own conversion would leave the result undefined.
    """
    limit = 2.0 ** (integer.width - 1)
    fits = (x >= -limit) & (x < limit)
    whole = x.make(x.builder.fptosi(select(fits, x, 0.0).ir, integer))
    return select(fits, whole, -1 << (integer.width - 1))


def _float_to_integer(x: Value, target: Any) -> Value:
    width = target.bitwidth
    if width == 64 and not target.signed:
        high = x >= 2.0**63
        lower = _truncated(select(high, x - 2.0**63, x), I64)
        return select(high, lower ^ (-1 << 63), lower)
    through = I32 if width < 32 or (target.signed and width == 32) else I64
    whole = _truncated(x, through)
    if through.width == width:
        return whole
    return x.make(x.builder.trunc(whole.ir, ir.IntType(width)))


def _to_float(x: Value, source: Any, target: Any) -> Value:
    floating = FLOAT if target == types.float32 else ir.DoubleType()
    if is_float(source):
        widen = x.builder.fpext if target == types.float64 else x.builder.fptrunc
        return x.make(widen(x.ir, floating))
    convert = x.builder.sitofp if is_signed(source) else x.builder.uitofp
    return x.make(convert(x.ir, floating))


def convert(x: Value, source: Any, target: Any) -> Value:
    """Return `x` of the Numba type `source` as `target`."""
    if source == target:
        return x
    if target == types.boolean:
        return x.differs(0.0 if is_float(source) else 0)
    if is_float(target):
        return _to_float(x, source, target)
    if is_float(source):
        return _float_to_integer(x, target)
    integer = ir.IntType(target.bitwidth)
    if x.type.width >= target.bitwidth:
        return x.make(x.builder.trunc(x.ir, integer)) if x.type != integer else x
    widen = x.builder.sext if is_signed(source) else x.builder.zext
    return x.make(widen(x.ir, integer))


def rounded_to_odd(x: Value) -> Value:
    """Return f32 with its last bit set where the f64 `x` lies between two of them.

    A rounding to fewer digits then gives what one rounding of `x` would.
    """
    b = x.builder
    near = x.make(b.fptrunc(x.ir, FLOAT))
    back = x.make(b.fpext(near.ir, x.type))
    bits = x.make(b.bitcast(near.ir, I32))
    toward_zero = select(absolute(back) > absolute(x), bits - 1, bits)
    is_inexact = x.make(b.fcmp_ordered("!=", back.ir, x.ir))
    return x.make(b.bitcast(select(is_inexact, toward_zero | 1, bits).ir, FLOAT))


def _cast(name: str, target: Any) -> None:
    def rule(_typing: Any, operand: Any) -> Any:
        source = common_type((operand,), ANY)
        if source is None:
            return None

        def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
            return convert(Value(builder, arguments[0]), source, target).ir

        return signature(target, source), emit

    register(name, rule)


for _name, _type in TYPES.items():
    _cast(f"to_{_name}", _type)
define(
    "to_f32_odd", 1, frozenset({types.float64}), untyped(rounded_to_odd), types.float32
)
