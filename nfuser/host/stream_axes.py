# SPDX-License-Identifier: Apache-2.0
"""Which slice of its operands an operation needs for one slice of its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.host.statements as st
from nfuser.ir.base import value
from nfuser.ir.scalar import Const

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.ir.tensor import TensorView


@value
class Cut:
    """The axis of an operand to take a slice along, if any.

    A broadcast one has extent 1: each slice of the result reads its only element.
    """

    axis: int | None
    is_broadcast: bool = False


def source_cuts(stmt: st.Compute, axis: int) -> list[Cut]:
    """Return the cut of each tensor read for a slice along ``axis`` of the result."""
    match stmt:
        case st.Binary():
            return _pointwise(st.reads(stmt), stmt.result.ndim - axis)
        case st.Reduce(_, source, axes):
            kept = [k for k in range(source.ndim) if k not in axes]
            return [Cut(kept[axis])]
        case st.Matmul(lhs, rhs):
            return _matmul(lhs, rhs, axis, stmt.result.ndim)
        case _:
            return [Cut(axis)]


def _pointwise(operands: Sequence[TensorView], back: int) -> list[Cut]:
    """``back`` counts the axis from the end, where the operands meet."""
    return [_cut(x, x.ndim - back) for x in operands]


def _matmul(lhs: TensorView, rhs: TensorView, axis: int, rank: int) -> list[Cut]:
    columns, rows = rhs.ndim > 1, lhs.ndim > 1
    if columns and axis == rank - 1:
        return [Cut(None), Cut(rhs.ndim - 1)]
    if rows and axis == rank - columns - 1:
        return [Cut(lhs.ndim - 2), Cut(None)]
    # A batch axis: where it lies, counted back from the matrices.
    back = rank - columns - rows - axis
    return [_cut(x, x.ndim - 2 - back) for x in (lhs, rhs)]


def _cut(x: TensorView, axis: int) -> Cut:
    return Cut(None) if axis < 0 else Cut(axis, _is_one(x, axis))


def _is_one(x: TensorView, axis: int) -> bool:
    extent = x.shape[axis]
    return isinstance(extent, Const) and extent.value == 1
