# SPDX-License-Identifier: Apache-2.0
"""Reductions that leave out what is not a number."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.composed.statistics.masked import taken
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, given, keeps, plain

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


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
        keepdims: Any = MISSING,
        **options: Any,
    ) -> Any:
        chosen = taken(name, options)
        given(f"nan{name}", options | {"out": out})
        x = _without(array(t, a), fill)
        return t.handlers[name](t, x, axis, dtype, keepdims=keeps(keepdims), **chosen)

    return handler


def _extreme(name: str) -> Any:
    verb = getattr(ops, name)

    def handler(
        t: Tracer,
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = MISSING,
        **options: Any,
    ) -> Any:
        given(name, options | {"out": out})
        return t.call_on_tensor(verb, a, plain(axis), keepdims=keeps(keepdims))

    return handler


def _place(name: str, fill: float) -> Any:
    def handler(
        t: Tracer, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING
    ) -> Any:
        given(f"nan{name}", {"out": out})
        x = _without(array(t, a), fill)
        return t.handlers[name](t, x, axis, keepdims=keeps(keepdims))

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
    keepdims: Any = MISSING,
    **options: Any,
) -> Any:
    """Return ``numpy.nanmean``."""
    given("nanmean", options | {"out": out})
    x, kept = array(t, a), keeps(keepdims)
    if not _has_nan(x):
        return np.mean(x, axis, dtype, keepdims=kept)
    total = np.sum(_without(x, 0), axis, dtype, keepdims=kept)
    return (total / _count(x, axis, keepdims=kept)).astype(total.dtype)


def nanvar(
    t: Tracer,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = MISSING,
    *,
    correction: Any = MISSING,
    **options: Any,
) -> Any:
    """Return ``numpy.nanvar``."""
    given("nanvar", options | {"out": out})
    x, kept = array(t, a), keeps(keepdims)
    ddof = ddof if correction is MISSING else correction
    if not _has_nan(x):
        return np.var(x, axis, dtype, ddof=ddof, keepdims=kept)
    x = x if dtype is None else x.astype(dtype)
    centre = nanmean(t, x, axis, keepdims=True)
    gap = x - centre
    square = gap.real**2 + gap.imag**2 if x.dtype.kind == "c" else gap * gap
    square = np.where(np.isnan(x), square.dtype.type(0), square)
    total = np.sum(square, axis, keepdims=kept)
    freedom = _count(x, axis, keepdims=kept) - ddof
    nan = total.dtype.type(np.nan)
    return np.where(freedom > 0, total / freedom, nan).astype(total.dtype)


def nanstd(t: Tracer, a: Any, *args: Any, **options: Any) -> Any:
    """Return ``numpy.nanstd``."""
    return np.sqrt(nanvar(t, a, *args, **options))


HANDLERS = {
    "nansum": _folding("sum", 0),
    "nanprod": _folding("prod", 1),
    "nanargmax": _place("argmax", -np.inf),
    "nanargmin": _place("argmin", np.inf),
    "nanmax": _extreme("nanmax"),
    "nanmin": _extreme("nanmin"),
    "nanmean": nanmean,
    "nanvar": nanvar,
    "nanstd": nanstd,
}
