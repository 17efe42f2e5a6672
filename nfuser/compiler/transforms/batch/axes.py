# SPDX-License-Identifier: Apache-2.0
"""Rules of what moves elements: the first axis stays where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Assign,
    Concatenate,
    Expand,
    ExpandDims,
    Pad,
    Permute,
    Remap,
    Reshape,
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.scalars.scalar_walk import substitute
from nfuser.compiler.transforms.batch.stacks import front, shifted

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import SumTo, View
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.batch.stacks import Stacks


def of_view(rows: Stacks, expr: View) -> TensorView:
    """Return all rows of a view."""
    if isinstance(expr, Expand):
        held = rows.aligned(expr.source, expr.result.ndim)
        return ops.broadcast_to(rows.b, held, (rows.count, *expr.result.shape))
    made = rows.new(expr.result)
    rows.b.emit(_raised(rows, expr, rows.all(expr.source), made))
    return made


def _raised(
    rows: Stacks,
    expr: ExpandDims | Squeeze | Permute | Slice | Reshape | Remap,
    source: TensorView,
    made: TensorView,
) -> View:
    match expr:
        case ExpandDims(_, _, axes):
            return ExpandDims(source, made, shifted(axes))
        case Squeeze(_, _, axes):
            return Squeeze(source, made, shifted(axes))
        case Permute(_, _, order):
            return Permute(source, made, (0, *shifted(order)))
        case Slice(_, _, starts, steps):
            return Slice(source, made, front(starts), (1, *steps))
        case Reshape(_, _, _, inferred):
            return Reshape(
                source, made, None, None if inferred is None else inferred + 1
            )
        case Remap():
            return Remap(source, made, _index(rows, expr))
        case _:
            assert_never(expr)


def _index(rows: Stacks, expr: Remap) -> tuple[Scalar, ...]:
    """Return the index of a remap, written in the places of all rows."""
    shape = expr.result.shape
    moved: dict[Scalar, Scalar] = {
        scalar_symbols.place(k, extent): scalar_symbols.place(k + 1, extent)
        for k, extent in enumerate(shape)
    }
    return scalar_symbols.place(0, rows.count), *substitute(expr.index, moved)


def of_sum_to(rows: Stacks, expr: SumTo) -> TensorView:
    """Return the sums of each row: what goes stands in front of all else."""
    lead = len(expr.axes)
    held = ops.moveaxis(rows.b, rows.all(expr.source), 0, lead)
    return ops.sum_to(rows.b, held, (rows.count, *expr.result.shape))


def of_pad(rows: Stacks, expr: Pad) -> TensorView:
    """Return all rows of a pad; the fill, a number, may differ from row to row."""
    b = rows.b
    made, lefts = rows.new(expr.result), front(expr.lefts)
    source, fill = rows.all(expr.source), rows.plain(expr.fill)
    if not rows.differs(expr.fill):
        b.emit(Pad(source, fill, made, lefts))
        return made
    b.emit(Pad(source, b.convert(0, source.dtype), made, lefts))
    inside = b.new(made.shape, DType.BOOL)
    held = ops.full(b, source.shape, True, DType.BOOL)
    b.emit(Pad(held, b.constant(False, DType.BOOL), inside, lefts))
    return b.point("select", inside, made, rows.aligned(expr.fill, expr.result.ndim))


def of_concatenate(rows: Stacks, expr: Concatenate) -> TensorView:
    """Return the rows put together, each of the parts of it."""
    made = rows.new(expr.result)
    parts = tuple(rows.all(t) for t in expr.parts)
    rows.b.emit(Concatenate(parts, made, expr.axis + 1))
    return made


def of_assign(rows: Stacks, expr: Assign) -> TensorView:
    """Return all rows after the assignment; what was stretched lies apart before."""
    source, made = rows.all(expr.source), rows.new(expr.result)
    if not rows.differs(expr.source):
        source = rows.b.point("copy", source)
    value = rows.all(expr.value)
    starts, steps = front(expr.starts), (1, *expr.steps)
    rows.b.emit(
        replace(
            expr, source=source, value=value, result=made, starts=starts, steps=steps
        )
    )
    return made
