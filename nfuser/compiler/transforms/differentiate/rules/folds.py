# SPDX-License-Identifier: Apache-2.0
"""Cotangents of what reductions and scans fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.transforms.differentiate.flow import Flow
from nfuser.compiler.transforms.differentiate.numbers import Numbers
from nfuser.compiler.transforms.differentiate.rules.views import (
    flipped,
    padded,
    put_back,
    reshaped,
)
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Reduce, Scan
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder

_EXTREMA = (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.FMAX, ReduceOp.FMIN)


def of_reduce(b: Builder, expr: Reduce, ts: Sequence[TensorView | None]) -> Flow:
    """Return the cotangent of the source of a reduction, of those of its results."""
    t = ts[0]
    if expr.op is ReduceOp.MOMENTS:
        return Flow(_of_moments(b, expr, *ts))
    assert t is not None
    if expr.op is ReduceOp.SUM:
        return Flow(put_back(b, t, expr.source.shape, expr.axes))
    if expr.op is ReduceOp.PROD:
        return Flow(_of_product(b, expr, t))
    assert expr.op in _EXTREMA, expr.op
    return _of_extremum(b, expr, t)


def _of_extremum(b: Builder, expr: Reduce, t: TensorView) -> Flow:
    """Share the cotangent among the elements that are the extremum."""
    source, axes = expr.source, expr.axes
    n = Numbers(b, t.dtype)
    hit = n.equal(source, ops.expand_dims(b, expr.result, axes))
    count = ops.sum(b, b.cast(hit, t.dtype), axes)
    share = n.divide(t, count)
    return Flow(put_back(b, share, source.shape, axes), hit)


def _of_moments(
    b: Builder, expr: Reduce, mean: TensorView | None, squares: TensorView | None
) -> TensorView:
    source, axes = expr.source, expr.axes
    n = Numbers(b, source.dtype)
    found: list[TensorView] = []
    if mean is not None:
        count = b.from_scalar(ops.count_of(source, axes), source.dtype)
        found.append(put_back(b, n.divide(mean, count), source.shape, axes))
    if squares is not None:
        twice = ops.expand_dims(b, n.scaled(squares, 2.0), axes)
        middle = ops.expand_dims(b, expr.results[0], axes)
        found.append(n.multiply(twice, n.subtract(source, middle)))
    return found[0] if len(found) == 1 else n.add(*found)


def _of_product(b: Builder, expr: Reduce, t: TensorView) -> TensorView:
    """Return the cotangent times the product of all other elements.

    Those are the products of what stands before and of what stands after, so that
    nothing is divided by an element that is 0.
    """
    source, axes = expr.source, expr.axes
    kept = [k for k in range(source.ndim) if k not in axes]
    order = [*kept, *axes]
    moved = ops.permute(b, source, order)
    rows = moved
    if len(axes) > 1:
        last = scalar_functions.product(source.shape[k] for k in axes)
        rows = reshaped(b, moved, [*(source.shape[k] for k in kept), last])
    n = Numbers(b, t.dtype)
    axis = rows.ndim - 1
    before = _products_before(b, rows, axis)
    after = flipped(b, _products_before(b, flipped(b, rows, axis), axis), axis)
    found = n.multiply(ops.expand_dims(b, t, axis), n.multiply(before, after))
    if len(axes) > 1:
        found = reshaped(b, found, moved.shape)
    return ops.permute(b, found, [order.index(k) for k in range(source.ndim)])


def _products_before(b: Builder, x: TensorView, axis: int) -> TensorView:
    """Return the product of what stands before each element along ``axis``."""
    lefts = [sc.const(int(k == axis)) for k in range(x.ndim)]
    return padded(b, ops.cumprod(b, x, axis), lefts, x.shape, fill=1)


def of_scan(b: Builder, expr: Scan, t: TensorView) -> TensorView:
    """Return the cotangent of the source of a scan."""
    if expr.op is ReduceOp.SUM:
        return _sums_from(b, t, expr.axis)
    if expr.op is ReduceOp.PROD:
        return _of_products(b, expr, t)
    message = (
        "write maximum.accumulate or minimum.accumulate outside what is "
        f"differentiated: a scan by {expr.op.value} has no derivative here yet"
    )
    raise UnsupportedError(message)


def _sums_from(b: Builder, t: TensorView, axis: int) -> TensorView:
    """Return the sum of ``t`` from each element on."""
    return flipped(b, ops.cumsum(b, flipped(b, t, axis), axis), axis)


def _of_products(b: Builder, expr: Scan, t: TensorView) -> TensorView:
    """Return the cotangent of factors: up to the first zero they divide the products.

    The first zero itself is taken for 1, and what stands after it changes nothing.
    """
    x, axis = expr.source, expr.axis
    n = Numbers(b, t.dtype)
    zero = n.equal(x, n(0.0))
    seen = ops.cumsum(b, b.cast(zero, DType.F32), axis)
    first = n.bit_and(zero, n.equal(seen, b.constant(1.0, DType.F32)))
    others = ops.cumprod(b, n.select(first, n(1.0), x), axis)
    at_first = _sums_from(b, n.multiply(t, others), axis)
    before = n.equal(seen, b.constant(0.0, DType.F32))
    divisor = n.select(before, x, n(1.0))
    plain = n.divide(_sums_from(b, n.multiply(t, expr.result), axis), divisor)
    later = n.select(first, at_first, n(0.0))
    return n.select(before, plain, later)
