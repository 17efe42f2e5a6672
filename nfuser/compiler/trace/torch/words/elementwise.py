# SPDX-License-Identifier: Apache-2.0
"""Functions of single elements, under torch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.torch.methods import METHODS
from nfuser.compiler.trace.torch.words.common import (
    floating,
    in_dtype,
    met,
    met_as_floats,
    one_of,
)
from nfuser.compiler.trace.transforms.derivatives import stopped

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


def _of_floats(verb: Any) -> Word:
    def word(t: Tracer, x: Any) -> Any:
        return t.call(verb, floating(t, x))

    return word


def _of_any(verb: Any) -> Word:
    def word(t: Tracer, x: Any) -> Any:
        return t.call(verb, x)

    return word


def _of_two(verb: Any) -> Word:
    def word(t: Tracer, x: Any, other: Any) -> Any:
        return met(t, verb, x, other)

    return word


def _of_two_floats(verb: Any) -> Word:
    def word(t: Tracer, x: Any, other: Any) -> Any:
        return met_as_floats(t, verb, x, other)

    return word


def _with_ties(verb: Any) -> Word:
    """Return fmax or fmin, of which the first operand has the slope where both are."""

    def word(t: Tracer, x: Any, other: Any) -> Any:
        return met(t, verb, other, x)

    return word


def _atan2(t: Tracer, x: Any, other: Any) -> Any:
    """Return the angle, which has no slope at the origin; NumPy's is not a number."""
    angle = met_as_floats(t, ops.atan2, x, other)
    is_origin = t.call(ops.logical_and, x == 0, other == 0)
    return _where(t, is_origin, stopped(angle), angle)


def _scaled(verb: Any) -> Word:
    def word(t: Tracer, x: Any, other: Any, *, alpha: Any = 1) -> Any:
        scaled = other if isinstance(alpha, int) and alpha == 1 else alpha * other
        return met(t, verb, x, scaled)

    return word


def _rsub(t: Tracer, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    return met(t, ops.subtract, other, x * alpha)


def _div(t: Tracer, x: Any, other: Any, *, rounding_mode: Any = None) -> Any:
    one_of("div", "rounding_mode", rounding_mode, (None, "floor", "trunc"))
    if rounding_mode == "floor":
        return met(t, ops.floor_divide, x, other)
    quotient = met(t, ops.divide, x, other)
    if rounding_mode is None:
        return quotient
    whole = t.call(ops.trunc, quotient)
    held = met(t, ops.multiply, x, other).dtype  # integers stay integers
    return in_dtype(t, whole, held)


def _where(t: Tracer, condition: Any, x: Any, other: Any) -> Any:
    first, second = t.dialect.meet(t, ops.where, [t.operand(x), t.operand(other)])
    return t.apply(ops.where, t.operand(condition), first, second)


def _masked_fill(t: Tracer, x: Any, mask: Any, value: Any) -> Any:
    held = t.tensor(x).dtype  # a float in an array of integers is cut, as in torch
    return _where(t, mask, t.call_on_tensor(ops.astype, value, held), x)


def _clamp_min(t: Tracer, x: Any, min: Any) -> Any:  # noqa: A002 (torch's name)
    return METHODS["clamp"](t, x, min=min)


def _clamp_max(t: Tracer, x: Any, max: Any) -> Any:  # noqa: A002 (torch's name)
    return METHODS["clamp"](t, x, max=max)


def _lerp(t: Tracer, x: Any, end: Any, weight: Any) -> Any:
    del t
    return x + weight * (end - x)


def _addcmul(t: Tracer, x: Any, first: Any, second: Any, *, value: Any = 1) -> Any:
    del t
    product = first * second
    return x + (product if isinstance(value, int) and value == 1 else value * product)


def _addcdiv(t: Tracer, x: Any, first: Any, second: Any, *, value: Any = 1) -> Any:
    del t
    quotient = first / second
    return x + (quotient if isinstance(value, int) and value == 1 else value * quotient)


def _xlogy(t: Tracer, x: Any, other: Any) -> Any:
    product = x * WORDS["log"](t, other)
    zeros = _where(t, x == 0, 0.0, product)
    return (
        zeros
        if not hasattr(other, "dtype")
        else _where(t, other != other, other, zeros)
    )


def _logit(t: Tracer, x: Any, eps: Any = None) -> Any:
    x = floating(t, x)
    if eps is not None:
        x = _clamp_max(t, _clamp_min(t, x, eps), 1 - eps)
    return t.call(ops.log, x / (1 - x))


def _frac(t: Tracer, x: Any) -> Any:
    return x - t.call(ops.trunc, x)


def _nan_to_num(
    t: Tracer, x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    given = {"nan": 0.0 if nan is None else nan, "posinf": posinf, "neginf": neginf}
    return t.handlers["nan_to_num"](t, x, **given)


def _isclose(
    t: Tracer,
    x: Any,
    other: Any,
    rtol: Any = 1e-05,
    atol: Any = 1e-08,
    equal_nan: Any = False,
) -> Any:
    return t.handlers["isclose"](t, x, other, rtol, atol, equal_nan)


def _sign(t: Tracer, x: Any) -> Any:
    return t.call(ops.sign, x)


_FLOATS = (
    "exp log log2 log10 log1p expm1 exp2 sqrt sin cos tan tanh sinh cosh rsqrt "
    "reciprocal sigmoid erf erfc erfinv asin acos atan asinh acosh atanh sinc "
    "deg2rad rad2deg lgamma"
)
_ANY = (
    "floor ceil trunc square isnan isinf isfinite signbit logical_not isposinf isneginf"
)
_TWO = (
    "maximum minimum fmod gcd lcm heaviside copysign nextafter "
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor"
)
_NAMED_TWO = {
    "mul": ops.multiply,
    "multiply": ops.multiply,
    "true_divide": ops.divide,
    "floor_divide": ops.floor_divide,
    "remainder": ops.remainder,
    "pow": ops.power,
    "eq": ops.equal,
    "ne": ops.not_equal,
    "not_equal": ops.not_equal,
    "lt": ops.less,
    "less": ops.less,
    "le": ops.less_equal,
    "less_equal": ops.less_equal,
    "gt": ops.greater,
    "greater": ops.greater,
    "ge": ops.greater_equal,
    "greater_equal": ops.greater_equal,
    "bitwise_left_shift": ops.left_shift,
    "bitwise_right_shift": ops.right_shift,
}
_NAMED_ANY = {
    "neg": ops.negative,
    "negative": ops.negative,
    "positive": ops.positive,
    "abs": ops.absolute,
    "absolute": ops.absolute,
    "bitwise_not": ops.invert,
}
_NAMED_FLOATS = {
    "arcsin": ops.asin,
    "arccos": ops.acos,
    "arctan": ops.atan,
    "arcsinh": ops.asinh,
    "arccosh": ops.acosh,
    "arctanh": ops.atanh,
    "special_expit": ops.sigmoid,
}
WORDS: dict[str, Word] = {
    **{name: _of_floats(getattr(ops, name)) for name in _FLOATS.split()},
    **{name: _of_floats(verb) for name, verb in _NAMED_FLOATS.items()},
    **{name: _of_any(getattr(ops, name)) for name in _ANY.split()},
    **{name: _of_any(verb) for name, verb in _NAMED_ANY.items()},
    **{name: _of_two(getattr(ops, name)) for name in _TWO.split()},
    **{name: _of_two(verb) for name, verb in _NAMED_TWO.items()},
    **{
        name: _of_two_floats(verb)
        for name, verb in {
            "hypot": ops.hypot,
            "logaddexp": ops.logaddexp,
            "logaddexp2": ops.logaddexp2,
        }.items()
    },
    "fmax": _with_ties(ops.fmax),
    "fmin": _with_ties(ops.fmin),
    "atan2": _atan2,
    "arctan2": _atan2,
    "add": _scaled(ops.add),
    "sub": _scaled(ops.subtract),
    "subtract": _scaled(ops.subtract),
    "rsub": _rsub,
    "div": _div,
    "divide": _div,
    "where": _where,
    "masked_fill": _masked_fill,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "lerp": _lerp,
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "xlogy": _xlogy,
    "logit": _logit,
    "frac": _frac,
    "nan_to_num": _nan_to_num,
    "isclose": _isclose,
    "sign": _sign,
    "sgn": _sign,
}
