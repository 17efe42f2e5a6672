# SPDX-License-Identifier: Apache-2.0
"""Cotangents of what is read where an index says, or sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ops as ops
import nfuser.compiler.transforms.differentiate.rules.scatters as scatters
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Sort

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr, Take
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


def of_take(
    b: Builder, expr: Take, t: TensorView, definition: Mapping[TensorView, Expr]
) -> TensorView:
    """Return the cotangent of what was taken from: each element where it was."""
    source, index, axis = expr.source, expr.index, expr.axis
    made_by = definition.get(index)
    if expr.along and isinstance(made_by, Sort) and made_by.places:
        is_whole = index.shape == source.shape and made_by.axis == axis
        if is_whole:
            return ops.take_along_axis(b, t, _places(b, index, axis), axis)
    if expr.along and b.ask(scalar_functions.equal(index.shape[axis], 1)):
        return _of_one(b, expr, t)
    return scatters.added_back(b, expr, t)


def _of_one(b: Builder, expr: Take, t: TensorView) -> TensorView:
    """Return ``t`` at the one place along the axis that was read, zeros elsewhere."""
    source, axis = expr.source, expr.axis
    extent = source.shape[axis]
    places = ops.arange(b, extent)
    rest = tuple(range(1, source.ndim - axis))
    places = ops.expand_dims(b, places, rest) if rest else places
    index = b.cast(expr.index, DType.I64)
    negative = b.point("less", index, b.constant(0, DType.I64))
    behind = b.point("add", index, b.from_scalar(extent, DType.I64))
    index = b.point("select", negative, behind, index)
    hit = b.point("equal", places, index)
    found = b.point("select", hit, t, b.convert(0, t.dtype))
    return ops.sum_to(b, found, source.shape)


def of_sort(b: Builder, expr: Sort, t: TensorView) -> TensorView:
    """Return the cotangent of what was sorted: each element back in its place.

    Of what is only parted, the order that it was left in comes first.
    """
    if expr.kth:
        t = ops.take_along_axis(b, t, _places(b, expr.result, expr.axis), expr.axis)
    order = _places(b, expr.source, expr.axis)
    return ops.take_along_axis(b, t, _places(b, order, expr.axis), expr.axis)


def _places(b: Builder, x: TensorView, axis: int) -> TensorView:
    made = b.new(x.shape, DType.I64)
    b.emit(Sort(x, made, axis, places=True, stable=True))
    return made
