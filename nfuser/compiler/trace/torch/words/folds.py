# SPDX-License-Identifier: Apache-2.0
"""Folds and orders, under torch's names; some give values and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.compiler.trace.torch.methods import METHODS
from nfuser.compiler.trace.torch.words.common import (
    axes_of,
    axis_of,
    floating,
    in_dtype,
    met,
    root,
)
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.torch.words.common import Word
    from nfuser.compiler.trace.tracer import Tracer


class Found(NamedTuple):
    """What torch gives for an order or an extreme along an axis."""

    values: Any
    indices: Any


class Extremes(NamedTuple):
    """What ``aminmax`` gives."""

    min: Any
    max: Any


def extreme(name: str) -> Word:
    """Return ``max`` or ``min``: of all, along an axis with places, or of two."""
    verb = ops.maximum if name == "max" else ops.minimum

    def word(t: Tracer, x: Any, *args: Any, **options: Any) -> Any:
        if "other" in options or (args and hasattr(args[0], "dtype")):
            return met(t, verb, x, options.get("other", *args))
        dim = options.pop("dim", options.pop("axis", args[0] if args else None))
        keepdim = options.pop("keepdim", options.pop("keepdims", args[1:] == (True,)))
        if dim is None:
            return t.handlers[name](t, x, **options)
        if isinstance(dim, (tuple, list)):
            message = f"write x.a{name}(dims): x.{name} takes one dim, found {dim}"
            raise ArgumentError(message)
        axis = plain(dim)
        return Found(
            t.handlers[name](t, x, axis=axis, keepdims=keepdim),
            t.handlers[f"arg{name}"](t, x, axis, keepdims=keepdim),
        )

    return word


def _aminmax(t: Tracer, x: Any, *, dim: Any = None, keepdim: Any = False) -> Any:
    options = {"axis": plain(dim), "keepdims": keepdim}
    found = (t.handlers[name](t, x, **options) for name in ("min", "max"))
    return Extremes(*found)


def _order(
    t: Tracer, x: Any, dim: Any = -1, descending: Any = False, stable: Any = False
) -> Any:
    """Return the places of a stable sort; torch gives equal ones in any order."""
    del stable  # it always is
    if isinstance(dim, bool):  # x.sort(True) is of the dim 1
        dim = int(dim)
    return _argsort(t, x, plain(dim), bool(descending))


def _argsort(t: Tracer, x: Any, axis: Any, descending: bool) -> Any:
    if not x.ndim:
        return t.call_on_tensor(ops.astype, x * 0, DType.I64)
    return t.namespace.argsort(x, axis=axis, descending=descending)


def _sort(
    t: Tracer,
    x: Any,
    dim: Any = -1,
    descending: Any = False,
    stable: Any = False,
) -> Any:
    places = _order(t, x, dim, descending, stable)
    values = t.handlers["take_along_axis"](t, x, places, plain(dim)) if x.ndim else x
    return Found(values, places)


def _msort(t: Tracer, x: Any) -> Any:
    return _sort(t, x, 0).values


def _topk(
    t: Tracer,
    x: Any,
    k: Any,
    dim: Any = -1,
    largest: Any = True,
    sorted: Any = True,  # noqa: A002 (torch's name)
) -> Any:
    del sorted  # they always are
    axis = axis_of(dim, x.ndim)
    values, places = _sort(t, x, axis, descending=largest)
    key = (*(slice(None),) * axis, slice(None, k))
    return Found(values[key], places[key])


def _median(t: Tracer, x: Any, dim: Any = None, keepdim: Any = False) -> Any:
    """Return the lower of the two in the middle, as torch does."""
    if t.tensor(x).dtype.is_float:
        # NumPy's order puts NaN last; torch's median is NaN where there is one.
        bad = t.call(ops.isnan, x)
    else:
        bad = None
    if dim is None:
        flat = x.reshape(-1)
        middle = t.handlers["sort"](t, flat)[(flat.shape[0] - 1) // 2]
        return middle if bad is None else np.where(bad.any(), np.nan, middle)
    axis = axis_of(dim, x.ndim)
    values, places = _sort(t, x, axis)
    key = (*(slice(None),) * axis, (x.shape[axis] - 1) // 2)
    found = Found(values[key], places[key])
    if bad is not None:
        is_bad = t.handlers["any"](t, bad, axis)
        first = t.handlers["argmax"](t, bad, axis)
        found = Found(
            np.where(is_bad, np.nan, found.values),
            np.where(is_bad, first, found.indices),
        )
    if keepdim:
        found = Found(*(t.handlers["expand_dims"](t, part, axis) for part in found))
    return found


def _logsumexp(t: Tracer, x: Any, dim: Any, keepdim: Any = False) -> Any:
    axes = axes_of(dim, x.ndim)
    return t.namespace.logsumexp(floating(t, x), axis=axes, keepdims=keepdim)


def _norm(
    t: Tracer,
    x: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: Any = False,
    dtype: Any = None,
) -> Any:
    """Return the norm of vectors: what torch calls ``fro`` is the 2-norm of all."""
    x = in_dtype(t, x, dtype)
    axes = axes_of(dim, x.ndim)
    size = t.call(ops.absolute, x)
    options = {"axis": axes, "keepdims": keepdim}
    if p in ("fro", 2, None):
        return root(t, t.handlers["sum"](t, size * size, **options))
    if isinstance(p, str):
        message = f"norm: p={p!r} has no fused form; expected a number or 'fro'"
        raise UnsupportedError(message)
    if p == 1:
        return t.handlers["sum"](t, size, **options)
    if p == 0:
        return t.handlers["sum"](t, in_dtype(t, x != 0, size.dtype), **options)
    if p in (float("inf"), float("-inf")):
        return t.handlers["max" if p > 0 else "min"](t, size, **options)
    return t.handlers["sum"](t, size**p, **options) ** (1.0 / p)


def _dist(t: Tracer, x: Any, other: Any, p: Any = 2) -> Any:
    return _norm(t, x - other, p)


def _pair(name: str) -> Word:
    def word(t: Tracer, x: Any, *args: Any, **options: Any) -> Any:
        kept = {key: options[key] for key in ("keepdim",) if key in options}
        dims = (options["dim"],) if "dim" in options else args[:1]
        dims = tuple(d for d in dims if not isinstance(d, bool))
        spread = METHODS[name](t, x, *args, **options)
        return spread, METHODS["mean"](t, x, *dims, **kept)

    return word


def _softmax(name: str) -> Word:
    def word(t: Tracer, x: Any, dim: Any = None, dtype: Any = None, **_: Any) -> Any:
        x = floating(t, in_dtype(t, x, dtype))
        if dim is None:
            message = f"{name}: write dim=, the axis along which the shares sum to 1"
            raise ArgumentError(message)
        if not x.ndim:
            return t.call(ops.exp if name == "softmax" else ops.positive, x * 0.0)
        return getattr(t.namespace, name)(x, axis=axis_of(dim, x.ndim))

    return word


def _count_nonzero(t: Tracer, x: Any, dim: Any = None) -> Any:
    return t.handlers["count_nonzero"](t, x, plain(dim))


def _diff(
    t: Tracer,
    x: Any,
    n: Any = 1,
    dim: Any = -1,
    prepend: Any = None,
    append: Any = None,
) -> Any:
    given = {"prepend": prepend, "append": append}
    ends = {name: end for name, end in given.items() if end is not None}
    return t.handlers["diff"](t, x, n, plain(dim), **ends)


def _nan(name: str) -> Word:
    def word(
        t: Tracer, x: Any, dim: Any = None, keepdim: Any = False, *, dtype: Any = None
    ) -> Any:
        x = in_dtype(t, x, dtype)
        options = {"axis": plain(dim), "keepdims": keepdim}
        if not t.tensor(x).dtype.is_float:
            return METHODS[name[3:]](t, x, dim, keepdim)
        return t.handlers[name](t, x, **options)

    return word


WORDS: dict[str, Word] = {
    "aminmax": _aminmax,
    "sort": _sort,
    "argsort": _order,
    "msort": _msort,
    "topk": _topk,
    "median": _median,
    "logsumexp": _logsumexp,
    "norm": _norm,
    "dist": _dist,
    "var_mean": _pair("var"),
    "std_mean": _pair("std"),
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "count_nonzero": _count_nonzero,
    "diff": _diff,
    "nansum": _nan("nansum"),
    "nanmean": _nan("nanmean"),
}
