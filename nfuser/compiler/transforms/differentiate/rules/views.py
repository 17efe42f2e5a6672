# SPDX-License-Identifier: Apache-2.0
"""Transposes of what moves elements: each cotangent goes where its element was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Expand,
    ExpandDims,
    Pad,
    Permute,
    Reshape,
    Slice,
    Squeeze,
    SumTo,
    View,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.transforms.differentiate.flow import Flow
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Assign, Concatenate
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


def of_view(b: Builder, expr: View | SumTo, t: TensorView) -> TensorView:
    """Return the cotangent of the source of ``expr``."""
    shape = expr.source.shape
    match expr:
        case Expand():
            return ops.sum_to(b, t, shape)
        case SumTo():
            return ops.broadcast_to(b, t, shape)
        case ExpandDims(_, _, axes):
            made = b.new(shape, t.dtype)
            b.emit(Squeeze(t, made, axes))
            return made
        case Squeeze(_, _, axes):
            return put_back(b, t, shape, axes)
        case Permute(_, _, order):
            return ops.permute(b, t, [order.index(k) for k in range(t.ndim)])
        case Slice():
            return _placed(b, t, expr.starts, expr.steps, shape)
        case Reshape():
            return reshaped(b, t, shape)
        case _:
            message = (
                "write the roll, tile or repeat with slices and concatenate, or pad "
                "with mode='constant': the derivative of elements that are read more "
                "than once, or from both ends, is not there yet"
            )
            raise UnsupportedError(message)


def put_back(
    b: Builder, t: TensorView, shape: Sequence[Scalar], axes: tuple[int, ...]
) -> TensorView:
    """Return ``t`` with axes that were dropped, as large as in ``shape``."""
    return ops.broadcast_to(b, ops.expand_dims(b, t, axes), shape)


def reshaped(b: Builder, t: TensorView, shape: Sequence[Scalar]) -> TensorView:
    """Return the elements of ``t`` in C order over axes that are known to fit."""
    made = b.new(shape, t.dtype)
    b.emit(Reshape(t, made))
    return made


def padded(
    b: Builder,
    t: TensorView,
    lefts: Sequence[Scalar],
    shape: Sequence[Scalar],
    fill: float = 0,
) -> TensorView:
    """Return ``t`` at ``lefts`` in an array of ``shape``, with ``fill`` around it."""
    made = b.new(shape, t.dtype)
    b.emit(Pad(t, b.convert(fill, t.dtype), made, tuple(lefts)))
    return made


def flipped(b: Builder, t: TensorView, axis: int) -> TensorView:
    """Return ``t`` in reverse along ``axis``."""
    return ops.flip(b, t, axis)


def of_assign(b: Builder, expr: Assign, t: TensorView, place: int) -> Flow:
    """Return the cotangent of what was assigned to, or of what was assigned."""
    if place == 1:
        made = b.new(expr.value.shape, t.dtype)
        b.emit(Slice(t, made, expr.starts, expr.steps))
        return Flow(made)
    return Flow(t, b.point("invert", part_of(b, expr)))


def assigned(
    b: Builder, expr: Assign, source: TensorView | None, value: TensorView | None
) -> TensorView:
    """Return the tangent of the result, of those of what it was made of."""
    given = source or value
    assert given is not None
    zero = b.convert(0, given.dtype)
    shape = expr.source.shape
    new = zero if value is None else _placed(b, value, expr.starts, expr.steps, shape)
    old = zero if source is None else source
    return b.point("select", part_of(b, expr), new, old)


def part_of(b: Builder, expr: Assign) -> TensorView:
    """Return which elements of the result were assigned."""
    inside = ops.full(b, expr.value.shape, True, DType.BOOL)
    return _placed(b, inside, expr.starts, expr.steps, expr.source.shape)


def _placed(
    b: Builder,
    t: TensorView,
    starts: Sequence[Scalar],
    steps: Sequence[int],
    shape: Sequence[Scalar],
) -> TensorView:
    """Return ``t`` at these places of an array of ``shape``, with zeros elsewhere."""
    lefts = list(starts)
    for axis, step in enumerate(steps):
        if step < 0:
            t = flipped(b, t, axis)
            lefts[axis] = lefts[axis] + (t.shape[axis] - 1) * step
        if abs(step) > 1:
            t = _spread(b, t, axis, abs(step))
    return padded(b, t, lefts, shape)


def _spread(b: Builder, t: TensorView, axis: int, step: int) -> TensorView:
    """Return ``t`` with ``step - 1`` zeros after each element along ``axis``."""
    wide = ops.expand_dims(b, t, axis + 1)
    shape = list(wide.shape)
    shape[axis + 1] = sc.const(step)
    rows = padded(b, wide, [sc.const(0)] * wide.ndim, shape)
    merged = list(t.shape)
    merged[axis] = t.shape[axis] * step
    return reshaped(b, rows, merged)


def of_pad(b: Builder, expr: Pad, t: TensorView, place: int) -> TensorView:
    """Return the cotangent of the source, or of the fill, of a pad."""
    source = expr.source
    if place == 0:
        return padded(b, t, [-left for left in expr.lefts], source.shape)
    inside = ops.full(b, source.shape, True, DType.BOOL)
    kept = padded(b, inside, expr.lefts, expr.result.shape, fill=False)
    around = b.point("select", kept, b.convert(0, t.dtype), t)
    return ops.sum(b, around, tuple(range(t.ndim)))


def of_part(b: Builder, expr: Concatenate, t: TensorView, place: int) -> TensorView:
    """Return the cotangent of one of the parts that were put together."""
    axis = expr.axis
    before = sum((p.shape[axis] for p in expr.parts[:place]), sc.const(0))
    starts: list[Scalar] = [sc.const(0)] * t.ndim
    starts[axis] = before
    part = expr.parts[place].shape
    return ops.sliced(b, t, starts, part, (1,) * t.ndim)
