# SPDX-License-Identifier: Apache-2.0
"""Functions of one operand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from scipy import special

from tests.oracle.number_types import (
    BOOL,
    F64,
    LONG,
    Array,
    is_float,
    loop,
    precision,
    refuse_complex,
)
from tests.oracle.value import Value, convert, exact, rounded

if TYPE_CHECKING:
    from collections.abc import Callable

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)


_ERFC_END = 27.3  # zero in f64 from here on


def _erf(x: Array) -> Array:
    """Return erf; in longdouble by one step of Taylor's from the nearest float64."""
    near = x.astype(F64)
    slope = _TWO_OVER_ROOT_PI * np.exp(-near * near)
    rest = _rest(x, near)
    found: Array = special.erf(near)
    return np.where(rest == 0, found, found + rest * slope)


def _erfc(x: Array) -> Array:
    """Return erfc; mpmath's where SciPy's is 17 ulp off, or zero too early."""
    near = x.astype(F64)
    slope = _TWO_OVER_ROOT_PI * np.exp(-near * near)
    found: Array = special.erfc(near)
    if x.dtype != F64:
        found = found.astype(np.longdouble)
        tail = (near > 1) & (near < _ERFC_END)
        found[tail] = [_erfc_exactly(float(v)) for v in near[tail]]
    return found - _rest(x, near) * slope


@cache
def _erfc_exactly(x: float) -> np.longdouble:
    precise: Any = mpmath
    with precise.workprec(120):
        exact = precise.erfc(precise.mpf(x))
        high = float(exact)
        return np.longdouble(high) + np.longdouble(float(exact - high))


def _rest(x: Array, near: Array) -> Array:
    return np.where(np.isfinite(near), x - near, 0)


def _expit(x: Array) -> Array:
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


# Monotone functions, with the ulps a kernel may err by in its compute type.
MONOTONE: dict[str, tuple[Callable[[Array], Array], float]] = {
    "exp": (np.exp, 4),
    "exp2": (np.exp2, 4),
    "expm1": (np.expm1, 4),
    "log": (np.log, 4),
    "log2": (np.log2, 4),
    "log10": (np.log10, 4),
    "log1p": (np.log1p, 4),
    "sqrt": (np.sqrt, 1),
    "cbrt": (np.cbrt, 6),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
    "arcsin": (np.arcsin, 4),
    "arccos": (np.arccos, 4),
    "arctan": (np.arctan, 4),
    "sinh": (np.sinh, 4),
    "tanh": (np.tanh, 4),
    "arcsinh": (np.arcsinh, 5),
    "arccosh": (np.arccosh, 5),
    "arctanh": (np.arctanh, 5),
    "erf": (_erf, 6),
    "erfc": (_erfc, 10),
    "sigmoid": (_expit, 8),
    "reciprocal": (lambda x: 1 / x, 2),
    "tan": (np.tan, 5),
}
_TURNING: dict[str, tuple[Callable[[Array], Array], float]] = {
    "sin": (np.sin, 4),
    "cos": (np.cos, 4),
}
# NumPy knows the loops of these by another function's name.
_LIKE = {"erf": "exp", "erfc": "exp", "rsqrt": "exp", "sigmoid": "exp"}
STEPS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}
TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def spread(function: Callable[[Array], Array], x: Value, middle: Array) -> Array:
    """Return how far a monotone function moves within the bound of ``x``."""
    low, high = function(x.low), function(x.high)
    moved = np.maximum(np.abs(high - middle), np.abs(low - middle))
    # NaN on either side stays NaN, which is doubt.
    return np.where(x.err > 0, moved, 0.0)


def float_function(name: str, operand: Any) -> Value:
    """Return a float function of anything real."""
    ufunc = getattr(np, _LIKE.get(name, name))
    dtype = loop(ufunc, operand.dtype)[-1]
    refuse_complex(dtype, name)
    if not is_float(dtype):
        return _integer_function(ufunc, operand, dtype)
    x = convert(operand, dtype)
    if name in _TURNING:
        function, ulps = _TURNING[name]
        return rounded(dtype, function(x.ref), np.minimum(x.err, 2), x.doubt, ulps)
    function, ulps = MONOTONE[name]
    middle = function(x.ref)
    err = spread(function, x, middle)
    doubt = x.doubt
    if name in ("reciprocal", "tan", "rsqrt"):
        doubt = doubt | _near_pole(name, x)
    if name == "sigmoid":
        # 1 / (1 + exp(-x)) is zero where exp overflows.
        err = err + 4 / precision(dtype).top
    return rounded(dtype, middle, err, doubt, ulps, loose=x.loose)


def _near_pole(name: str, x: Value) -> Array:
    if name == "tan":
        down, up = np.tan(x.low), np.tan(x.high)
        return (x.err > 0) & ((x.err > 1) | (down > up))
    across = (x.err > 0) & (np.abs(x.ref) <= x.err)
    return across | (x.ref == 0 if x.loose else False)


def cosh(name: str, operand: Any) -> Value:
    """Return cosh, which is monotone in the size of its operand."""
    dtype = loop(np.cosh, operand.dtype)[-1]
    x = convert(operand, dtype)
    middle = np.cosh(x.ref)
    err = spread(np.cosh, x, middle)
    err = np.where(np.abs(x.ref) < x.err, np.maximum(err, middle - 1), err)
    return rounded(dtype, middle, err, x.doubt, 4)


def _integer_function(ufunc: np.ufunc, operand: Value, dtype: Any) -> Value:
    x = convert(operand, dtype)
    return exact(dtype, ufunc(x.ref), x.doubt)


def step(name: str, operand: Value) -> Value:
    """Return a rounding to whole numbers."""
    ufunc = getattr(np, name)
    dtype = loop(ufunc, operand.dtype)[-1]
    refuse_complex(dtype, name)
    if not is_float(dtype):
        return _integer_function(ufunc, operand, dtype)
    x = convert(operand, dtype)
    function = STEPS[name]
    crossed = function(x.low) != function(x.high)
    doubt = x.doubt | (crossed & (x.err > 0))
    # Any value within the bound rounds to the same number, but zero has two signs.
    loose = x.loose or bool(np.any((x.err > 0) & ~doubt))
    ref = function(x.ref)
    return replace(exact(dtype, ref, doubt), loose=loose)


def test(name: str, operand: Value) -> Value:
    """Return isnan, isinf or isfinite."""
    x = operand
    if x.dtype.kind in "biu":
        return exact(BOOL, TESTS[name](x.ref.astype(LONG)), x.doubt)
    return exact(BOOL, TESTS[name](x.ref), x.doubt)


def signbit(name: str, operand: Value) -> Value:
    """Return signbit; a NaN's sign means nothing."""
    dtype = loop(np.signbit, operand.dtype)[0]
    x = convert(operand, dtype)
    doubt = x.doubt | sign_is_open(x)
    return exact(BOOL, np.signbit(x.ref), doubt)


def sign_is_open(x: Value) -> Array:
    """Tell where the sign bit of ``x`` is not known."""
    across = (x.err > 0) & (np.abs(x.ref) <= x.err)
    return across | np.isnan(x.ref) | ((x.ref == 0) & x.loose)


def exact_function(name: str, operand: Value) -> Value:
    """Return negative, positive, absolute, sign: functions that do not round."""
    ufunc = getattr(np, name)
    dtype = loop(ufunc, operand.dtype)[-1]
    x = convert(operand, dtype)
    if x.dtype.kind in "biu":
        return _integer_function(ufunc, operand, dtype)
    if name == "sign":
        crossed = (x.err > 0) & (np.abs(x.ref) <= x.err)
        return replace(exact(dtype, np.sign(x.ref), x.doubt | crossed), loose=True)
    return replace(x, ref=np.asarray(ufunc(x.ref)))


def invert(name: str, operand: Value) -> Value:
    """Return the bits inverted."""
    loop(np.invert, operand.dtype)
    return exact(operand.dtype, ~operand.ref, operand.doubt)


def logical_not(name: str, operand: Value) -> Value:
    """Return what is zero."""
    truth = convert(operand, BOOL)
    return exact(BOOL, ~truth.ref, truth.doubt)
