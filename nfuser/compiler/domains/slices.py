# SPDX-License-Identifier: Apache-2.0
"""Which slice of its sources an expression needs for one slice of its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir import expr as ex
from nfuser.compiler.ir.scalars.scalar import const

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def source_axes(expr: ex.Expr, axis: int) -> Sequence[int | None] | None:
    """Return the axis of each source along which a slice is enough.

    An element of that slice is at the same index along ``axis`` of the result. A source
    without an axis there is needed whole. None if the slice needs other elements.
    """
    match expr:
        case ex.Argument() | ex.Constant() | ex.FromScalar():
            return ()
        case ex.Pointwise():
            return [_stretched(expr, t, axis) for t in expr.operands]
        case ex.Expand(source, result):
            place = _stretched(expr, source, axis)
            same = place is None or source.shape[place] is result.shape[axis]
            return [place] if same else None
        case ex.Reduce(_, source, _, axes) | ex.Squeeze(source, _, axes):
            return [[k for k in range(source.ndim) if k not in axes][axis]]
        case ex.Permute(_, _, order):
            return [order[axis]]
        case ex.ExpandDims(_, _, axes) if axis not in axes:
            return [axis - sum(k < axis for k in axes)]
        case ex.Scan(axis=own) | ex.Sort(axis=own) | ex.Concatenate(axis=own) if (
            axis != own
        ):
            return [axis] * len(ex.sources(expr))
        case ex.Slice() | ex.Pad() if _keeps(expr, axis):
            return [axis, None][: len(ex.sources(expr))]
        case ex.Reshape(source, result):
            kept = reshaped_axis(result.shape, source.shape, axis)
            return None if kept is None else [kept]
        case ex.Take():
            return _taken(expr, axis)
        case ex.Matmul(lhs, rhs, result):
            return matmul_axes(lhs, rhs, axis, result.ndim)
        case _:
            return None


def _stretched(
    expr: ex.Pointwise | ex.Expand, source: TensorView, axis: int
) -> int | None:
    place = axis - (expr.result.ndim - source.ndim)
    return None if place < 0 or source.shape[place] is const(1) else place


def _taken(expr: ex.Take, axis: int) -> Sequence[int | None] | None:
    inside = expr.index.ndim
    if expr.along:
        return None if axis == expr.axis else (axis, axis)
    if axis < expr.axis:
        return axis, None
    if axis < expr.axis + inside:
        return None, axis - expr.axis
    return axis - inside + 1, None


def _keeps(expr: ex.Slice | ex.Pad, axis: int) -> bool:
    """Tell whether element i along ``axis`` is element i of the source, for all i."""
    begins = expr.starts if isinstance(expr, ex.Slice) else expr.lefts
    steps = expr.steps[axis] if isinstance(expr, ex.Slice) else 1
    is_same = expr.source.shape[axis] is expr.result.shape[axis]
    return is_same and begins[axis] is const(0) and steps == 1


def matmul_axes(
    lhs: TensorView, rhs: TensorView, axis: int, rank: int
) -> tuple[int | None, int | None]:
    """Return the axes of the operands for a slice of a product of ``rank`` axes."""
    columns, rows = rhs.ndim > 1, lhs.ndim > 1
    if columns and axis == rank - 1:
        return None, rhs.ndim - 1
    if rows and axis == rank - columns - 1:
        return lhs.ndim - 2, None
    # A batch axis: where it lies, counted back from the matrices.
    back = rank - columns - rows - axis
    left, right = (x.ndim - 2 - back for x in (lhs, rhs))
    return (left if left >= 0 else None), (right if right >= 0 else None)


def reshaped_axis(
    source: Sequence[Scalar], result: Sequence[Scalar], axis: int
) -> int | None:
    """Return where an axis is up to which, or from which on, nothing changes."""
    back = len(source) - axis
    if tuple(source[: axis + 1]) == tuple(result[: axis + 1]):
        return axis
    if tuple(source[-back:]) == tuple(result[-back:]):
        return len(result) - back
    return None
