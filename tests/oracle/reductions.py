# SPDX-License-Identifier: Apache-2.0
"""Functions that fold axes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tests.oracle.number_types import (
    BOOL,
    F64,
    I64,
    Array,
    Type,
    is_float,
    is_inexact,
    precision,
    refuse_complex,
)
from tests.oracle.value import Value, cast, convert, exact, rounded

Axes = int | tuple[int, ...] | None


def axes_of(x: Value, axis: Axes) -> tuple[int, ...]:
    """Return the axes that ``axis`` stands for."""
    return tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)


def count_of(x: Value, axis: Axes) -> int:
    """Return how many elements fold into one."""
    return math.prod(x.shape[a] for a in axes_of(x, axis))


def _total(values: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.add.reduce(values, axis=axes, keepdims=keepdims))


def _any(mask: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    return np.asarray(np.logical_or.reduce(mask, axis=axes, keepdims=keepdims))


def sum_length(count: int) -> float:
    """Return how many roundings a sum as good as a pairwise one may show."""
    return min(count, 32 + 2 * math.log2(max(count, 1))) + 1


def summed_type(dtype: Type) -> Type:
    """Return the dtype of a sum or product of ``dtype``."""
    if dtype.kind in "bi":
        return I64
    return np.dtype(np.uint64) if dtype.kind == "u" else dtype


def total(
    name: str, x: Value, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Value:
    """Return a sum."""
    target = summed_type(x.dtype) if dtype is None else np.dtype(dtype)
    x = convert(x, target) if target != BOOL else cast(x, BOOL)
    axes = axes_of(x, axis)
    doubt = _any(x.doubt, axes, keepdims)
    if not is_inexact(target):
        ref = np.add.reduce(x.ref, axis=axes, keepdims=keepdims, dtype=target)
        return exact(target, ref, doubt)
    p = precision(target)
    ref = _total(x.ref, axes, keepdims)
    finite = np.isfinite(x.ref)
    size = _total(np.where(finite, np.abs(x.ref), 0), axes, keepdims)
    err = _total(x.err, axes, keepdims)
    err = err + sum_length(count_of(x, axis)) * p.unit * size
    if count_of(x, axis) == 1:
        err = _total(x.err, axes, keepdims)
    one_sign = (size <= np.abs(ref)) & np.isfinite(ref)
    doubt = doubt | ((size + err >= p.top) & ~one_sign & ~np.isnan(ref))
    err = np.where(np.isfinite(ref), err, 0.0)
    if target.kind == "c":
        doubt = doubt | ~np.isfinite(ref)
    return rounded(target, ref, err, doubt, ulps=0, loose=True)


def product(
    name: str, x: Value, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Value:
    """Return a product."""
    target = summed_type(x.dtype) if dtype is None else np.dtype(dtype)
    refuse_complex(target, name)
    x = convert(x, target)
    axes = axes_of(x, axis)
    doubt = _any(x.doubt, axes, keepdims)
    ref = np.asarray(np.multiply.reduce(x.ref, axis=axes, keepdims=keepdims))
    if not is_float(target):
        ref = np.multiply.reduce(x.ref, axis=axes, keepdims=keepdims, dtype=target)
        return exact(target, ref, doubt)
    p = precision(target)
    size = np.abs(x.ref)
    plain = np.isfinite(size) & (size > 0)
    logs = np.where(plain, np.log2(np.where(plain, size, 1)), 0)
    most = _total(np.maximum(logs, 0), axes, keepdims)
    least = _total(np.minimum(logs, 0), axes, keepdims)
    nan = _any(np.isnan(x.ref), axes, keepdims)
    # What overflows or underflows on the way depends on the order.
    out = (most >= math.log2(p.top) - 1) | (least <= math.log2(p.floor) + 25)
    doubt = doubt | (out & ~nan) | _any((x.err >= size) & (x.err > 0), axes, keepdims)
    relative = np.where(plain & (x.err < size), x.err / np.where(plain, size, 1), 0)
    factor = np.expm1(_total(np.log1p(2 * relative), axes, keepdims))
    factor = factor + 2 * p.unit * count_of(x, axis)
    err = np.where(np.isfinite(ref), np.abs(np.where(np.isnan(ref), 0, ref)), 0)
    err = np.where(err > 0, err * factor, 0.0)
    return rounded(target, ref, err, doubt, ulps=0, loose=True)


def extreme(name: str, x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """Return a maximum or minimum."""
    refuse_complex(x.dtype, name)
    function = np.maximum.reduce if "max" in name else np.minimum.reduce
    axes = axes_of(x, axis)
    doubt = _any(x.doubt, axes, keepdims)
    ref = np.asarray(function(x.ref, axis=axes, keepdims=keepdims))
    if not is_float(x.dtype):
        return exact(x.dtype, ref, doubt)
    low, high = (
        np.asarray(function(v, axis=axes, keepdims=keepdims)) for v in (x.low, x.high)
    )
    err = np.where(low == high, 0, np.maximum(high - ref, ref - low))
    err = np.where(np.isnan(ref), 0.0, err).astype(np.float64)
    return Value(x.dtype, ref, err, doubt, loose=True)


def truth(name: str, x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """Return any or all."""
    x = cast(x, BOOL)
    axes = axes_of(x, axis)
    wanted = name == "any"
    decided = _any((x.ref == wanted) & ~x.doubt, axes, keepdims)
    doubt = _any(x.doubt, axes, keepdims) & ~decided
    ref = _any(x.ref == wanted, axes, keepdims) == wanted
    return exact(BOOL, ref, doubt)


def count_nonzero(
    name: str, x: Value, axis: Axes = None, keepdims: bool = False
) -> Value:
    """Return how many elements are not zero."""
    return total("sum", cast(x, BOOL), axis, keepdims=keepdims)


def position(
    name: str, x: Value, axis: int | None = None, keepdims: bool = False
) -> Value:
    """Return argmax or argmin; doubted where another element may be the one."""
    refuse_complex(x.dtype, name)
    function = np.argmax if name == "argmax" else np.argmin
    doubt = _any(x.doubt, axes_of(x, axis), keepdims)
    ref = np.asarray(function(x.ref, axis=axis, keepdims=keepdims))
    if is_float(x.dtype):
        upward = x if name == "argmax" else replace(x, ref=-x.ref)
        doubt = doubt | _contested(upward, axis, keepdims)
    return exact(I64, ref, doubt)


def _contested(x: Value, axis: int | None, keepdims: bool) -> Array:
    axes = axes_of(x, axis)
    best = np.maximum.reduce(x.low, axis=axes, keepdims=True)
    contender = x.high >= best
    several = _total(contender.astype(I64), axes, keepdims) > 1
    inexact = _any(contender & (x.err > 0), axes, keepdims)
    return several & inexact


def mean(
    name: str, x: Value, axis: Axes = None, dtype: Any = None, keepdims: bool = False
) -> Value:
    """Return an arithmetic mean."""
    target = np.dtype(dtype) if dtype is not None else x.dtype
    target = target if is_inexact(target) else F64
    sums = total("sum", x, axis, target, keepdims)
    count = count_of(x, axis)
    if target.kind == "c":
        return rounded(
            target, sums.ref / count, sums.err / max(count, 1), sums.doubt, 2
        )
    p = precision(target)
    ref = sums.ref / p.reference.type(count)
    err = sums.err / max(count, 1)
    return rounded(target, ref, np.where(np.isfinite(ref), err, 0.0), sums.doubt)


def variance(
    name: str,
    x: Value,
    axis: Axes = None,
    dtype: Any = None,
    keepdims: bool = False,
    correction: float = 0,
    ddof: float = 0,
) -> Value:
    """Return a variance (or, for ``std``, its root)."""
    target = np.dtype(dtype) if dtype is not None else x.dtype
    x = convert(x, target if is_float(target) else F64)
    correction = correction or ddof
    count = count_of(x, axis)
    p = precision(x.dtype)
    center = mean("mean", x, axis, keepdims=True)
    with np.errstate(all="ignore"):
        away = x.ref - center.ref
        # Deviations add up to zero, so the mean's error only enters squared.
        axes = axes_of(x, axis)
        moment = _total(away * away, axes, keepdims)
        own = _total(2 * np.abs(away) * (x.err + p.unit * np.abs(away)), axes, keepdims)
        drift = center.err + p.unit * np.abs(center.ref)
        own = own + _total(x.err * x.err, axes, keepdims)
        own = own + count * _total(drift * drift, axes, True).reshape(own.shape)
        own = own + 2 * sum_length(count) * p.unit * _total(
            np.abs(away) * (np.abs(away) + np.abs(center.ref)), axes, keepdims
        )
    most = _total(np.where(np.isfinite(x.ref), x.ref * x.ref, 0), axes, keepdims)
    doubt = _any(x.doubt, axes, keepdims) | (most >= p.top / 8)
    nan = _any(~np.isfinite(x.ref), axes, keepdims)
    doubt = np.where(nan & ~_any(x.doubt, axes, keepdims), False, doubt)
    moment = np.where(nan, np.nan, moment)
    own = np.zeros_like(own) if count <= 1 else own
    left = max(count - correction, 0)
    ref = np.asarray(moment / p.reference.type(left), p.reference)
    err = np.where(np.isfinite(ref), own / max(left, 1e-300), 0.0)
    if left == 0 and count > 1:
        doubt = doubt | ~nan
    result = rounded(x.dtype, ref, err, doubt, 2, loose=True)
    return _root(result) if name == "std" else result


def _root(x: Value) -> Value:
    ref = np.sqrt(x.ref)
    high, low = np.sqrt(x.high), np.sqrt(np.maximum(x.low, 0))
    err = np.where(x.err > 0, np.maximum(high - ref, ref - low), 0)
    return rounded(x.dtype, ref, err, x.doubt, 2, loose=True)
