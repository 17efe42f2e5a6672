# SPDX-License-Identifier: Apache-2.0
"""Rules of what reads and writes where an index array says.

An index that differs from row to row, into what does, numbers elements of all rows.
What is written outside of a row is written nowhere; what is read there is the end of
that row, as it is in any array.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Scatter, Take
from nfuser.compiler.ir.scalars.functions import product

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.batch.stacks import Stacks


def of_take(rows: Stacks, expr: Take) -> TensorView:
    """Return what each row takes."""
    if expr.along:
        source, index = (_in_front(rows, t) for t in (expr.source, expr.index))
        return ops.take_along_axis(rows.b, source, index, expr.axis + 1)
    if not rows.differs(expr.index):
        made = rows.new(expr.result)
        source, index = rows.all(expr.source), rows.plain(expr.index)
        again = replace(expr, source=source, index=index, result=made, leads=False)
        rows.b.emit(replace(again, axis=expr.axis + 1))
        return made
    if not rows.differs(expr.source):
        return _by_each(rows, expr)
    return _of_each(rows, expr)


def _in_front(rows: Stacks, t: TensorView) -> TensorView:
    return rows.all(t) if rows.differs(t) else ops.expand_dims(rows.b, rows.plain(t), 0)


def _by_each(rows: Stacks, expr: Take) -> TensorView:
    """Return what the index of each row takes of a source that all rows share.

    A row whose loop has ended has an index that no turn of its own would have.
    """
    source, index = rows.plain(expr.source), rows.all(expr.index)
    return _taken(rows, replace(expr, inside=False), source, index, expr.axis)


def _of_each(rows: Stacks, expr: Take) -> TensorView:
    """Return what the index of each row takes of that row."""
    b, axis = rows.b, expr.axis
    source = ops.moveaxis(b, rows.all(expr.source), axis + 1, 1)
    extent = expr.source.shape[axis]
    flat = ops.reshape(b, source, (rows.count * extent, *source.shape[2:]))
    index = numbered(rows, _nearest(rows, expr.index, extent), extent)
    found = _taken(rows, expr, flat, index, 0)
    before = tuple(range(1 + expr.index.ndim, 1 + expr.index.ndim + axis))
    return ops.moveaxis(b, found, before, tuple(range(1, 1 + axis)))


def _taken(
    rows: Stacks, expr: Take, source: TensorView, index: TensorView, axis: int
) -> TensorView:
    b = rows.b
    shape = (*source.shape[:axis], *index.shape, *source.shape[axis + 1 :])
    made = b.new(shape, source.dtype)
    b.emit(Take(source, index, made, axis, inside=expr.inside))
    return ops.moveaxis(b, made, axis, 0)


def _nearest(rows: Stacks, index: TensorView, extent: Scalar) -> TensorView:
    """Return the index of the nearest element that there is, from the front."""
    b = rows.b
    own = b.cast(rows.all(index), DType.I64)
    size, zero = b.from_scalar(extent, DType.I64), b.constant(0, DType.I64)
    behind = b.point("maximum", b.point("add", own, size), zero)
    inside = b.point("minimum", own, b.from_scalar(extent - 1, DType.I64))
    return b.point("select", b.point("less", own, zero), behind, inside)


def numbered(rows: Stacks, index: TensorView, extent: Scalar) -> TensorView:
    """Return an index into ``extent`` elements of each row as one into all rows."""
    b = rows.b
    own = b.cast(index, DType.I64)
    number = b.cast(rows.numbers(index.ndim - 1), DType.I64)
    return ops.flat_index(b, [number, own], [rows.count, extent])


def of_scatter(rows: Stacks, expr: Scatter) -> TensorView:
    """Return the rows that each has been scattered into."""
    made = rows.new(expr.result)
    extent = product(expr.source.shape[: expr.lead])
    index = numbered(rows, rows.all(expr.index), extent)
    if expr.complaint:
        index = _beyond(rows, rows.all(expr.index), index, extent)
    source, value = rows.all(expr.source), rows.all(expr.value)
    # Rows whose loops have ended may have indices that no turn of theirs would have.
    own = replace(expr, source=source, index=index, value=value, inside=False)
    rows.b.emit(replace(own, result=made))
    return made


def _beyond(
    rows: Stacks, own: TensorView, index: TensorView, extent: Scalar
) -> TensorView:
    """Return ``index``, beyond all rows where one is not of its own row."""
    b = rows.b
    own, zero = b.cast(own, DType.I64), b.constant(0, DType.I64)
    end = b.from_scalar(rows.count * extent, DType.I64)
    inside = b.point("less", own, b.from_scalar(extent, DType.I64))
    index = b.point("select", inside, index, end)
    return b.point("select", b.point("less", own, zero), end, index)
