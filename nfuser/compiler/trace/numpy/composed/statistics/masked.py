# SPDX-License-Identifier: Apache-2.0
"""Reductions of the elements where a condition holds, begun with a number."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ops.shapes.views import normal_axes
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, plain
from nfuser.errors import ArgumentError, DTypeError, RangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

_COMBINE: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
_IDENTITY: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True}


def taken(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Take from ``options`` what says which elements are folded, and from where on."""
    allowed = ("where", "initial") if name in _COMBINE else ("where",)
    if name not in (*_COMBINE, *_IDENTITY, "mean", "var", "std"):
        return {}
    harmless = {"where": True, "initial": None}
    found = {key: options.pop(key, MISSING) for key in allowed}
    return {
        key: item
        for key, item in found.items()
        if item is not MISSING and item is not harmless[key]
    }


def fold(
    t: Tracer,
    name: str,
    whole: Callable[[Any], Any],
    a: Any,
    axis: Any,
    *,
    where: Any = True,
    initial: Any = None,
) -> Any:
    """Return the fold that ``whole`` does, of some elements or from a number on."""
    x = array(t, a)
    begin = None if initial is None else _begin(t, name, initial, x.dtype)
    if where is not True:
        fill = _IDENTITY.get(name, begin)
        if fill is None:
            message = (
                f"{name}: the reduction does not have an identity, so to use where= "
                "one has to specify initial="
            )
            raise ShapeError(message)
        x = np.where(_mask(t, name, where, x), x, array(t, fill).astype(x.dtype))
    if begin is None:
        return whole(x)
    axes = normal_axes(plain(axis), x.ndim) if x.ndim else ()
    if name not in _IDENTITY and any(x.shape[k] == 0 for k in axes):
        sizes = [1 if k in axes else n for k, n in enumerate(x.shape)]
        return whole(np.broadcast_to(_as(t, initial, begin, x.dtype), sizes))
    found = whole(x)
    begin = _as(t, initial, begin, found.dtype)
    if found.dtype == bool:
        return found | begin if name == "max" else found & begin
    return _COMBINE[name](found, begin)


def _begin(t: Tracer, name: str, initial: Any, dtype: Any) -> Any:
    begin = array(t, initial)
    if begin.dtype.kind == "c" and dtype.kind != "c":
        message = f"{name}: initial is complex, what is folded is {dtype}"
        raise DTypeError(message)
    if name not in _IDENTITY and dtype.kind in "iu" and initial.__class__ is int:
        t.builder.convert(t.operand(initial), as_dtype(dtype))  # it has to fit
    elif dtype.kind in "iu" and type(initial) is float and not np.isfinite(initial):
        message = f"{name}: cannot convert initial={initial} to {dtype}"
        raise RangeError(message)
    if begin.ndim:
        message = f"{name}: expected a number as initial, found {begin.ndim} dimensions"
        raise ShapeError(message)
    return begin


def _as(t: Tracer, initial: Any, begin: Any, dtype: Any) -> Any:
    """Return what a fold begins with in its dtype, which Python's integers fit in."""
    taken = t.operand(initial)
    if t.builder.type_of(taken) is not int:
        return begin.astype(dtype)
    return t.wrap(t.builder.convert(taken, as_dtype(dtype)))


def _mask(t: Tracer, name: str, where: Any, x: Any) -> Any:
    is_plain = where is None or type(where) in (bool, int)
    mask = array(t, bool(where) if is_plain else where)
    if mask.dtype != bool:
        message = f"{name}: expected where= of dtype bool, found {mask.dtype}"
        raise ArgumentError(message)
    if mask.ndim > x.ndim:
        message = (
            f"{name}: expected where= of at most {x.ndim} dimensions, found {mask.ndim}"
        )
        raise ShapeError(message)
    return np.broadcast_to(mask, x.shape)


def _total(x: Any, mask: Any, axis: Any, dtype: Any, *, keepdims: bool) -> Any:
    return np.sum(np.where(mask, x, x.dtype.type(0)), axis, dtype, keepdims=keepdims)


def _count(mask: Any, axis: Any, *, keepdims: bool) -> Any:
    """Return how many elements there are, which may be more than a half can count."""
    return np.sum(mask, axis, keepdims=keepdims)


def mean(
    t: Tracer, a: Any, axis: Any, dtype: Any, where: Any, *, keepdims: bool
) -> Any:
    """Return ``numpy.mean`` of the elements where a condition holds."""
    x, axis = array(t, a), plain(axis)
    mask = _mask(t, "mean", where, x)
    kind = np.float64 if x.dtype.kind in "biu" else x.dtype
    kind = np.dtype(kind if dtype is None else dtype)
    is_half = dtype is None and kind.itemsize == 2
    wide = np.float32 if is_half else kind
    total = _total(x, mask, axis, wide, keepdims=keepdims)
    return (total / _count(mask, axis, keepdims=keepdims)).astype(kind)


def var(
    t: Tracer,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    where: Any,
    *,
    keepdims: bool,
) -> Any:
    """Return ``numpy.var`` of the elements where a condition holds."""
    x, axis = array(t, a), plain(axis)
    mask = _mask(t, "var", where, x)
    kind = np.float64 if x.dtype.kind in "biu" else x.dtype
    kind = np.dtype(kind if dtype is None else dtype)
    x = x.astype(np.float32 if kind.itemsize == 2 else kind)
    gap = x - mean(t, x, axis, None, mask, keepdims=True)
    square = gap.real**2 + gap.imag**2 if x.dtype.kind == "c" else gap * gap
    total = _total(square, mask, axis, None, keepdims=keepdims)
    freedom = np.maximum(_count(mask, axis, keepdims=keepdims) - ddof, 0)
    return (total / freedom).astype(total.dtype if kind.itemsize > 2 else kind)
