# SPDX-License-Identifier: Apache-2.0
"""Steps that compute element by element."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from nfuser import DataType
from nfuser.compiler.dtypes import as_dtype
from tests.definitions.writer import BF16, KINDS, Term, epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.definitions.writer import Writer

Meaning = "Callable[..., Any]"
ALL = (-50.0, 50.0)
POSITIVE = (0.2, 50.0)
# What NumPy computes, where, and how steep it is there.
SMOOTH: dict[str, tuple[Callable[..., Any], tuple[float, float], float]] = {
    "abs": (np.abs, ALL, 1),
    "acos": (np.arccos, (-0.9, 0.9), 2.3),
    "acosh": (np.arccosh, (1.1, 5), 2.2),
    "asin": (np.arcsin, (-0.9, 0.9), 2.3),
    "asinh": (np.arcsinh, ALL, 1),
    "atan": (np.arctan, ALL, 1),
    "atanh": (np.arctanh, (-0.9, 0.9), 5.3),
    "cbrt": (np.cbrt, POSITIVE, 1),
    "cos": (np.cos, ALL, 1),
    "cosh": (np.cosh, (-3, 3), 10.1),
    "deg2rad": (np.deg2rad, ALL, 1),
    "erf": (special.erf, ALL, 1.2),
    "erfc": (special.erfc, ALL, 1.2),
    "erfcinv": (special.erfcinv, (0.3, 1.7), 1.6),
    "erfinv": (special.erfinv, (-0.7, 0.7), 1.6),
    "exp": (np.exp, (-4, 4), 55),
    "exp2": (np.exp2, (-5, 5), 23),
    "expm1": (np.expm1, (-4, 4), 55),
    "fabs": (np.fabs, ALL, 1),
    "gelu": (lambda x: x * special.ndtr(x), ALL, 1.2),
    "lgamma": (special.gammaln, POSITIVE, 5.4),
    "log": (np.log, POSITIVE, 5),
    "log10": (np.log10, POSITIVE, 2.2),
    "log1p": (np.log1p, (-0.8, 50), 5),
    "log2": (np.log2, POSITIVE, 7.3),
    "neg": (np.negative, ALL, 1),
    "positive": (np.positive, ALL, 1),
    "rad2deg": (np.rad2deg, (-3, 3), 58),
    "reciprocal": (np.reciprocal, POSITIVE, 25),
    "relu": (lambda x: np.maximum(x, 0), ALL, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE, 5.6),
    "segment_set": (np.copy, ALL, 1),
    "set": (np.copy, ALL, 1),
    "sigmoid": (special.expit, ALL, 1),
    "silu": (lambda x: x * special.expit(x), ALL, 1.1),
    "sin": (np.sin, ALL, 1),
    "sinc": (np.sinc, ALL, 2),
    "sinh": (np.sinh, (-3, 3), 10.1),
    "softplus": (lambda x: np.logaddexp(x, 0), ALL, 1),
    "sqrt": (np.sqrt, POSITIVE, 2),
    "square": (np.square, (-9, 9), 18),
    "tan": (np.tan, (-1.2, 1.2), 7.7),
    "tanh": (np.tanh, ALL, 1),
}
# These jump, or are for all kinds: on exact terms only, and exact themselves.
EXACT: dict[str, tuple[Callable[..., Any], str]] = {
    "bitwise_not": (np.invert, "bi"),
    "ceil": (np.ceil, "f"),
    "conj": (np.conj, "c"),
    "floor": (np.floor, "f"),
    "frac": (lambda x: x - np.trunc(x), "f"),
    "imag": (np.imag, "c"),
    "isfinite": (np.isfinite, "fc"),
    "isinf": (np.isinf, "f"),
    "isnan": (np.isnan, "fc"),
    "isneginf": (np.isneginf, "f"),
    "isposinf": (np.isposinf, "f"),
    "isreal": (np.isreal, "c"),
    "logical_not": (np.logical_not, "bif"),
    "nan_to_num": (np.nan_to_num, "f"),
    "real": (np.real, "c"),
    "rint": (np.rint, "f"),
    "round": (np.rint, "f"),
    "sign": (np.sign, "if"),
    "signbit": (np.signbit, "f"),
    "trunc": (np.trunc, "f"),
    "truth": (lambda x: x.astype(bool), "bif"),
}
PAIRS: dict[str, tuple[Callable[..., Any], str]] = {
    "bitwise_and": (np.bitwise_and, "bi"),
    "bitwise_or": (np.bitwise_or, "bi"),
    "bitwise_xor": (np.bitwise_xor, "bi"),
    "copysign": (np.copysign, "f"),
    "eq": (np.equal, "bifc"),
    "floor_divide": (np.floor_divide, "i"),
    "fmod": (np.fmod, "if"),
    "gcd": (np.gcd, "i"),
    "ge": (np.greater_equal, "bif"),
    "gt": (np.greater, "bif"),
    "heaviside": (np.heaviside, "f"),
    "isclose": (np.isclose, "if"),
    "lcm": (np.lcm, "i"),
    "le": (np.less_equal, "bif"),
    "logical_and": (np.logical_and, "bif"),
    "logical_or": (np.logical_or, "bif"),
    "logical_xor": (np.logical_xor, "bif"),
    "lt": (np.less, "bif"),
    "mod": (np.fmod, "if"),
    "ne": (np.not_equal, "bifc"),
    "remainder": (np.remainder, "if"),
}
# Smooth in both operands, in the range given for each.
MEETING: dict[str, tuple[Callable[..., Any], tuple[float, float], float]] = {
    "add": (np.add, ALL, 2),
    "atan2": (np.arctan2, POSITIVE, 10),
    "div": (np.true_divide, POSITIVE, 300),
    "float_power": (np.float_power, (0.3, 2), 16),
    "fmax": (np.fmax, ALL, 1),
    "fmin": (np.fmin, ALL, 1),
    "hypot": (np.hypot, ALL, 2),
    "logaddexp": (np.logaddexp, ALL, 2),
    "logaddexp2": (np.logaddexp2, ALL, 2),
    "maximum": (np.maximum, ALL, 1),
    "minimum": (np.minimum, ALL, 1),
    "mul": (np.multiply, (-9, 9), 18),
    "pow": (np.power, (0.3, 2), 16),
    "sub": (np.subtract, ALL, 2),
    "truediv": (np.true_divide, POSITIVE, 300),
}


def in_f32(meaning: Callable[..., Any], *arrays: Any) -> Any:
    """Compute as a kernel does: 16-bit floats in f32, rounded at the end."""
    halves = (np.dtype(np.float16), BF16)
    narrow = next((a.dtype for a in arrays if a.dtype in halves), None)
    if narrow is None:
        return np.asarray(meaning(*arrays))
    wide = [a.astype(np.float32) if a.dtype == narrow else a for a in arrays]
    found = np.asarray(meaning(*wide))
    return found.astype(narrow) if found.dtype == np.float32 else found


def within(w: Writer, term: Term, low: float, high: float) -> Term:
    """Return ``term`` held to a range, if it may leave it."""
    if (low, high) == ALL:
        return term
    bounds = [term.array.dtype.type(x) for x in (low, high)]
    held = w.fd.ops.clamp(term.handle, low, high)
    return Term(
        held,
        np.clip(term.array, *bounds).astype(term.array.dtype),
        term.slack + epsilon("f4"),
    )


def smooth(name: str) -> Callable[[Writer], None]:
    meaning, bounds, steep = SMOOTH[name]

    def step(w: Writer) -> None:
        term = within(w, w.pick("f"), *bounds)
        made = getattr(w.fd.ops, name)(term.handle)
        w.computed(made, in_f32(meaning, term.array), steep * term.slack)

    return step


def exact(name: str) -> Callable[[Writer], None]:
    meaning, kinds = EXACT[name]

    def step(w: Writer) -> None:
        term = w.pick(kinds, exact=True)
        made = getattr(w.fd.ops, name)(term.handle)
        w.keep(made, in_f32(meaning, term.array))

    return step


def pair(name: str) -> Callable[[Writer], None]:
    meaning, kinds = PAIRS[name]

    def step(w: Writer) -> None:
        x = w.pick(kinds, exact=True)
        y = w.partner(x, exact=True)
        if name in ("remainder", "fmod", "mod", "floor_divide"):
            y = Term(w.fd.ops.clamp(y.handle, 1, 4), np.clip(y.array, 1, 4))
        made = getattr(w.fd.ops, name)(x.handle, y.handle)
        w.keep(made, in_f32(meaning, x.array, y.array))

    return step


def meeting(name: str) -> Callable[[Writer], None]:
    meaning, bounds, steep = MEETING[name]

    def step(w: Writer) -> None:
        x = w.pick("f")
        if w.dice.random() < 0.2:  # a Python number, or a weak input
            y = number(w, *bounds)
        else:
            y = within(w, w.partner(x), *bounds)
        x = within(w, x, *bounds)
        slack = steep * max(x.slack, y.slack)
        made = getattr(w.fd.ops, name)(x.handle, y.handle)
        if isinstance(y.array, float):
            found = in_f32(lambda a: meaning(a, y.array), x.array)
        else:
            found = in_f32(meaning, x.array, y.array)
        w.computed(made, found, slack)

    return step


def number(w: Writer, low: float, high: float) -> Term:
    """Return a float in one of the forms that a number has."""
    found = float(w.dice.choice((0.5, 1.25, max(low, -2.0), min(high, 2.0))))
    chance = w.dice.random()
    if chance < 0.4:
        return Term(found, found)
    if chance < 0.6:
        return Term(w.fd.define_scalar(found), found)
    handle = w.fd.define_scalar(dtype=DataType.Double)
    w.inputs.append(found)
    return Term(handle, found)


# -- those with forms of their own -------------------------------------------


def shifts(name: str, meaning: Callable[..., Any]) -> Callable[[Writer], None]:
    def step(w: Writer) -> None:
        x = w.pick("i", exact=True)
        y = w.partner(x, exact=True)
        count = Term(w.fd.ops.clamp(y.handle, 0, 5), np.clip(y.array, 0, 5))
        made = getattr(w.fd.ops, name)(x.handle, count.handle)
        w.keep(made, meaning(x.array, count.array))

    return step


def _logical_shift(x: Any, count: Any) -> Any:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return np.right_shift(x.view(unsigned), count.astype(unsigned)).astype(x.dtype)


def div_of_integers(w: Writer) -> None:
    x = w.pick("i", exact=True)
    y = w.partner(x, exact=True)
    divisor = Term(w.fd.ops.clamp(y.handle, 1, 4), np.clip(y.array, 1, 4))
    made = w.fd.ops.div(x.handle, divisor.handle)
    w.keep(made, np.trunc(x.array / divisor.array).astype(x.array.dtype))


def divmod_step(w: Writer) -> None:
    x = w.pick("i", exact=True)
    y = w.partner(x, exact=True)
    divisor = Term(w.fd.ops.clamp(y.handle, 1, 4), np.clip(y.array, 1, 4))
    made = w.fd.ops.divmod(x.handle, divisor.handle)
    for handle, array in zip(made, np.divmod(x.array, divisor.array), strict=True):
        w.keep(handle, array)


def nextafter(w: Writer) -> None:
    x = w.pick("f", exact=True, fits=lambda a: a.dtype.itemsize > 2 or a.size == 0)
    if x.array.dtype.itemsize == 2:
        x = Term(w.fd.ops.cast(x.handle, DataType.Float), x.array.astype(np.float32))
    w.keep(
        w.fd.ops.nextafter(x.handle, 0.0), np.nextafter(x.array, x.array.dtype.type(0))
    )


def ldexp(w: Writer) -> None:
    x = w.pick("f", exact=True, fits=lambda a: a.dtype.itemsize > 2 or a.size == 0)
    if x.array.dtype.itemsize == 2:
        x = Term(w.fd.ops.cast(x.handle, DataType.Float), x.array.astype(np.float32))
    power = w.define(np.asarray(w.data.integers(-4, 5, x.array.shape), np.int32))
    w.keep(w.fd.ops.ldexp(x.handle, power.handle), np.ldexp(x.array, power.array))


def complex_step(w: Writer) -> None:
    x = w.pick("f", fits=lambda a: a.dtype in (np.float32, np.float64))
    if x.array.dtype.itemsize == 2:
        x = Term(w.fd.ops.cast(x.handle, DataType.Float), x.array.astype("f4"), x.slack)
    dtype = np.complex64 if x.array.dtype == np.float32 else np.complex128
    made = w.fd.ops.complex(x.handle, x.handle)
    w.keep(made, (x.array + 1j * x.array).astype(dtype), 2 * x.slack)


def angle(w: Writer) -> None:
    x = w.make("c", w.shape(2))
    shifted = w.fd.ops.add(x.handle, 5.5)
    moved = x.array + x.array.dtype.type(5.5)
    w.computed(w.fd.ops.angle(shifted), np.angle(moved), 0)


def where(w: Writer) -> None:
    x = w.pick("if")
    y = w.partner(x)
    c = w.partner(x, y, exact=True)
    flag = w.fd.ops.gt(c.handle, 0)
    chosen = np.where(c.array > 0, x.array, y.array)
    w.keep(w.fd.ops.where(flag, x.handle, y.handle), chosen, max(x.slack, y.slack))


def clamp(w: Writer) -> None:
    x = w.pick("if")
    low, high = w.dice.choice(((0, 3), (None, 2), (1, None)))
    found = np.clip(x.array, low, high).astype(x.array.dtype)
    w.keep(w.fd.ops.clamp(x.handle, low, high), found, x.slack)


def threshold(w: Writer) -> None:
    x = w.pick("f", exact=True)
    found = np.where(x.array <= 0.5, x.array.dtype.type(3), x.array)
    w.keep(w.fd.ops.threshold(x.handle, 0.5, 3.0), found)


def lerp(w: Writer) -> None:
    x = within(w, w.pick("f"), -9, 9)
    y = within(w, w.partner(x), -9, 9)
    share = w.dice.choice((0.25, 0.75))
    made = w.fd.ops.lerp(x.handle, y.handle, share)
    found = in_f32(lambda a, b: a + (b - a) * a.dtype.type(share), x.array, y.array)
    w.computed(made, found, 2 * max(x.slack, y.slack))


def addcmul(w: Writer) -> None:
    x = within(w, w.pick("f"), -9, 9)
    y = within(w, w.partner(x), -9, 9)
    made = w.fd.ops.addcmul(x.handle, y.handle, x.handle, value=2.0)
    found = in_f32(lambda a, b: a + 2 * b * a, x.array, y.array)
    w.computed(made, found, 40 * max(x.slack, y.slack) + 200 * epsilon(found.dtype))


def cast(w: Writer) -> None:
    x = w.pick("bif", exact=True)
    kinds = "if" if x.kind != "f" else "f"
    dtype = np.dtype(w.dice.choice(KINDS[w.dice.choice(kinds)]))
    if dtype.kind == "u":
        dtype = np.dtype(np.int32)
    made = w.fd.ops.cast(x.handle, DataType(as_dtype(dtype)))
    w.keep(made, x.array.astype(dtype))


def round_to(w: Writer) -> None:
    x = w.pick("f", exact=True, fits=lambda a: a.dtype == np.float64)
    if x.array.dtype != np.float64:
        x = Term(w.fd.ops.cast(x.handle, DataType.Double), x.array.astype(float))
    decimals = w.dice.choice((0, 1, 2))
    found = np.round(x.array, decimals)
    w.computed(w.fd.ops.round_to(x.handle, decimals), found, 0)


STEPS: dict[str, Callable[[Writer], None]] = {
    **{name: smooth(name) for name in SMOOTH},
    **{name: exact(name) for name in EXACT},
    **{name: pair(name) for name in PAIRS},
    **{name: meeting(name) for name in MEETING},
    "addcmul": addcmul,
    "angle": angle,
    "bitwise_left_shift": shifts("bitwise_left_shift", np.left_shift),
    "bitwise_right_shift": shifts("bitwise_right_shift", np.right_shift),
    "cast": cast,
    "clamp": clamp,
    "complex": complex_step,
    "div of integers": div_of_integers,
    "divmod": divmod_step,
    "lerp": lerp,
    "logical_right_shift": shifts("logical_right_shift", _logical_shift),
    "ldexp": ldexp,
    "nextafter": nextafter,
    "round_to": round_to,
    "threshold": threshold,
    "where": where,
}
