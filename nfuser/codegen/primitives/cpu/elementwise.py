# SPDX-License-Identifier: Apache-2.0
"""The elementwise primitives of the CPU: arithmetic, and functions of floats."""

# Numba and llvmlite carry no types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from numba.core.types import boolean
from numba.core.typing.templates import signature

import nfuser.codegen.primitives.cpu.arithmetic as arithmetic
from nfuser.codegen.primitives.cpu.define import (
    ANY,
    BOOL,
    FLOAT,
    INTEGER,
    NUMBER,
    PRIMITIVES,
    WORD,
    Body,
    common_type,
    define,
    register,
    untyped,
)
from nfuser.codegen.primitives.cpu.math import (
    error,
    exponential,
    inverse,
    root,
    trigonometry,
)
from nfuser.codegen.primitives.cpu.math import power as powers
from nfuser.codegen.primitives.cpu.math import value as values
from nfuser.codegen.primitives.cpu.math.value import Value, call
from nfuser.compiler.ir.point_op import POINT_OPS

if TYPE_CHECKING:
    from nfuser.compiler.ir.point_op import PointOp

_MATHEMATICS = (error, exponential, inverse, powers, root, trigonometry, values)


def _float_unary(name: str, body: Body) -> Any:
    return define(name, 1, FLOAT, untyped(body))


def _float_binary(name: str, body: Body) -> Any:
    return define(name, 2, FLOAT, untyped(body))


def _rounding(name: str) -> Any:
    def body(x: Value) -> Value:
        return call(f"llvm.{name}", x)

    return _float_unary(name, body)


def _inverse_root(x: Value) -> Value:
    return 1.0 / values.sqrt(x)


def _reassociated(name: str, method: str) -> Any:
    # Free order is what lets LLVM keep one partial result a vector lane.
    def body(_kind: Any, total: Value, x: Value) -> Value:
        emit = getattr(total.builder, method)
        return total.make(emit(total.ir, x.ir, flags=("reassoc", "nsz")))

    return define(name, 2, FLOAT, body)


def _select_rule(_typing: Any, condition: Any, a: Any, b: Any) -> Any:
    kind = common_type((a, b), ANY)
    if kind is None or condition != boolean:
        return None

    def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return signature(kind, boolean, kind, kind), emit


exp_near = _float_unary("exp_near", exponential.exp)
exp2_near = _float_unary("exp2_near", exponential.exp2)
tanh_near = _float_unary("tanh_near", exponential.tanh)
sin_bounded = _float_unary("sin_bounded", partial(trigonometry.sin, reach="bounded"))
cos_bounded = _float_unary("cos_bounded", partial(trigonometry.cos, reach="bounded"))
sin_narrow = _float_unary("sin_narrow", partial(trigonometry.sin, reach="narrow"))
cos_narrow = _float_unary("cos_narrow", partial(trigonometry.cos, reach="narrow"))
tan_bounded = _float_unary("tan_bounded", partial(trigonometry.tan, reach="bounded"))
log_moderate = _float_unary("log_moderate", partial(exponential.log, is_moderate=True))
power_moderate = _float_binary("power_moderate", powers.moderate_power)
power = define("power", 2, NUMBER, powers.power)
ldexp = _float_binary("ldexp", exponential.scale)
sqrt_near = _float_unary("sqrt_near", values.sqrt)
rsqrt = _float_unary("rsqrt", _inverse_root)
reciprocal = define("reciprocal", 1, FLOAT, arithmetic.reciprocal)
reciprocal_near = define("reciprocal_near", 1, FLOAT, arithmetic.reciprocal)
floor = _rounding("floor")
ceil = _rounding("ceil")
trunc = _rounding("trunc")
rint = _rounding("rint")

negative = define("negative", 1, NUMBER, arithmetic.negative)
absolute = define("absolute", 1, NUMBER, arithmetic.absolute)
sign = define("sign", 1, NUMBER, arithmetic.sign)
invert = define("invert", 1, INTEGER | BOOL, arithmetic.invert)
isnan = define("isnan", 1, FLOAT, arithmetic.isnan, boolean)
isinf = define("isinf", 1, FLOAT, arithmetic.isinf, boolean)
isfinite = define("isfinite", 1, FLOAT, arithmetic.isfinite, boolean)
signbit = define("signbit", 1, FLOAT, arithmetic.signbit, boolean)
add = define("add", 2, NUMBER, arithmetic.add)
subtract = define("subtract", 2, NUMBER, arithmetic.subtract)
multiply = define("multiply", 2, NUMBER, arithmetic.multiply)
divide = define("divide", 2, FLOAT, arithmetic.divide)
divide_near = define("divide_near", 2, FLOAT, arithmetic.divide)
floor_divide = define("floor_divide", 2, NUMBER, arithmetic.floor_divide)
remainder = define("remainder", 2, NUMBER, arithmetic.remainder)
fmod = define("fmod", 2, NUMBER, arithmetic.fmod)
gcd = define("gcd", 2, INTEGER, arithmetic.gcd)
multiply_add = define("multiply_add", 3, FLOAT, arithmetic.multiply_add)
philox16 = define("philox16", 3, WORD, arithmetic.philox16)
philox32 = define("philox32", 3, WORD, arithmetic.philox32)
philox64 = define("philox64", 3, WORD, arithmetic.philox64)
udiv = define("udiv", 2, INTEGER, arithmetic.udiv)
urem = define("urem", 2, INTEGER, arithmetic.urem)
nextafter = define("nextafter", 2, FLOAT, arithmetic.nextafter)
maximum = define("maximum", 2, ANY, arithmetic.maximum)
minimum = define("minimum", 2, ANY, arithmetic.minimum)
fmax = define("fmax", 2, ANY, arithmetic.fmax)
fmin = define("fmin", 2, ANY, arithmetic.fmin)
larger_number = define("larger_number", 2, FLOAT, arithmetic.larger_number)
smaller_number = define("smaller_number", 2, FLOAT, arithmetic.smaller_number)
left_shift = define("left_shift", 2, INTEGER, arithmetic.left_shift)
right_shift = define("right_shift", 2, INTEGER, arithmetic.right_shift)
bit_and = define("bit_and", 2, INTEGER | BOOL, arithmetic.bit_and)
bit_or = define("bit_or", 2, INTEGER | BOOL, arithmetic.bit_or)
bit_xor = define("bit_xor", 2, INTEGER | BOOL, arithmetic.bit_xor)
select = register("select", _select_rule)
sum_reassoc = _reassociated("sum_reassoc", "fadd")
product_reassoc = _reassociated("product_reassoc", "fmul")


def _function_of(op: PointOp) -> Body | None:
    """Return the function in ``math/`` that has the name of ``op``."""
    found = (vars(module).get(op.name) for module in _MATHEMATICS)
    return next(filter(None, found), None)


# What has no primitive above is the function of its name.
for _op in POINT_OPS.values():
    _is_of_floats = _op.takes == "float" and _op.name not in PRIMITIVES
    if _is_of_floats and (_body := _function_of(_op)):
        define(_op.name, _op.arity, FLOAT, untyped(_body))
