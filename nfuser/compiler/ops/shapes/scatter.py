# SPDX-License-Identifier: Apache-2.0
"""Verbs that write elements where index arrays say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.shapes.creation as creation
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, FromScalar, Pointwise, Scatter, ScatterOp
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ops.builder import Builder

_OF_PARTS = (ScatterOp.SET, ScatterOp.ADD)
_NOWHERE = -(1 << 62)  # no element of any array
_OF_TRUTH = {ScatterOp.ADD: ScatterOp.MAX, ScatterOp.MULTIPLY: ScatterOp.MIN}


def scatter(
    b: Builder,
    op: ScatterOp,
    x: TensorView,
    indices: Sequence[TensorView],
    value: TensorView,
) -> TensorView:
    """Return ``x`` with ``value`` put into, or added to, the rows that indices name.

    There is an index for each of the first axes; they have one shape, with which the
    shape of the value begins. It goes on as that of ``x`` does.
    """
    extents = x.shape[: len(indices)]
    index = flat_index(b, [b.cast(i, DType.I64) for i in indices], extents)
    return scatter_rows(b, op, x, index, value)


def scatter_along(
    b: Builder,
    op: ScatterOp,
    x: TensorView,
    axis: int,
    index: TensorView,
    value: TensorView,
) -> TensorView:
    """Return what ``scatter`` does to the element along ``axis`` that each index names.

    The index stretches to the shape of the value. Along other axes elements stay where
    they are, and all of them are at 0 where ``x`` has but one.
    """
    indices: list[TensorView] = []
    for k, extent in enumerate(x.shape):
        if k == axis:
            indices.append(views.broadcast_to(b, index, value.shape))
            continue
        own = creation.arange(b, value.shape[k])
        if extent is not value.shape[k]:
            own = b.point("minimum", own, b.from_scalar(extent - 1, DType.I64))
        rest = tuple(range(1, x.ndim - k))
        own = views.expand_dims(b, own, rest) if rest else own
        indices.append(views.broadcast_to(b, own, value.shape))
    return scatter(b, op, x, indices, value)


def scatter_rows(
    b: Builder,
    op: ScatterOp,
    x: TensorView,
    index: TensorView,
    value: TensorView,
    complaint: str = "",
) -> TensorView:
    """Return what ``scatter`` does, for an index of all the first axes in C order.

    A ``complaint`` is what the error says about an index that is not right; ``{low}``
    and ``{high}`` in it are the least and the greatest.
    """
    kind = x.dtype
    if kind.is_complex and op not in _OF_PARTS:
        message = (
            f"write it with the real and the imaginary parts: {op.value} at the places "
            "of an index array has no fused form for complex numbers"
        )
        raise UnsupportedError(message)
    if kind.is_bool:
        kind, op = DType.U8, _OF_TRUTH.get(op, op)
    elif kind.is_half:
        kind = DType.F32
    held, new = b.cast(x, kind), b.cast(value, kind)
    made = b.new(x.shape, kind)
    b.emit(Scatter(op, held, index, new, made, complaint))
    return b.cast(made, x.dtype)


def flat_index(
    b: Builder, indices: Sequence[TensorView], extents: Sequence[Scalar]
) -> TensorView:
    """Return one index for all axes in C order; what is not there stays not there."""
    if len(indices) == 1:
        return indices[0]
    zero = b.constant(0, DType.I64)
    found = zero
    right: TensorView | None = None
    for index, extent in zip(indices, extents, strict=True):
        size = b.from_scalar(extent, DType.I64)
        behind = b.point("add", index, size)
        own = b.point("select", b.point("less", index, zero), behind, index)
        found = b.point("add", b.point("multiply", found, size), own)
        above = b.point("greater_equal", own, zero)
        inside = b.point("bit_and", above, b.point("less", own, size))
        right = inside if right is None else b.point("bit_and", right, inside)
    assert right is not None
    return b.point("select", right, found, b.constant(_NOWHERE, DType.I64))


def indices_of(
    definition: Mapping[TensorView, Expr],
    index: TensorView,
    extents: Sequence[Scalar],
) -> list[TensorView] | None:
    """Return the indices of which ``flat_index`` made ``index``; None if it did not."""
    if len(extents) == 1:
        return [index]
    chosen = _operands(definition, index, "select")
    if chosen is None or not _is_nowhere(definition.get(chosen[2])):
        return None
    found, indices = chosen[1], list[TensorView]()
    for extent in reversed(extents):
        total = _operands(definition, found, "add")
        before = total and _operands(definition, total[0], "multiply")
        wrapped = total and _operands(definition, total[1], "select")
        if before is None or wrapped is None:
            return None
        if not _is_size(definition.get(before[1]), extent):
            return None
        indices.insert(0, wrapped[2])
        found = before[0]
    return indices


def _operands(
    definition: Mapping[TensorView, Expr], tensor: TensorView, name: str
) -> tuple[TensorView, ...] | None:
    """Return what ``tensor`` was made of, if by the operation of this name."""
    expr = definition.get(tensor)
    is_so = isinstance(expr, Pointwise) and expr.op is POINT_OPS[name]
    return expr.operands if is_so and isinstance(expr, Pointwise) else None


def _is_size(expr: Expr | None, extent: Scalar) -> bool:
    """Tell whether ``expr`` gives ``extent``, which may be a constant."""
    if isinstance(expr, FromScalar):
        return expr.scalar is extent
    return (
        isinstance(expr, Constant)
        and isinstance(extent, Const)
        and expr.value == extent.value
    )


def _is_nowhere(expr: Expr | None) -> bool:
    return isinstance(expr, Constant) and expr.value == _NOWHERE


def rows_first(
    b: Builder, x: TensorView, axes: Sequence[int]
) -> tuple[TensorView, list[int]]:
    """Return ``x`` with ``axes`` in front, and what brings them back."""
    order = [*axes, *(k for k in range(x.ndim) if k not in axes)]
    back = [order.index(k) for k in range(x.ndim)]
    if order == back == list(range(x.ndim)):
        return x, back
    return views.permute(b, x, order), back
