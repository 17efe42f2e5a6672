# SPDX-License-Identifier: Apache-2.0
"""CUDA primitives on floats: libdevice, IEEE division, classification."""

# numba-cuda and llvmlite ship no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from nfuser.codegen.primitives.cuda.define import (
    F32,
    FLOAT,
    I32,
    I64,
    PRIMITIVES,
    Site,
    Value,
    primitive,
    same,
    suffixed,
    types,
)
from nfuser.compiler.ir.point_op import POINT_OPS

if TYPE_CHECKING:
    from nfuser.compiler.ir.point_op import PointOp

LOG_2 = math.log(2.0)
LOG2_E = 1 / LOG_2


def libdevice(op: PointOp, function: str = "") -> Any:
    """Return the primitive of ``op`` that calls one libdevice function of floats."""

    def emit(site: Site, *operands: Value) -> Value:
        name = suffixed(function or op.name, site.result)
        return site.external(name, operands[0].type, [*operands])

    return primitive(op.name, same(FLOAT), emit, op.arity)


def _ldexp(site: Site, x: Value, n: Value) -> Value:
    b = site.builder
    kind, limit = n.type, 1 << 12  # beyond which all is zero or infinite
    for bound, compare in ((limit, ">"), (-limit, "<")):
        edge = ir.Constant(kind, float(bound))
        n = b.select(b.fcmp_ordered(compare, n, edge), edge, n)
    power = b.fptosi(n, I32)
    return site.external(suffixed("ldexp", site.result), x.type, [x, power])


def magnitude(site: Site, x: Value) -> Value:
    """Return the absolute value of a float."""
    name = "__nv_fabsf" if x.type == F32 else "__nv_fabs"
    return site.external(name, x.type, [x])


def _multiply_add(site: Site, x: Value, y: Value, z: Value) -> Value:
    return site.external(suffixed("fma", site.result), x.type, [x, y, z])


def _divide(site: Site, x: Value, y: Value) -> Value:
    return site.builder.fdiv(x, y)


def _reciprocal(site: Site, x: Value) -> Value:
    return site.builder.fdiv(ir.Constant(x.type, 1.0), x)


def _divide_near(site: Site, x: Value, y: Value) -> Value:
    return site.assembly("div.full.f32 $0, $1, $2;", "=f,f,f", F32, [x, y])


def _reciprocal_near(site: Site, x: Value) -> Value:
    return site.assembly("rcp.approx.f32 $0, $1;", "=f,f", F32, [x])


def _exp_near(site: Site, x: Value) -> Value:
    # The square of the root: it is no smaller than any float until the result is 0, so
    # the instruction, which takes subnormal results for 0, needs no scaling.
    b = site.builder
    half = b.fmul(x, ir.Constant(F32, LOG2_E / 2))
    code = "ex2.approx.ftz.f32 $0, $1;"
    root = site.assembly(code, "=f,f", F32, [half])
    return b.fmul(root, root)


def _exp2_near(site: Site, x: Value) -> Value:
    return site.assembly("ex2.approx.ftz.f32 $0, $1;", "=f,f", F32, [x])


def _sqrt_near(site: Site, x: Value) -> Value:
    return site.assembly("sqrt.approx.f32 $0, $1;", "=f,f", F32, [x])


def _tanh_near(site: Site, x: Value) -> Value:
    # 1 - 2 / (exp(2x) + 1) is wrong by an ulp of 1: it serves where the result is not
    # much smaller. Where it is, x differs from it by its cube only.
    b = site.builder
    twice = b.fmul(x, ir.Constant(F32, 2 * LOG2_E))
    grown = site.assembly("ex2.approx.ftz.f32 $0, $1;", "=f,f", F32, [twice])
    grown = b.fadd(grown, ir.Constant(F32, 1.0))
    part = site.assembly("rcp.approx.ftz.f32 $0, $1;", "=f,f", F32, [grown])
    large = b.fma(part, ir.Constant(F32, -2.0), ir.Constant(F32, 1.0))
    is_small = b.fcmp_ordered("<", magnitude(site, x), ir.Constant(F32, 2.0**-7))
    return b.select(is_small, x, large)


def _logaddexp(site: Site, x: Value, y: Value) -> Value:
    b = site.builder
    kind = site.result
    gap = b.fsub(x, y)
    larger = b.select(b.fcmp_ordered(">", gap, ir.Constant(x.type, 0.0)), x, y)
    decay = b.fsub(ir.Constant(x.type, -0.0), magnitude(site, gap))
    tail = site.external(suffixed("exp", kind), x.type, [decay])
    tail = site.external(suffixed("log1p", kind), x.type, [tail])
    apart = b.select(b.fcmp_unordered("uno", gap, gap), gap, b.fadd(larger, tail))
    # Equal infinities have no gap; NumPy treats all equal operands alike.
    equal = b.fadd(x, ir.Constant(x.type, LOG_2))
    return b.select(b.fcmp_ordered("==", x, y), equal, apart)


def _isnan(site: Site, x: Value) -> Value:
    return site.builder.fcmp_unordered("uno", x, x)


def _isinf(site: Site, x: Value) -> Value:
    infinity = ir.Constant(x.type, math.inf)
    return site.builder.fcmp_ordered("==", magnitude(site, x), infinity)


def _isfinite(site: Site, x: Value) -> Value:
    infinity = ir.Constant(x.type, math.inf)
    return site.builder.fcmp_ordered("<", magnitude(site, x), infinity)


def sign_bit(site: Site, x: Value) -> Value:
    """Return whether the sign bit of a float is set, NaN included."""
    bits = I32 if x.type == F32 else I64
    word = site.builder.bitcast(x, bits)
    return site.builder.icmp_signed("<", word, ir.Constant(bits, 0))


def _select(site: Site, condition: Value, x: Value, y: Value) -> Value:
    return site.builder.select(condition, x, y)


def _select_rule(condition: Any, x: Any, y: Any) -> Any:
    if condition != types.boolean or x != y:
        return None
    return x(condition, x, y)


multiply_add = primitive("multiply_add", same(FLOAT), _multiply_add)
divide = primitive("divide", same(FLOAT), _divide)
reciprocal = primitive("reciprocal", same(FLOAT), _reciprocal)
_SINGLE = frozenset({types.float32})
divide_near = primitive("divide_near", same(_SINGLE), _divide_near)
exp_near = primitive("exp_near", same(_SINGLE), _exp_near)
exp2_near = primitive("exp2_near", same(_SINGLE), _exp2_near)
sqrt_near = primitive("sqrt_near", same(_SINGLE), _sqrt_near)
reciprocal_near = primitive("reciprocal_near", same(_SINGLE), _reciprocal_near)
tanh_near = primitive("tanh_near", same(_SINGLE), _tanh_near)
ldexp = primitive("ldexp", same(FLOAT), _ldexp)
logaddexp = primitive("logaddexp", same(FLOAT), _logaddexp)
isnan = primitive("isnan", same(FLOAT, types.boolean), _isnan)
isinf = primitive("isinf", same(FLOAT, types.boolean), _isinf)
isfinite = primitive("isfinite", same(FLOAT, types.boolean), _isfinite)
signbit = primitive("signbit", same(FLOAT, types.boolean), sign_bit)
select = primitive("select", _select_rule, _select)
log_positive = libdevice(POINT_OPS["log_positive"], "log")

# What has no primitive above is libdevice's function of its name.
for _op in POINT_OPS.values():
    if _op.takes == "float" and _op.gives == "same" and _op.name not in PRIMITIVES:
        libdevice(_op)
