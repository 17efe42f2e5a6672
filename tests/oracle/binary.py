# SPDX-License-Identifier: Apache-2.0
"""Functions of two and three operands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tests.oracle.number_types import (
    BOOL,
    Array,
    Type,
    common,
    is_float,
    is_inexact,
    loop,
    precision,
    refuse_complex,
)
from tests.oracle.unary import sign_is_open
from tests.oracle.value import Value, convert, exact, rounded

COMPARISONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
LOGIC = {"logical_and", "logical_or", "logical_xor"}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
DIVISORS = {"gcd", "lcm"}


def kind_of(operand: Any) -> Any:
    """Return the dtype of an operand, or the Python type of a weak one."""
    if isinstance(operand, bool | int | float | complex):
        return type(operand)
    return operand.dtype


def _pair(name: str, a: Any, b: Any) -> tuple[Type, Value, Value]:
    left, right, result = loop(getattr(np, name), kind_of(a), kind_of(b))
    x, y = convert(a, left), convert(b, right)
    np.broadcast_shapes(x.shape, y.shape)
    return result, x, y


def _times(err: Array, factor: Array) -> Array:
    """Multiply, taking zero times infinity for zero."""
    return np.where(err == 0, 0.0, err * np.abs(factor).astype(np.float64))


def _across(x: Value) -> Array:
    """Tell where zero lies within the bound of a value that is not exact."""
    return (x.err > 0) & (np.abs(x.ref) <= x.err)


def _integers(name: str, dtype: Type, x: Value, y: Value) -> Value:
    return exact(dtype, getattr(np, name)(x.ref, y.ref), x.doubt | y.doubt)


def add(name: str, a: Any, b: Any) -> Value:
    """Return a sum or difference."""
    dtype, x, y = _pair(name, a, b)
    if not is_inexact(dtype):
        return _integers(name, dtype, x, y)
    doubt = x.doubt | y.doubt
    for soft in (x.soft, y.soft):
        doubt = doubt if soft is None else doubt | soft
    ref = getattr(np, name)(x.ref, y.ref)
    loose = x.loose or y.loose or bool(np.any((x.err > 0) | (y.err > 0)))
    return rounded(dtype, ref, x.err + y.err, doubt, loose=loose)


def multiply(name: str, a: Any, b: Any) -> Value:
    """Return a product."""
    dtype, x, y = _pair(name, a, b)
    if not is_inexact(dtype):
        return _integers(name, dtype, x, y)
    ref = np.asarray(x.ref * y.ref)
    err = _times(x.err, y.ref) + _times(y.err, x.ref) + x.err * y.err
    doubt = x.doubt | y.doubt
    if dtype.kind == "c":
        return _complex(dtype, ref, 2 * err, doubt, np.abs(x.ref) * np.abs(y.ref))
    doubt = doubt | (np.isinf(x.ref) & _across(y)) | (np.isinf(y.ref) & _across(x))
    loose = x.loose or y.loose
    return rounded(dtype, ref, err, doubt, loose=loose, product=True)


def _complex(dtype: Type, ref: Array, err: Array, doubt: Array, size: Array) -> Value:
    """Bound both parts by the size of the operands; doubt what is not finite."""
    p = precision(dtype)
    open_ended = ~np.isfinite(ref) | ~(size < p.top / 8)
    own = 16 * (p.unit * size + p.floor)
    err = np.where(open_ended, 0.0, err + own).astype(np.float64)
    return rounded(dtype, ref, err, doubt | open_ended, ulps=0, loose=True)


def divide(name: str, a: Any, b: Any) -> Value:
    """Return a quotient."""
    dtype, x, y = _pair("divide", a, b)
    ref = np.asarray(x.ref / y.ref)
    least = np.abs(y.ref) - y.err
    err = (x.err + _times(y.err, ref)) / np.where(least > 0, least, 1)
    doubt = x.doubt | y.doubt | _across(y)
    err = np.where(np.isfinite(ref), err, 0.0)
    if dtype.kind == "c":
        return _complex(dtype, ref, 2 * err, doubt, np.abs(ref))
    zero = y.ref == 0
    doubt = doubt | (zero & (_across(x) | y.loose))
    doubt = doubt | (np.isinf(x.ref) & (y.err > 0) & _across(y))
    ulps = 2.0 if dtype.itemsize == 2 else 1.0  # what 16 bits hold may be cheaper
    return rounded(dtype, ref, err, doubt, ulps, loose=x.loose or y.loose)


def _quotient_crosses(x: Value, y: Value, whole: Any) -> Array:
    """Tell where the whole part of ``x / y`` is not known."""
    inexact = (x.err > 0) | (y.err > 0)
    corners = [p / q for p in (x.low, x.high) for q in (y.low, y.high)]
    wholes = [whole(c) for c in corners]
    differs = np.logical_or.reduce([w != wholes[0] for w in wholes])
    near = np.abs(wholes[0] - corners[0]) <= 1e-15 * np.abs(corners[0])
    return inexact & (differs | _across(y) | near)


def floor_divide(name: str, a: Any, b: Any) -> Value:
    """Return the quotient rounded down."""
    dtype, x, y = _pair(name, a, b)
    if not is_float(dtype):
        return _integers(name, dtype, x, y)
    ref = np.floor_divide(x.ref, y.ref)
    doubt = x.doubt | y.doubt | _quotient_crosses(x, y, np.floor)
    doubt = doubt | ((y.ref == 0) & y.loose)
    # Whole quotients that the type cannot hold are rounded, and rounded from one
    # that is.
    err = np.where(np.abs(ref) * precision(dtype).unit < 0.125, 0.0, 2 * np.abs(ref))
    err = np.where(np.isfinite(ref), err * 2 * precision(dtype).unit, 0.0)
    return rounded(dtype, ref, err, doubt, ulps=0, loose=True)


def remainder(name: str, a: Any, b: Any) -> Value:
    """Return ``remainder`` or ``fmod``."""
    dtype, x, y = _pair(name, a, b)
    if not is_float(dtype):
        return _integers(name, dtype, x, y)
    whole = np.floor if name == "remainder" else np.trunc
    ref = getattr(np, name)(x.ref, y.ref)
    doubt = x.doubt | y.doubt | _quotient_crosses(x, y, whole)
    err = x.err + _times(y.err, whole(x.ref / y.ref))
    own = np.where(np.isfinite(y.ref), np.abs(y.ref), np.abs(x.ref))
    err = err + 2 * precision(dtype).unit * own * (name == "remainder")
    err = np.where(np.isfinite(ref), err, 0.0)
    return rounded(dtype, ref, err, doubt, ulps=0, loose=True)


def power(name: str, a: Any, b: Any) -> Value:
    """Return a power."""
    dtype, x, y = _pair(name, a, b)
    if not is_inexact(dtype):
        return _integers(name, dtype, x, y)
    if dtype.kind == "c":
        message = "the oracle has no complex powers"
        raise TypeError(message)
    ref = np.asarray(np.power(x.ref, y.ref))
    inexact = (x.err > 0) | (y.err > 0)
    corners = [np.power(p, q) for p in (x.low, x.high) for q in (y.low, y.high)]
    moved = [np.abs(c - ref) for c in corners]
    positive = x.low > 0
    whole = (y.err == 0) & (y.ref == np.rint(y.ref)) & (y.ref >= 0)
    moved.append(np.where(whole & _across(x), np.abs(ref), 0))
    err = np.where(inexact, np.maximum.reduce(moved), 0)
    err = np.where(y.ref == 1, x.err, err)
    doubt = x.doubt | y.doubt | (inexact & ~positive & ~whole)
    doubt = doubt | ((x.ref == 0) & (y.ref < 0) & x.loose)
    if not isinstance(b, Value) and b == 0.5:
        # Whether this is sqrt or pow shows at -inf and -0.0.
        doubt = doubt | np.isneginf(x.ref)
    return rounded(dtype, ref, err, doubt, 8, loose=True)


def atan2(name: str, a: Any, b: Any) -> Value:
    """Return the angle of a point."""
    dtype, y, x = _pair("arctan2", a, b)
    ref = np.arctan2(y.ref, x.ref)
    size = np.hypot(x.ref, y.ref)
    inexact = (x.err > 0) | (y.err > 0)
    far = size > 4 * (x.err + y.err)
    err = np.where(inexact, 2 * (x.err + y.err) / np.where(size > 0, size, 1), 0.0)
    cut = (x.low <= 0) & _across(y)
    zero = (y.ref == 0) & y.loose | ((x.ref == 0) & (y.ref == 0) & x.loose)
    doubt = x.doubt | y.doubt | (inexact & ~far) | cut | zero
    return rounded(dtype, ref, err, doubt, 5, loose=x.loose or y.loose)


def hypot(name: str, a: Any, b: Any) -> Value:
    """Return the length of a vector."""
    dtype, x, y = _pair(name, a, b)
    ref = np.hypot(x.ref, y.ref)
    return rounded(dtype, ref, x.err + y.err, x.doubt | y.doubt, 5)


def logaddexp(name: str, a: Any, b: Any) -> Value:
    """Return the logarithm of a sum of exponentials."""
    dtype, x, y = _pair(name, a, b)
    ref = getattr(np, name)(x.ref, y.ref)
    most = np.maximum(np.abs(x.ref), np.abs(y.ref)) + 1
    near = np.minimum(most, np.abs(np.maximum(x.ref, y.ref)) + 1)
    own = np.where(np.isfinite(ref), 10 * precision(dtype).unit * near, 0.0)
    err = np.maximum(x.err, y.err) + own
    return rounded(dtype, ref, err, x.doubt | y.doubt, 4, loose=True)


def copysign(name: str, a: Any, b: Any) -> Value:
    """Return the size of one with the sign of the other."""
    dtype, x, y = _pair(name, a, b)
    doubt = x.doubt | y.doubt | (sign_is_open(y) & ~np.isnan(x.ref))
    ref = np.copysign(x.ref, y.ref)
    err = np.broadcast_to(x.err, ref.shape)
    return Value(dtype, np.asarray(ref), err, doubt, loose=x.loose)


def nextafter(name: str, a: Any, b: Any) -> Value:
    """Return the neighbour of one toward the other, in their own type."""
    dtype, x, y = _pair(name, a, b)
    p = precision(dtype)
    if dtype != p.compute:
        message = "the neighbours of an unrounded 16-bit float mean nothing"
        raise TypeError(message)
    near = [v.ref.astype(dtype) for v in (x, y)]
    ref = np.nextafter(*near).astype(p.reference)
    inexact = (x.err > 0) | (y.err > 0)
    own = 4 * (p.unit * np.abs(x.ref) + p.floor)
    err = np.where(inexact & np.isfinite(ref), x.err + own, 0.0)
    return rounded(dtype, ref, err, x.doubt | y.doubt, ulps=0, loose=True)


def extreme(name: str, a: Any, b: Any) -> Value:
    """Return maximum, minimum, fmax or fmin."""
    dtype, x, y = _pair(name, a, b)
    refuse_complex(dtype, name)
    if not is_float(dtype):
        return _integers(name, dtype, x, y)
    ufunc = getattr(np, name)
    low, ref, high = (
        ufunc(p, q) for p, q in ((x.low, y.low), (x.ref, y.ref), (x.high, y.high))
    )
    inexact = (x.err > 0) | (y.err > 0)
    err = np.where(inexact, np.maximum(high - ref, ref - low), 0)
    err = np.where(np.isnan(ref) | (low == high), 0.0, err).astype(np.float64)
    return Value(dtype, np.asarray(ref), err, x.doubt | y.doubt, loose=True)


def compare(name: str, a: Any, b: Any) -> Value:
    """Return a comparison; doubted where the bounds overlap."""
    _, x, y = _pair(name, a, b)
    if name not in ("equal", "not_equal"):
        refuse_complex(x.dtype, name)
    doubt = x.doubt | y.doubt
    if is_inexact(x.dtype):
        inexact = (x.err > 0) | (y.err > 0)
        gap = np.abs(x.ref - y.ref)
        doubt = doubt | (inexact & (gap <= 2 * (x.err + y.err)))
    return exact(BOOL, getattr(np, name)(x.ref, y.ref), doubt)


def logic(name: str, a: Any, b: Any) -> Value:
    """Return and, or, exclusive or of what is not zero."""
    x, y = convert(a, BOOL), convert(b, BOOL)
    return exact(BOOL, getattr(np, name)(x.ref, y.ref), x.doubt | y.doubt)


def bits(name: str, a: Any, b: Any) -> Value:
    """Return an operation on bits."""
    dtype, x, y = _pair(name, a, b)
    return _integers(name, dtype, x, y)


def divisors(name: str, a: Any, b: Any) -> Value:
    """Return gcd or lcm."""
    dtype, x, y = _pair(name, a, b)
    return _integers(name, dtype, x, y)


def where(name: str, condition: Any, a: Any, b: Any) -> Value:
    """Return one or the other, as a condition says."""
    dtype = common(kind_of(a), kind_of(b))
    c, x, y = convert(condition, BOOL), convert(a, dtype), convert(b, dtype)
    soft = None
    if x.soft is not None or y.soft is not None:
        parts = [False if v.soft is None else v.soft for v in (x, y)]
        soft = np.where(c.ref, *parts)
    return Value(
        dtype,
        np.where(c.ref, x.ref, y.ref),
        np.where(c.ref, x.err, y.err),
        np.where(c.ref, x.doubt, y.doubt) | c.doubt,
        x.loose or y.loose,
        soft,
    )


def square(name: str, x: Value) -> Value:
    """Return the product with itself."""
    operand = convert(x, loop(np.square, x.dtype)[0])
    return multiply("multiply", operand, operand)


def clip(name: str, x: Any, low: Any = None, high: Any = None) -> Value:
    """Return ``x`` within limits."""
    given = [v for v in (x, low, high) if v is not None]
    dtype = common(*map(kind_of, given))
    x = convert(x, dtype)
    for limit, side in ((low, "maximum"), (high, "minimum")):
        if limit is not None:
            x = extreme(side, x, convert(limit, dtype))
    return replace(x, dtype=dtype)
