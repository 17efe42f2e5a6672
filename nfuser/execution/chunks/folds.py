# SPDX-License-Identifier: Apache-2.0
"""Folds over chunks: what a task gives of its chunk, and how such parts combine.

A part is a tuple of small NumPy arrays. Sums of floats are carried in 64 bits and
rounded once, at the end; parts combine in one order, whoever computes them.
"""

# Parts of many dtypes have no common static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    ExpandDims,
    Reduce,
    ReduceOp,
    Scan,
    Scatter,
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import product
from nfuser.execution.chunks.axes.patterns import JOINED_BY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.execution.chunks.axes.chunkings import Chunks

Part: TypeAlias = "tuple[Any, ...]"
_FOLDS: dict[ReduceOp, np.ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
    ReduceOp.FMAX: np.fmax,
    ReduceOp.FMIN: np.fmin,
    ReduceOp.ANY: np.logical_or,
    ReduceOp.ALL: np.logical_and,
}
_MOST_FROM_FIRST = 1 << 24
_POINTS = {
    ReduceOp.SUM: "add",
    ReduceOp.PROD: "multiply",
    ReduceOp.MAX: "maximum",
    ReduceOp.MIN: "minimum",
    ReduceOp.ANY: "bit_or",
    ReduceOp.ALL: "bit_and",
}


@value
class Fold:
    """A fold without its tensors: its operation, its dtype, what a part holds."""

    op: ReduceOp
    dtype: Any
    width: int
    has_shift: bool = False


def wide(dtype: DType) -> DType:
    """Return the dtype in which parts of a sum are carried."""
    if dtype.is_complex:
        return DType.C128
    return DType.F64 if dtype.is_float else dtype


def emit_part(
    b: Builder,
    expr: Reduce | Scan,
    x: TensorView,
    *,
    has_shift: bool = False,
    sizes: Sequence[Chunks] = (),
    beside_moments: bool = False,
) -> list[TensorView]:
    """Emit what a task gives of its chunk ``x``.

    ``sizes`` are the chunks of the axes that are folded. A sum that is taken
    ``beside_moments`` of the same elements is what those have added up already.
    """
    axes = expr.axes if isinstance(expr, Reduce) else (expr.axis,)
    op = expr.op
    kept = [n for k, n in enumerate(x.shape) if k not in axes]

    def fold(how: ReduceOp, t: TensorView, count: int = 1) -> list[TensorView]:
        is_place = how in (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
        dtype = DType.I64 if is_place else t.dtype
        made = tuple(b.new(kept, dtype) for _ in range(count))
        b.emit(Reduce(how, t, made, axes))
        return list(made)

    if has_shift:
        (top,) = fold(ReduceOp.MAX, x)
        shape = [sc.const(1) if k in axes else n for k, n in enumerate(x.shape)]
        high = b.new(shape, x.dtype)
        b.emit(ExpandDims(top, high, axes))
        power = b.point("exp", b.point("subtract", x, high))
        # All of one sign: a sum that is rounded once a chunk loses nothing that shows.
        (total,) = fold(ReduceOp.SUM, power)
        return [top, b.cast(total, wide(x.dtype))]
    is_fit = x.dtype.is_float and x.dtype.bits < 64 and _are_fit(sizes)
    match op:
        case ReduceOp.SUM if is_fit and beside_moments:
            start, gap = _from_first(b, x, axes)
            (total,) = fold(ReduceOp.SUM, gap)
            first = b.point("multiply", start, _count(b, x, axes))
            return [b.point("add", total, first)]
        case ReduceOp.SUM:
            return fold(op, b.cast(x, wide(x.dtype)))
        case ReduceOp.MOMENTS:
            count = _count(b, x, axes)
            if is_fit:
                start, gap = _from_first(b, x, axes)
                (total,) = fold(ReduceOp.SUM, gap)
                (squares,) = fold(ReduceOp.SUM, b.point("multiply", gap, gap))
                return [count, *_moments(b, count, start, total, squares)]
            return [count, *fold(op, b.cast(x, DType.F64), 2)]
        case ReduceOp.ARGMAX | ReduceOp.ARGMIN:
            best = ReduceOp.MAX if op is ReduceOp.ARGMAX else ReduceOp.MIN
            if x.dtype.is_bool:
                best = ReduceOp.ANY if best is ReduceOp.MAX else ReduceOp.ALL
            return [*fold(best, x), *fold(op, x)]
        case _:
            return fold(op, x)


def _count(b: Builder, x: TensorView, axes: Sequence[int]) -> TensorView:
    return b.from_scalar(product(x.shape[k] for k in axes), DType.F64)


def _are_fit(sizes: Sequence[Chunks]) -> bool:
    """Tell whether each chunk has a first element, and few enough beside it.

    The square of its distance from the mean is at most the sum of all such squares. So
    of ``n`` elements a sum of squares about it is at most ``n + 1`` times the one about
    the mean, and loses as many of the bits that 64 have beyond those of the result.
    """
    return all(min(c) > 0 for c in sizes) and prod(map(max, sizes)) <= _MOST_FROM_FIRST


def _from_first(
    b: Builder, x: TensorView, axes: Sequence[int]
) -> tuple[TensorView, TensorView]:
    """Emit the first element of ``x`` along ``axes``, or zero, and what it is off."""
    shape = [sc.const(1) if k in axes else n for k, n in enumerate(x.shape)]
    first = b.new(shape, x.dtype)
    starts = tuple(sc.const(0) for _ in shape)
    b.emit(Slice(x, first, starts, (1,) * len(shape)))
    start = b.cast(first, DType.F64)
    zero = b.constant(0.0, DType.F64)
    start = b.point("select", b.point("isfinite", start), start, zero)
    gap = b.point("subtract", b.cast(x, DType.F64), start)
    kept = b.new([n for k, n in enumerate(shape) if k not in axes], DType.F64)
    b.emit(Squeeze(start, kept, tuple(axes)))
    return kept, gap


def _moments(
    b: Builder,
    count: TensorView,
    start: TensorView,
    total: TensorView,
    squares: TensorView,
) -> tuple[TensorView, TensorView]:
    """Emit mean and squared deviations, of sums of what is off ``start``."""
    gap = b.point("divide", total, count)
    mean = b.point("add", start, gap)
    return mean, b.point("subtract", squares, b.point("multiply", total, gap))


def emit_carried(
    b: Builder, expr: Scan, x: TensorView, carry: TensorView
) -> TensorView:
    """Emit the scan of a chunk ``x``, which goes on from ``carry``."""
    read = b.cast(x, carry.dtype) if expr.op is ReduceOp.SUM else x
    made = b.new(read.shape, read.dtype)
    b.emit(Scan(expr.op, read, made, expr.axis))
    return b.cast(joined(b, expr.op, made, carry), expr.result.dtype)


def joined(b: Builder, op: ReduceOp, x: TensorView, y: TensorView) -> TensorView:
    """Emit the point operation by which a fold joins two of its results."""
    return b.point(_POINTS[op], x, y)


def emit_scattered(
    b: Builder, expr: Scatter, shape: Sequence[Scalar], index: TensorView, x: TensorView
) -> TensorView:
    """Emit what a scatter makes of a chunk of its index, beside nothing."""
    first = start_of(JOINED_BY[expr.op], np.dtype(x.dtype.numpy))
    nothing = ops.full(b, shape, first.item(), x.dtype)
    made = b.new(nothing.shape, x.dtype)
    b.emit(replace(expr, source=nothing, index=index, value=x, result=made))
    return made


def carries(fold: Fold, parts: Sequence[Part]) -> list[Any]:
    """Return what comes before each chunk of a scan."""
    first = np.asarray(parts[0][0])
    start = np.full(first.shape, start_of(fold.op, first.dtype), first.dtype)
    found: list[Any] = [start]
    for part in parts[:-1]:
        found.append(combined(fold, [(found[-1],), part])[0])
    return found


def start_of(op: ReduceOp, dtype: Any) -> Any:
    """Return what a fold begins with, which changes nothing."""
    if op in _EMPTY:
        return np.asarray(_EMPTY[op], dtype)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.asarray(bounds.min if op is ReduceOp.MAX else bounds.max, dtype)
    return np.asarray(-np.inf if op is ReduceOp.MAX else np.inf, dtype)


def combined(fold: Fold, parts: Sequence[Part]) -> Part:
    """Return one part for several, which are in the order of their chunks."""
    with np.errstate(all="ignore"):
        if fold.has_shift:
            return _joined_exponentials(parts)
        if fold.op is ReduceOp.MOMENTS:
            return _joined_moments(parts)
        return reduce(_joiner(fold), parts)


def _joiner(fold: Fold) -> Callable[[Part, Part], Part]:
    if fold.op in (ReduceOp.ARGMAX, ReduceOp.ARGMIN):
        return lambda a, b: _join_places(fold.op, a, b)
    ufunc = _FOLDS[fold.op]
    return lambda a, b: (ufunc(a[0], b[0]),)


def _joined_exponentials(parts: Sequence[Part]) -> Part:
    """Join maxima, and sums of exponentials relative to them."""
    top: Any = np.maximum.reduce([high for high, _ in parts])
    return top, np.add.reduce([_moved_sum(high, total, top) for high, total in parts])


def _moved_sum(high: Any, total: Any, top: Any) -> Any:
    """Return a sum of exponentials relative to ``high`` as one relative to ``top``.

    Infinite maxima differ from themselves by nothing. Beside others, what was -inf
    everywhere counts for nothing, though its sum is no number.
    """
    gap = np.subtract(high, top, dtype=np.asarray(total).dtype)
    scale = np.exp(np.where(high == top, 0, gap))
    return np.where(scale == 0, 0, total * scale)


def _joined_moments(parts: Sequence[Part]) -> Part:
    """Join counts, means, and squared distances from them.

    Means are joined by their distances from the first, so that none is lost in them.
    """
    filled = [part for part in parts if part[0] > 0] or parts[:1]
    if len(filled) == 1:
        return filled[0]
    counts = [float(part[0]) for part in filled]
    total = sum(counts)
    shares = np.reshape(
        [n / total for n in counts], (-1, *(1,) * np.ndim(filled[0][1]))
    )
    start = filled[0][1]
    gaps = np.stack([part[1] for part in filled]) - start
    middle = (gaps * shares).sum(0)
    spread = (np.square(gaps - middle) * shares).sum(0) * total
    squares = np.add.reduce([part[2] for part in filled])
    return np.float64(total), start + middle, squares + spread


def _join_places(op: ReduceOp, a: Part, b: Part) -> Part:
    """Join extrema and the flat index of each: the first one, NaN before all."""
    (best, at), (other, place) = a, b
    is_better = other > best if op is ReduceOp.ARGMAX else other < best
    if np.asarray(best).dtype.kind not in "biu":
        nan, more = np.isnan(best), np.isnan(other)
        is_better = (is_better & ~nan) | (more & ~nan)
        is_same = (other == best) | (nan & more)
    else:
        is_same = other == best
    takes = is_better | (is_same & (place < at))
    return np.where(takes, other, best), np.where(takes, place, at)


def ended(fold: Fold, part: Part) -> tuple[Any, ...]:
    """Return the results of the reduction."""
    if fold.op is ReduceOp.MOMENTS:
        return tuple(np.asarray(x).astype(fold.dtype) for x in part[1:])
    return (np.asarray(part[-1]).astype(fold.dtype),)


_EMPTY = {ReduceOp.SUM: 0, ReduceOp.PROD: 1, ReduceOp.ANY: False, ReduceOp.ALL: True}
