# SPDX-License-Identifier: Apache-2.0
"""Cotangents of what index arrays write, and what they read, added up where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ScatterOp
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.transforms.differentiate.flow import Flow
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Scatter, Take
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


def is_linear(op: ScatterOp) -> bool:
    """Tell whether a scatter is linear in the source and the value."""
    return op in (ScatterOp.ADD, ScatterOp.SET)


def of_scatter(b: Builder, expr: Scatter, t: TensorView, place: int) -> Flow:
    """Return the cotangent of the source, or of the values, of a scatter."""
    if not is_linear(expr.op):
        message = (
            f"write nfuser.stop_gradient(x) around what goes into it: {expr.op.value} "
            "at the places of an index array has no derivative"
        )
        raise UnsupportedError(message)
    if place == 0:
        return Flow(t if expr.op is ScatterOp.ADD else _without_set(b, expr, t))
    found = _rows(b, t, expr.index, expr.lead)
    if expr.op is ScatterOp.SET:
        zero = b.convert(0, t.dtype)
        found = b.point("select", _stays(b, expr), found, zero)
    return Flow(found)


def _without_set(b: Builder, expr: Scatter, t: TensorView) -> TensorView:
    """Return ``t`` with zeros where values were set."""
    zeros = ops.full(b, expr.value.shape, 0, t.dtype)
    return ops.scatter_rows(b, ScatterOp.SET, t, expr.index, zeros)


def _rows(b: Builder, x: TensorView, index: TensorView, lead: int) -> TensorView:
    """Return what an index of the first ``lead`` axes names."""
    rows = ops.reshape(b, x, [product(x.shape[:lead]), *x.shape[lead:]])
    return ops.take(b, rows, index, 0)


def _stays(b: Builder, expr: Scatter) -> TensorView:
    """Return which values stay: the last of those that were set at one place."""
    index = expr.index
    count = product(index.shape)
    numbers = ops.reshape(b, ops.arange(b, count), list(index.shape))
    rows = product(expr.source.shape[: expr.lead])
    nobody = ops.full(b, (rows,), 0, DType.I64)
    numbers = b.cast(numbers, DType.I64)
    last = ops.scatter_rows(b, ScatterOp.SET, nobody, index, numbers)
    stays = b.point("equal", ops.take(b, last, index, 0), numbers)
    rest = tuple(range(index.ndim, expr.value.ndim))
    return ops.expand_dims(b, stays, rest) if rest else stays


def added_back(b: Builder, expr: Take, t: TensorView) -> TensorView:
    """Return zeros to which the cotangents of what was taken are added."""
    source, index, axis = expr.source, expr.index, expr.axis
    zeros = ops.full(b, source.shape, 0, t.dtype)
    if expr.along:
        return ops.scatter_along(b, ScatterOp.ADD, zeros, axis, index, t)
    lead = tuple(range(index.ndim))
    if axis and lead:
        t = ops.moveaxis(b, t, tuple(k + axis for k in lead), lead)
    turned, back = ops.rows_first(b, zeros, [axis])
    found = ops.scatter(b, ScatterOp.ADD, turned, [index], t)
    return ops.permute(b, found, back) if axis else found
