# SPDX-License-Identifier: Apache-2.0
"""Expressions that Dask computes of whole arrays: moves across chunks, and products."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Concatenate,
    Expr,
    Matmul,
    Pad,
    Remap,
    Reshape,
    Slice,
    results,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import UnsupportedError
from nfuser.execution.chunks.axes.patterns import remapped_by_place
from nfuser.execution.chunks.dask.graph import da

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar

HALVES = (DType.F16.numpy, DType.BF16.numpy)


def moved(
    expr: Expr,
    read: Sequence[Any],
    shape: tuple[int, ...],
    values: Mapping[Scalar, int],
) -> Any:
    """Return what ``expr`` makes of arrays, as Dask's own functions do."""
    match expr:
        case Slice():
            starts = scalar_walk.evaluate_all(expr.starts, values)
            sizes = zip(starts, shape, expr.steps, strict=True)
            found = read[0][tuple(_slice(s, n, step) for s, n, step in sizes)]
        case Pad():
            lefts = scalar_walk.evaluate_all(expr.lefts, values)
            found = _padded(read[0], read[1], lefts, shape)
        case Concatenate():
            found = da.concatenate(list(read), axis=expr.axis)
        case Remap():
            found = _remapped(expr, read[0], shape, values)
        case Matmul():
            found = da.matmul(*map(_of_full_width, read))
        case Reshape():
            found = read[0].reshape(shape)
        case _:
            name = type(expr).__name__
            message = f"{name} does not cross the chunks of Dask arrays: rechunk first"
            raise UnsupportedError(message)
    dtype = results(expr)[0].dtype.numpy
    return found if found.dtype == dtype else found.astype(dtype)


def _of_full_width(x: Any) -> Any:
    """Return ``x``, or 16-bit floats in f32: parts of a product are not rounded."""
    return x.astype(np.float32) if x.dtype in HALVES else x


def _slice(start: int, size: int, step: int) -> slice:
    if size == 0:
        return slice(0, 0)
    stop = start + step * size
    return slice(start, None if stop < 0 else stop, step)


def _padded(x: Any, fill: Any, lefts: Sequence[int], shape: tuple[int, ...]) -> Any:
    for k, (left, n) in enumerate(zip(lefts, shape, strict=True)):
        right = n - left - x.shape[k]
        first, last = max(-left, 0), x.shape[k] + min(right, 0)
        if (first, last) != (0, x.shape[k]):
            x = x[(slice(None),) * k + (slice(first, max(last, first)),)]
        sides = min(left, n), min(right, n)  # an axis may be cut away and more
        parts = [_filled(fill, x, k, sides[0]), x, _filled(fill, x, k, sides[1])]
        parts = [p for p in parts if p is not None]
        x = da.concatenate(parts, axis=k) if len(parts) > 1 else x
    return x


def _filled(fill: Any, x: Any, axis: int, size: int) -> Any:
    if size <= 0:
        return None
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    chunks = (*x.chunks[:axis], (size,), *x.chunks[axis + 1 :])
    return da.broadcast_to(fill.astype(x.dtype), shape, chunks=chunks)


def _remapped(
    expr: Remap, x: Any, shape: tuple[int, ...], values: Mapping[Scalar, int]
) -> Any:
    stays = remapped_by_place(expr)
    for k, (index, n) in enumerate(zip(expr.index, shape, strict=True)):
        if stays[k] and n == x.shape[k]:
            continue
        loops = scalar_walk.loops_in(index)
        places = [
            scalar_walk.evaluate(index, {**values, **dict.fromkeys(loops, i)})
            for i in range(n)
        ]
        x = _in_runs(x, k, np.asarray(places, np.int64))
    return x


def _in_runs(x: Any, axis: int, places: Any) -> Any:
    """Return the elements at ``places``, those in a row as one slice."""
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    if len(breaks) > len(places) // 8 + 4:
        return da.take(x, places, axis=axis)
    edges = [0, *breaks.tolist(), len(places)]
    runs = [
        slice(int(places[a]), int(places[a]) + b - a)
        for a, b in itertools.pairwise(edges)
        if b > a
    ]
    lead = (slice(None),) * axis
    parts = [x[(*lead, run)] for run in runs] or [x[(*lead, slice(0, 0))]]
    return da.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
