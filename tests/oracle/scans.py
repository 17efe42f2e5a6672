# SPDX-License-Identifier: Apache-2.0
"""Functions that keep what there is after each element along an axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.oracle.number_types import (
    BOOL,
    Array,
    Type,
    is_float,
    is_inexact,
    precision,
    refuse_complex,
)
from tests.oracle.reductions import summed_type
from tests.oracle.value import Value, cast, convert, exact, rounded

PLAIN = ("cumsum", "cumprod")
CUMULATIVE = ("cumulative_sum", "cumulative_prod")
UFUNCS = tuple(
    f"{name}.accumulate" for name in ("add", "multiply", "maximum", "minimum")
)
NAMES = (*PLAIN, *CUMULATIVE, *UFUNCS)


def target_type(name: str, dtype: Type, wanted: Any) -> Type:
    """Return the dtype of a scan of ``dtype``."""
    if wanted is not None:
        return np.dtype(wanted)
    return dtype if name[:3] in ("max", "min") else summed_type(dtype)


def along(x: Any, axis: int | None) -> tuple[Any, int]:
    """Return ``x`` and the axis to scan: without one, all in C order."""
    if axis is not None and x.ndim:
        return x, axis
    return x.reshape(-1), 0


def _sums(values: Array, axis: int) -> Array:
    return np.asarray(np.add.accumulate(values, axis=axis))


def _seen(mask: Array, axis: int) -> Array:
    return np.asarray(np.logical_or.accumulate(mask, axis=axis), bool)


def _count(x: Value, axis: int) -> Array:
    return _sums(np.ones(x.shape), axis)


def scan(
    name: str,
    x: Value,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Value:
    """Return a scan, as accurate as one in order."""
    target = target_type(name, x.dtype, dtype)
    axis = 0 if axis is None and name in UFUNCS else axis
    if name in CUMULATIVE and axis is None and x.ndim > 1:
        message = "an axis is required"
        raise ValueError(message)
    x = convert(x, target) if target != BOOL else cast(x, BOOL)
    x, place = along(x, axis)
    if include_initial:
        x = _with_initial(x, place, float("prod" in name))
    if name.startswith(("max", "min")):
        return _extreme(name, x, place)
    return (_total if "sum" in name or "add" in name else _product)(name, x, place)


def _with_initial(x: Value, axis: int, number: float) -> Value:
    def grown(array: Array, first: float) -> Array:
        shape = [1 if k == axis % array.ndim else n for k, n in enumerate(array.shape)]
        return np.concatenate([np.full(shape, first, array.dtype), array], axis)

    doubt = grown(x.doubt, 0)
    return Value(x.dtype, grown(x.ref, number), grown(x.err, 0), doubt, loose=True)


def _total(name: str, x: Value, axis: int) -> Value:
    target, doubt = x.dtype, _seen(x.doubt, axis)
    if not is_inexact(target):
        return exact(target, np.add.accumulate(x.ref, axis=axis, dtype=target), doubt)
    p = precision(target)
    ref = _sums(x.ref, axis)
    size = _sums(np.where(np.isfinite(x.ref), np.abs(x.ref), 0), axis)
    count = _count(x, axis)
    err = _sums(x.err, axis) + np.where(count > 1, count, 0) * p.unit * size
    one_sign = (size <= np.abs(ref)) & np.isfinite(ref)
    doubt = doubt | ((size + err >= p.top) & ~one_sign & ~np.isnan(ref))
    err = np.where(np.isfinite(ref), err, 0.0)
    if target.kind == "c":
        doubt = doubt | ~np.isfinite(ref)
    return rounded(target, ref, err, doubt, ulps=0, loose=True)


def _product(name: str, x: Value, axis: int) -> Value:
    target, doubt = x.dtype, _seen(x.doubt, axis)
    refuse_complex(target, name)
    if not is_float(target):
        ref = np.multiply.accumulate(x.ref, axis=axis, dtype=target)
        return exact(target, ref, doubt)
    p = precision(target)
    ref = np.asarray(np.multiply.accumulate(x.ref, axis=axis))
    size = np.abs(x.ref)
    plain = np.isfinite(size) & (size > 0)
    logs = np.where(plain, np.log2(np.where(plain, size, 1)), 0)
    most, least = (_sums(f(logs, 0), axis) for f in (np.maximum, np.minimum))
    out = (most >= math.log2(p.top) - 1) | (least <= math.log2(p.floor) + 25)
    unsure = _seen((x.err >= size) & (x.err > 0), axis)
    doubt = doubt | (out & ~_seen(np.isnan(x.ref), axis)) | unsure
    relative = np.where(plain & (x.err < size), x.err / np.where(plain, size, 1), 0)
    factor = np.expm1(_sums(np.log1p(2 * relative), axis))
    factor = factor + 2 * p.unit * _count(x, axis)
    err = np.where(np.isfinite(ref), np.abs(np.where(np.isnan(ref), 0, ref)), 0)
    err = np.where(err > 0, err * factor, 0.0)
    return rounded(target, ref, err, doubt, ulps=0, loose=True)


def _extreme(name: str, x: Value, axis: int) -> Value:
    refuse_complex(x.dtype, name)
    function = np.maximum if name.startswith("max") else np.minimum
    doubt = _seen(x.doubt, axis)
    ref, low, high = (
        np.asarray(function.accumulate(v, axis=axis)) for v in (x.ref, x.low, x.high)
    )
    if not is_float(x.dtype):
        return exact(x.dtype, ref, doubt)
    err = np.where(low == high, 0, np.maximum(high - ref, ref - low))
    err = np.where(np.isnan(ref), 0.0, err).astype(np.float64)
    return Value(x.dtype, ref, err, doubt, loose=True)
