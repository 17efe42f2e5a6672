# SPDX-License-Identifier: Apache-2.0
"""Rules of what folds axes: reductions, scans, sorts, products."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.transforms.batch.stacks import shifted

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Matmul, Reduce, Scan, Sort
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.batch.stacks import Stacks


def of_reduce(rows: Stacks, expr: Reduce) -> tuple[TensorView, ...]:
    """Return the fold of each row."""
    made = tuple(rows.new(t) for t in expr.results)
    source = rows.all(expr.source)
    axes = shifted(expr.axes)
    rows.b.emit(replace(expr, source=source, results=made, axes=axes))
    return made


def along(rows: Stacks, expr: Scan | Sort) -> TensorView:
    """Return the scan, or the sort, of each row."""
    made = rows.new(expr.result)
    source = rows.all(expr.source)
    rows.b.emit(replace(expr, source=source, result=made, axis=expr.axis + 1))
    return made


def of_product(rows: Stacks, expr: Matmul) -> TensorView:
    """Return the product of each row, in as few products as there may be."""
    b, lhs, rhs = rows.b, expr.lhs, expr.rhs
    if not rows.differs(rhs) and rhs.ndim <= 2:
        return ops.matmul(b, rows.all(lhs), rows.plain(rhs))
    if not rows.differs(lhs) and lhs.ndim <= 2 and rhs.ndim == 1:
        left = rows.plain(lhs)
        turned = left if lhs.ndim == 1 else ops.swapaxes(b, left, 0, 1)
        return ops.matmul(b, rows.all(rhs), turned)
    if lhs.ndim == rhs.ndim == 1:
        each = b.point("multiply", rows.all(lhs), rows.all(rhs))
        return ops.sum(b, each, 1, dtype=expr.result.dtype)
    rank = max(lhs.ndim, rhs.ndim)
    left, right = _matrices(rows, lhs, rank, 0), _matrices(rows, rhs, rank, 1)
    found = ops.matmul(b, left, right)
    lost = [found.ndim - 2] * (lhs.ndim == 1) + [found.ndim - 1] * (rhs.ndim == 1)
    return ops.squeeze(b, found, lost) if lost else found


def _matrices(rows: Stacks, t: TensorView, rank: int, place: int) -> TensorView:
    """Return an operand as matrices, whose stacks meet those of ``rank`` axes.

    A vector is a row if it is the left operand, in place 0, and a column otherwise.
    """
    if t.ndim > 1:
        return rows.aligned(t, rank)
    b = rows.b
    if not rows.differs(t):
        return ops.expand_dims(b, rows.plain(t), place)
    held = ops.expand_dims(b, rows.all(t), tuple(range(1, rank - 1)))
    return ops.expand_dims(b, held, held.ndim - 1 + place)
