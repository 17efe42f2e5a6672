# SPDX-License-Identifier: Apache-2.0
"""A value with a bound of what rounding may have done to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracle.number_types import (
    BOOL,
    F32,
    HALVES,
    Array,
    Type,
    is_float,
    is_inexact,
    precision,
    round_to,
)
from tests.oracle.stand_in import ALIASES, StandIn
from tests.oracle.views import VIEWS, moved

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, eq=False)
class Value(StandIn):
    """What an array of ``dtype`` holds, as far as it is known.

    ``ref``
        A float64 (for float64: longdouble) evaluation, or the exact integers.
    ``err``
        How far from ``ref`` a right kernel may be; zero: exactly ``ref``.
    ``doubt``
        Elements that may be anything: a discontinuity lies within the bound.
    ``loose``
        The sign of zeros is not known.
    ``soft``
        Products beyond the range, which are infinite unless contracted with an
        addition.
    """

    dtype: Type
    ref: Array
    err: Array
    doubt: Array
    loose: bool = False
    soft: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes along the axes."""
        return self.ref.shape

    @property
    def low(self) -> Array:
        """The least that a right kernel may hold."""
        return np.where(self.err > 0, self.ref - self.err, self.ref)

    @property
    def high(self) -> Array:
        """The most that a right kernel may hold."""
        return np.where(self.err > 0, self.ref + self.err, self.ref)

    def view(self, function: Callable[[Array], Array]) -> Value:
        """Apply a function that only moves elements."""
        ref, err, doubt = (function(x) for x in (self.ref, self.err, self.doubt))
        soft = None if self.soft is None else function(self.soft)
        return replace(self, ref=ref, err=err, doubt=doubt, soft=soft)

    def dispatch(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give the function called ``name`` its meaning for values."""
        return apply(name, args, kwargs)


# What functions mean for values, and where it differs for complex ones; filled by
# ``meanings``, whose functions need the class above.
TABLE: dict[str, Callable[..., Any]] = {}
COMPLEX: dict[str, Callable[..., Any]] = {}


def apply(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the meaning of the function called ``name``."""
    name = ALIASES.get(name, name)
    args = tuple(from_array(a) if isinstance(a, np.ndarray) else a for a in args)
    with np.errstate(all="ignore"):
        if name in VIEWS:
            source, *rest = args
            return source.view(partial(moved, VIEWS[name], rest, kwargs))
        first = args[0] if args else None
        is_complex = isinstance(first, Value) and first.dtype.kind == "c"
        table = COMPLEX if is_complex and name in COMPLEX else TABLE
        return table[name](name, *args, **kwargs)


def no_err(shape: tuple[int, ...]) -> Array:
    """Return a bound of zero."""
    return np.zeros(shape)


def no_doubt(shape: tuple[int, ...]) -> Array:
    """Return the mask of no element."""
    return np.zeros(shape, bool)


def exact(dtype: Type, ref: Array, doubt: Array | None = None) -> Value:
    """Return integers, bools or representable floats, known exactly."""
    held: Array = np.asarray(ref)
    mask: Array = no_doubt(held.shape) if doubt is None else np.asarray(doubt)
    return Value(dtype, held, no_err(held.shape), np.broadcast_to(mask, held.shape))


def from_array(array: Any) -> Value:
    """Return what an input array holds."""
    array = np.asarray(array)
    reference = precision(array.dtype).reference if is_inexact(array.dtype) else None
    ref = array.astype(reference) if reference else array.copy()
    return exact(array.dtype, ref)


def from_scalar(number: Any, dtype: Type) -> Value:
    """Return a weak Python scalar that takes part as ``dtype``."""
    if not is_inexact(dtype):
        if isinstance(number, float):
            message = f"{number} does not fit {dtype}"
            raise TypeError(message)
        return exact(dtype, np.asarray(np.array(number, dtype)))
    if dtype.kind == "c":
        return exact(dtype, np.asarray(number, precision(dtype).reference))
    wide = np.asarray(number, precision(dtype).reference)
    near = round_to(F32 if dtype in HALVES else dtype, wide)
    value = exact(dtype, near)
    if dtype in HALVES:
        # A kernel may keep the constant as f32, or round it as NumPy does.
        err = np.abs(round_to(dtype, wide) - near).astype(np.float64)
        value = replace(value, err=err)
    return value


def rounded(
    dtype: Type,
    ref: Any,
    err: Any,
    doubt: Any,
    ulps: float = 1.0,
    *,
    loose: bool = False,
    product: bool = False,
) -> Value:
    """Return a computed float, with its own rounding and its range seen to."""
    p = precision(dtype)
    near: Array = np.asarray(ref, p.reference)
    size = np.abs(near)
    finite = np.isfinite(near)
    err = np.where(finite, err, np.where(np.isfinite(err), 0.0, err))
    if ulps:
        own = ulps * (2 * p.unit * size + p.floor)
        err = err + np.where(finite, own, 0)
    err = np.asarray(err, np.float64)
    limit = np.longdouble(p.top) * (1 + np.longdouble(p.unit) / 2)
    sure = finite & (size - err >= limit)
    maybe = finite & (size + err >= limit) & ~sure
    doubt = np.broadcast_to(doubt, near.shape) | maybe | ~np.isfinite(err)
    if dtype.kind == "c":
        return Value(dtype, near, err, doubt | sure, loose)
    infinite = np.copysign(p.reference.type(np.inf), near)
    held = np.where(sure, infinite, near)
    err = np.where(sure | doubt, 0.0, err)
    return Value(dtype, held, err, doubt, loose, sure if product else None)


def convert(x: Any, dtype: Type) -> Value:
    """Take part in an operation of ``dtype`` (16-bit floats stay unrounded)."""
    if not isinstance(x, Value):
        if isinstance(x, np.generic | np.ndarray):
            return convert(from_array(x), dtype)
        return from_scalar(x, dtype)
    if x.dtype == dtype:
        return x
    if is_float(x.dtype) and is_float(dtype):
        reference = precision(dtype).reference
        narrowing = reference != x.ref.dtype and reference == np.float64
        return cast(x, dtype) if narrowing else replace_type(x, dtype)
    return cast(x, dtype)


def replace_type(x: Value, dtype: Type) -> Value:
    """Say that ``x`` has another dtype, of which all its numbers are."""
    return replace(x, dtype=dtype, ref=x.ref.astype(precision(dtype).reference))


def cast(x: Value, dtype: Type) -> Value:
    """Return ``x.astype(dtype)``: the one place besides outputs that rounds."""
    if dtype == BOOL:
        crosses = (x.err > 0) & (np.abs(x.ref) <= x.err)
        return exact(dtype, x.ref != 0, x.doubt | crosses)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        inner = x if x.dtype.kind == "c" else _to_float(x, part)
        ref = inner.ref.astype(precision(dtype).reference)
        if x.dtype.kind == "c" and dtype.itemsize < x.dtype.itemsize:
            return rounded(dtype, ref, x.err, x.doubt)
        return replace(inner, dtype=dtype, ref=ref, soft=None)
    if x.dtype.kind == "c":
        message = "a complex value has no real cast"
        raise TypeError(message)
    if is_float(dtype):
        return _to_float(x, dtype)
    return (
        _to_integer(x, dtype)
        if is_float(x.dtype)
        else exact(dtype, x.ref.astype(dtype), x.doubt)
    )


def _to_float(x: Value, dtype: Type) -> Value:
    reference = precision(dtype).reference
    if not is_float(x.dtype):
        exactly = x.ref.astype(np.longdouble)
        ref = round_to(dtype, exactly)
        err = no_err(ref.shape)
        if dtype in HALVES:
            # Kernels pass through f32, so wide integers round twice.
            twice = round_to(dtype, round_to(F32, exactly))
            err = np.where(ref == twice, 0, np.abs(twice - ref))
        return rounded(dtype, ref.astype(reference), err, x.doubt, ulps=0)
    low, ref, high = (round_to(dtype, y) for y in (x.low, x.ref, x.high))
    with np.errstate(invalid="ignore"):
        err = np.where(x.err > 0, np.maximum(high - ref, ref - low), 0)
    unsure = np.isinf(ref) & (x.err > 0) & (low != high)
    err = np.where(np.isnan(err) & np.isinf(ref), 0, err).astype(np.float64)
    made = rounded(dtype, ref.astype(reference), err, x.doubt | unsure, ulps=0)
    return replace(made, loose=x.loose)


def _to_integer(x: Value, dtype: Type) -> Value:
    low, ref, high = (np.trunc(y) for y in (x.low, x.ref, x.high))
    limits = np.iinfo(dtype)
    inside = (ref >= limits.min) & (ref <= limits.max)
    # C leaves the rest, NaN among it, undefined.
    doubt = x.doubt | (low != high) | ~inside
    safe = np.where(inside, ref, 0).astype(np.longdouble)
    return exact(dtype, safe.astype(dtype), doubt)
