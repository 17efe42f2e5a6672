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


def _float_unary(name: str, body: Body) -> None:
    define(name, 1, FLOAT, untyped(body))


def _float_binary(name: str, body: Body) -> None:
    define(name, 2, FLOAT, untyped(body))


def _rounding(name: str) -> None:
    def body(x: Value) -> Value:
        return call(f"llvm.{name}", x)

    _float_unary(name, body)


def _inverse_root(x: Value) -> Value:
    return 1.0 / values.sqrt(x)


def _reassociated(name: str, method: str) -> None:
    # Free order is what lets LLVM keep one partial result a vector lane.
    def body(_kind: Any, total: Value, x: Value) -> Value:
        emit = getattr(total.builder, method)
        return total.make(emit(total.ir, x.ir, flags=("reassoc", "nsz")))

    define(name, 2, FLOAT, body)


def _select_rule(_typing: Any, condition: Any, a: Any, b: Any) -> Any:
    kind = common_type((a, b), ANY)
    if kind is None or condition != boolean:
        return None

    def emit(_context: Any, builder: Any, _typed: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return signature(kind, boolean, kind, kind), emit


_float_unary("exp_near", exponential.exp)
_float_unary("exp2_near", exponential.exp2)
_float_unary("tanh_near", exponential.tanh)
_float_unary("sin_bounded", partial(trigonometry.sin, reach="bounded"))
_float_unary("cos_bounded", partial(trigonometry.cos, reach="bounded"))
_float_unary("sin_narrow", partial(trigonometry.sin, reach="narrow"))
_float_unary("cos_narrow", partial(trigonometry.cos, reach="narrow"))
_float_unary("tan_bounded", partial(trigonometry.tan, reach="bounded"))
_float_unary("log_moderate", partial(exponential.log, is_moderate=True))
_float_unary("sqrt_near", values.sqrt)
_float_unary("rsqrt", _inverse_root)
_float_binary("power_moderate", powers.moderate_power)
_float_binary("ldexp", exponential.scale)
define("power", 2, NUMBER, powers.power)
define("reciprocal_near", 1, FLOAT, arithmetic.reciprocal)
define("divide_near", 2, FLOAT, arithmetic.divide)
register("select", _select_rule)
_reassociated("sum_reassoc", "fadd")
_reassociated("product_reassoc", "fmul")
for _name in ("floor", "ceil", "trunc", "rint"):
    _rounding(_name)

# What ``arithmetic`` defines by these names: of how many operands, and of which kinds.
_ARITHMETIC = (
    (1, NUMBER, "negative absolute sign"),
    (1, INTEGER | BOOL, "invert"),
    (1, FLOAT, "reciprocal"),
    (2, NUMBER, "add subtract multiply floor_divide remainder fmod"),
    (2, FLOAT, "divide nextafter larger_number smaller_number"),
    (2, INTEGER, "gcd udiv urem left_shift right_shift"),
    (2, INTEGER | BOOL, "bit_and bit_or bit_xor"),
    (2, ANY, "maximum minimum fmax fmin"),
    (3, FLOAT, "multiply_add"),
    (3, WORD, "philox16 philox32 philox64"),
)
for _arity, _kinds, _names in _ARITHMETIC:
    for _name in _names.split():
        define(_name, _arity, _kinds, getattr(arithmetic, _name))
for _name in ("isnan", "isinf", "isfinite", "signbit"):
    define(_name, 1, FLOAT, getattr(arithmetic, _name), boolean)


def _function_of(op: PointOp) -> Body | None:
    """Return the function in ``math/`` that has the name of ``op``."""
    found = (vars(module).get(op.name) for module in _MATHEMATICS)
    return next(filter(None, found), None)


# What has no primitive above is the function of its name.
for _op in POINT_OPS.values():
    _is_of_floats = _op.takes == "float" and _op.name not in PRIMITIVES
    if _is_of_floats and (_body := _function_of(_op)):
        define(_op.name, _op.arity, FLOAT, untyped(_body))
