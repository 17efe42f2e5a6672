# SPDX-License-Identifier: Apache-2.0
"""Verbs that fold along an axis and keep what there is after each element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.logic as logic
import nfuser.compiler.ops.shapes.moves as moves
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.ir.expr import ReduceOp, Scan
from nfuser.compiler.ops.folds.reduction import summed
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

_OF_BOOL = {
    ReduceOp.SUM: ReduceOp.ANY,
    ReduceOp.PROD: ReduceOp.ALL,
    ReduceOp.MAX: ReduceOp.ANY,
    ReduceOp.MIN: ReduceOp.ALL,
}


def _scan(
    b: Builder, op: ReduceOp, x: TensorView, axis: int | None, dtype: DType | None
) -> TensorView:
    """Scan ``x`` in ``dtype``; without an axis, its elements in C order."""
    operand = b.cast(x, x.dtype if dtype is None else dtype)
    if operand.dtype.is_complex and op is not ReduceOp.SUM:
        raise parts.refuse(f"a scan by {op.value}")
    if axis is None:
        operand, axis = moves.reshape(b, operand, [-1]), 0
    elif not operand.ndim:
        views.normal_axis(axis, 1)
        operand = views.expand_dims(b, operand, (0,))
    place = views.normal_axis(axis, operand.ndim)
    found = b.new(operand.shape, operand.dtype)
    b.emit(Scan(_OF_BOOL[op] if operand.dtype.is_bool else op, operand, found, place))
    return found


def cumsum(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return the sums of the elements up to each; small integers add in 64 bits."""
    return _scan(b, ReduceOp.SUM, x, axis, summed(x, dtype))


def cumprod(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return the products of the elements up to each; integers as for cumsum."""
    return _scan(b, ReduceOp.PROD, x, axis, summed(x, dtype))


def cummax(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return the largest of the elements up to each, NaN from the first one on."""
    return _scan(b, ReduceOp.MAX, x, axis, dtype)


def cummin(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return the smallest of the elements up to each, NaN from the first one on."""
    return _scan(b, ReduceOp.MIN, x, axis, dtype)


def _nan_as(b: Builder, x: TensorView, number: int) -> TensorView:
    if not (x.dtype.is_float or x.dtype.is_complex):
        return x
    return logic.where(b, logic.isnan(b, x), number, x)


def nancumsum(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return ``cumsum`` with NaN as 0."""
    return cumsum(b, _nan_as(b, x, 0), axis, dtype=dtype)


def nancumprod(
    b: Builder, x: TensorView, axis: int | None = None, *, dtype: DType | None = None
) -> TensorView:
    """Return ``cumprod`` with NaN as 1."""
    return cumprod(b, _nan_as(b, x, 1), axis, dtype=dtype)


def _only_axis(x: TensorView, axis: int | None, name: str) -> int:
    if axis is not None:
        return axis
    if x.ndim > 1:
        message = f"{name}: an array of {x.ndim} dimensions needs an axis"
        raise ShapeError(message)
    return 0


def _cumulative(
    b: Builder,
    op: ReduceOp,
    x: TensorView,
    axis: int | None,
    dtype: DType | None,
    include_initial: bool,
) -> TensorView:
    verb, name = (
        (cumsum, "cumulative_sum")
        if op is ReduceOp.SUM
        else (cumprod, "cumulative_prod")
    )
    place = _only_axis(x, axis, name)
    if not include_initial:
        return verb(b, x, place, dtype=dtype)
    if not x.ndim:
        x = views.expand_dims(b, x, (0,))
    place = views.normal_axis(place, x.ndim)
    operand = b.cast(x, summed(x, dtype))
    # What changes nothing comes before the first element: one kernel does it all.
    widths = [(int(k == place), 0) for k in range(x.ndim)]
    fill = b.constant(int(op is ReduceOp.PROD), operand.dtype)
    return verb(b, moves.pad(b, operand, widths, fill), place, dtype=operand.dtype)


def cumulative_sum(
    b: Builder,
    x: TensorView,
    axis: int | None = None,
    *,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> TensorView:
    """Return ``cumsum`` along the only axis, or ``axis``; with 0 in front if asked."""
    return _cumulative(b, ReduceOp.SUM, x, axis, dtype, include_initial)


def cumulative_prod(
    b: Builder,
    x: TensorView,
    axis: int | None = None,
    *,
    dtype: DType | None = None,
    include_initial: bool = False,
) -> TensorView:
    """Return ``cumprod`` along the only axis, or ``axis``; with 1 in front if asked."""
    return _cumulative(b, ReduceOp.PROD, x, axis, dtype, include_initial)


def accumulate(
    b: Builder,
    x: TensorView,
    op: ReduceOp,
    axis: int | None = 0,
    *,
    dtype: DType | None = None,
) -> TensorView:
    """Scan as a ufunc's ``accumulate`` does: along the first axis by default."""
    if not x.ndim:
        message = "cannot accumulate on a scalar"
        raise ArgumentError(message)
    if axis is None and x.ndim > 1:
        message = "accumulate does not allow multiple axes"
        raise ShapeError(message)
    if op in (ReduceOp.SUM, ReduceOp.PROD):
        dtype = summed(x, dtype)
    return _scan(b, op, x, axis or 0, dtype)
