# SPDX-License-Identifier: Apache-2.0
"""Reductions that leave out what is not a number."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.trace.composed.parts import array, refuse

if TYPE_CHECKING:
    from nfuser.trace.tracer import Tracer

_NONE: Any = np._NoValue  # pyright: ignore[reportPrivateUsage]


def _keeps(keepdims: Any) -> bool:
    return keepdims is not _NONE and bool(keepdims)


def _has_nan(x: Any) -> bool:
    return x.dtype.kind not in "biu"


def _without(x: Any, fill: Any) -> Any:
    """Return ``x`` with ``fill`` in place of what is not a number."""
    return np.where(np.isnan(x), x.dtype.type(fill), x) if _has_nan(x) else x


def _folding(name: str, fill: int) -> Any:
    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = _NONE,
        initial: Any = _NONE,
        where: Any = _NONE,
    ) -> Any:
        refuse(f"nan{name}", out=out, initial=initial, where=where)
        x = _without(array(t, a), fill)
        return t.handlers[name](t, x, axis, dtype, keepdims=_keeps(keepdims))

    return handler


def _extreme(name: str, fill: float) -> Any:
    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = _NONE,
        initial: Any = _NONE,
        where: Any = _NONE,
    ) -> Any:
        refuse(f"nan{name}", out=out, initial=initial, where=where)
        x, keeps = array(t, a), _keeps(keepdims)
        found = t.handlers[name](t, _without(x, fill), axis, keepdims=keeps)
        if not _has_nan(x):
            return found
        return np.where(
            np.all(np.isnan(x), axis, keepdims=keeps), x.dtype.type(np.nan), found
        )

    return handler


def _count(x: Any, axis: Any, *, keepdims: bool) -> Any:
    """Return how many numbers there are along ``axis``: more than a half can count."""
    return np.sum(~np.isnan(x), axis, keepdims=keepdims)


def nanmean(
    t: Tracer,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
) -> Any:
    """Return ``numpy.nanmean``."""
    refuse("nanmean", out=out, where=where)
    x, keeps = array(t, a), _keeps(keepdims)
    if not _has_nan(x):
        return np.mean(x, axis, dtype, keepdims=keeps)
    total = np.sum(_without(x, 0), axis, dtype, keepdims=keeps)
    return (total / _count(x, axis, keepdims=keeps)).astype(total.dtype)


def nanvar(
    t: Tracer,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> Any:
    """Return ``numpy.nanvar``."""
    refuse("nanvar", out=out, where=where, mean=mean)
    x, keeps = array(t, a), _keeps(keepdims)
    ddof = ddof if correction is _NONE else correction
    if not _has_nan(x):
        return np.var(x, axis, dtype, ddof=ddof, keepdims=keeps)
    x = x if dtype is None else x.astype(dtype)
    centre = nanmean(t, x, axis, keepdims=True)
    gap = x - centre
    square = gap.real**2 + gap.imag**2 if x.dtype.kind == "c" else gap * gap
    square = np.where(np.isnan(x), square.dtype.type(0), square)
    total = np.sum(square, axis, keepdims=keeps)
    freedom = _count(x, axis, keepdims=keeps) - ddof
    nan = total.dtype.type(np.nan)
    return np.where(freedom > 0, total / freedom, nan).astype(total.dtype)


def nanstd(t: Tracer, a: Any, *args: Any, **options: Any) -> Any:
    """Return ``numpy.nanstd``."""
    return np.sqrt(nanvar(t, a, *args, **options))


HANDLERS = {
    "nansum": _folding("sum", 0),
    "nanprod": _folding("prod", 1),
    "nanmax": _extreme("max", -np.inf),
    "nanmin": _extreme("min", np.inf),
    "nanmean": nanmean,
    "nanvar": nanvar,
    "nanstd": nanstd,
}
