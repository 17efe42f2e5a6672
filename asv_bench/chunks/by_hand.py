# SPDX-License-Identifier: Apache-2.0
"""What a user of Dask writes for speed: Numba's functions of one chunk, and their glue.

Each function of this file is given Dask arrays and gives a Dask array.
"""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

from math import exp, inf, sqrt
from typing import Any

import dask.array as da
import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
"""Sums may be taken in any order, as nfuser takes them; NaN and infinities stay."""


@compiled
def _chain(x: Any) -> Any:
    out = np.empty_like(x)
    number = x.dtype.type  # bare numbers would make all of it 64 bits wide
    factor, half, quarter = number(1.0001), number(0.5), number(0.25)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y = x[i, j]
            for _ in range(10):
                y = abs(y * factor + half) * half - quarter
            out[i, j] = y
    return out


@compiled
def _moments(x: Any) -> Any:
    """Give count, mean and squared distances of each column."""
    rows, columns = x.shape
    out = np.zeros((3, columns))
    for i in range(rows):
        share = 1.0 / (i + 1)
        for j in range(columns):
            gap = x[i, j] - out[1, j]
            out[1, j] += gap * share
            out[2, j] += gap * (x[i, j] - out[1, j])
    out[0] = rows
    return out


def _joined(parts: Any) -> Any:
    found = parts[0]
    for part in parts[1:]:
        count = found[0] + part[0]
        gap = part[1] - found[1]
        mean = found[1] + gap * part[0] / count
        squares = found[2] + part[2] + gap * gap * found[0] * part[0] / count
        found = np.stack([count, mean, squares])
    return found


@compiled
def _standardised(x: Any, mean: Any, scale: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean[j]) * scale[j]
    return out


@compiled
def _softmax(x: Any) -> Any:
    out = np.empty_like(x)
    lowest = x.dtype.type(-inf)  # a bare one would make all of it 64 bits wide
    for i in range(x.shape[0]):
        high = lowest
        for j in range(x.shape[1]):
            high = max(high, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            power = exp(x[i, j] - high)
            out[i, j] = power
            total += power
        scale = x.dtype.type(1 / total)
        for j in range(x.shape[1]):
            out[i, j] *= scale
    return out


@compiled
def _exponentials(x: Any) -> Any:
    """Give the maximum of each row, and its sum of exponentials."""
    out = np.empty((x.shape[0], 2))
    lowest = x.dtype.type(-inf)  # a bare one would make all of it 64 bits wide
    for i in range(x.shape[0]):
        high = lowest
        for j in range(x.shape[1]):
            high = max(high, x[i, j])
        total = 0.0
        for j in range(x.shape[1]):
            total += exp(x[i, j] - high)
        out[i, 0], out[i, 1] = high, total
    return out


@compiled
def _powers(x: Any, state: Any) -> Any:
    out = np.empty_like(x)
    number = x.dtype.type
    for i in range(x.shape[0]):
        high, scale = number(state[i, 0]), number(1 / state[i, 1])
        for j in range(x.shape[1]):
            out[i, j] = exp(x[i, j] - high) * scale
    return out


@compiled
def _laplace(u: Any) -> Any:
    out = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            around = u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1]
            out[i, j] = around - 4 * u[i, j]
    return out


@compiled
def _counted(x: Any, edges: Any) -> Any:
    """Count as NumPy does: edges decide, and the last one belongs to its bin."""
    bins = edges.size - 1
    first, last = edges[0], edges[bins]
    scale = bins / (last - first)
    out = np.zeros(bins, np.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y = x[i, j]
            if first <= y <= last:
                place = min(int((y - first) * scale), bins - 1)
                if y < edges[place]:
                    place -= 1
                elif y >= edges[place + 1] and place != bins - 1:
                    place += 1
                out[place] += 1
    return out.reshape(1, bins)


@compiled
def _rms_norm(x: Any, weight: Any) -> Any:
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j] * x[i, j]
        scale = x.dtype.type(1 / sqrt(total / x.shape[1] + 1e-5))
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] * scale * weight[j]
    return out


@compiled
def _all_moments(x: Any) -> Any:
    """Give count, sum and sum of squares about the first element."""
    out = np.zeros((1, 3))
    count, mean, squares = 0, 0.0, 0.0
    first = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            gap = x[i, j] - first
            mean += gap
            squares += gap * gap
    count = x.size
    out[0, 0] = count
    out[0, 1] = first + mean / count
    out[0, 2] = squares - mean * mean / count
    return out


@compiled
def _cosine(x: Any, y: Any) -> Any:
    out = np.empty(x.shape[0], x.dtype)
    for i in range(x.shape[0]):
        both = left = right = 0.0
        for j in range(x.shape[1]):
            both += x[i, j] * y[i, j]
            left += x[i, j] * x[i, j]
            right += y[i, j] * y[i, j]
        out[i] = both / sqrt(left * right)
    return out


def chain(x: Any) -> Any:
    return da.map_blocks(_chain, x, dtype=x.dtype, meta=x._meta)


def _tree(parts: Any, join: Any) -> Any:
    """Fold an array of parts, one for each chunk along axis 0."""
    import dask

    blocks = list(parts.to_delayed().ravel())
    joined = dask.delayed(join)
    while len(blocks) > 1:
        blocks = [joined(blocks[k : k + 8]) for k in range(0, len(blocks), 8)]
    return blocks[0]


def standardised(x: Any) -> Any:
    meta = np.empty((0, 0))
    shape = (3,) * x.numblocks[0], x.chunks[1]
    parts = da.map_blocks(_moments, x, dtype="f8", chunks=shape, meta=meta)
    state = da.from_delayed(_tree(parts, _joined), (3, x.shape[1]), "f8", meta=meta)
    mean, scale = state[1], 1 / da.sqrt(state[2] / state[0])
    mean, scale = mean.astype(x.dtype), scale.astype(x.dtype)
    return da.blockwise(
        _standardised,
        "ij",
        x,
        "ij",
        mean,
        "j",
        scale,
        "j",
        dtype=x.dtype,
        meta=x._meta,
    )


def softmax(x: Any) -> Any:
    return da.map_blocks(_softmax, x, dtype=x.dtype, meta=x._meta)


def softmax_in_chunks(x: Any) -> Any:
    meta = np.empty((0, 0))
    shape = x.chunks[0], (2,) * x.numblocks[1]
    parts = da.map_blocks(_exponentials, x, dtype="f8", chunks=shape, meta=meta)
    parts = parts.rechunk((x.chunks[0], -1))

    def joined(parts: Any) -> Any:
        tops, totals = parts[:, ::2], parts[:, 1::2]
        top = tops.max(1, keepdims=True)
        total = (totals * np.exp(tops - top)).sum(1, keepdims=True)
        return np.concatenate([top, total], axis=1)

    shape = x.chunks[0], (2,)
    state = da.map_blocks(joined, parts, dtype="f8", chunks=shape, meta=meta)
    return da.blockwise(
        lambda x, s: _powers(x, s[0] if isinstance(s, list) else s),
        "ij",
        x,
        "ij",
        state,
        "ik",
        dtype=x.dtype,
        meta=x._meta,
    )


def laplace(u: Any) -> Any:
    found = da.map_overlap(
        _laplace, u, depth=1, boundary="none", dtype=u.dtype, meta=u._meta
    )
    return found[1:-1, 1:-1]


def histogram(x: Any) -> Any:
    shape = (1,) * x.numblocks[0], (64,)
    edges = np.linspace(0, 1, 65).astype(x.dtype)
    parts = da.map_blocks(_counted, x, edges, dtype="i8", chunks=shape, meta=x._meta)
    return parts.sum(0)


def rms_norm(x: Any, weight: Any) -> Any:
    return da.map_blocks(_rms_norm, x, weight, dtype=x.dtype, meta=x._meta)


def mean_and_variance(x: Any) -> Any:
    shape = (1,) * x.numblocks[0], (3,)
    meta = np.empty((0, 0))
    parts = da.map_blocks(_all_moments, x, dtype="f8", chunks=shape, meta=meta)
    parts = parts.rechunk(-1)

    def joined(parts: Any) -> Any:
        count = parts[:, 0].sum()
        mean = (parts[:, 0] * parts[:, 1]).sum() / count
        gap = parts[:, 1] - mean
        return np.stack(
            [mean, (parts[:, 2].sum() + (parts[:, 0] * gap**2).sum()) / count]
        )

    meta = np.empty(0)
    return da.map_blocks(
        joined, parts, drop_axis=1, chunks=((2,),), dtype="f8", meta=meta
    )


def cosine(x: Any, y: Any) -> Any:
    meta = np.empty(0, x.dtype)
    return da.map_blocks(_cosine, x, y, drop_axis=1, dtype=x.dtype, meta=meta)
