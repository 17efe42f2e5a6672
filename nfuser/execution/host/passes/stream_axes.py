# SPDX-License-Identifier: Apache-2.0
"""Which slice of its operands an operation needs for one slice of its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.domains.slices import matmul_axes
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import UnsupportedError
from nfuser.execution.host.passes.fusion_axes import input_axes
from nfuser.execution.host.run.callee import fusion_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@value
class StreamedAxis:
    """The axis of an operand to take a slice along, if any.

    A broadcast one has extent 1: each slice of the result reads its only element.
    """

    axis: int | None
    is_broadcast: bool = False


def source_cuts(
    stmt: st.Compute | st.Launch, axes: Mapping[TensorView, int]
) -> list[StreamedAxis]:
    """Return the cut of each tensor read, for slices along ``axes`` of the results."""
    if isinstance(stmt, st.Launch):
        return _launch(stmt, axes)
    axis = axes[stmt.result]
    match stmt:
        case st.BinaryOp():
            back = stmt.result.ndim - axis  # from the end, where the operands meet
            return [_cut(x, x.ndim - back) for x in st.reads(stmt)]
        case st.ReductionOp(_, source, gone):
            kept = [k for k in range(source.ndim) if k not in gone]
            return [StreamedAxis(kept[axis])]
        case st.MatmulOp(lhs, rhs, result):
            found = matmul_axes(lhs, rhs, axis, result.ndim)
            return [_cut(x, k) for x, k in zip((lhs, rhs), found, strict=True)]
        case _:
            return [StreamedAxis(axis)]


def _launch(stmt: st.Launch, axes: Mapping[TensorView, int]) -> list[StreamedAxis]:
    fusion = fusion_of(stmt.function)
    if fusion is None:
        message = (
            "launch: what this function does along a stream axis is not known before "
            f"it is called; launch its fusion{st.line_of(stmt)}"
        )
        raise UnsupportedError(message)
    found = input_axes(fusion, [axes[t] for t in stmt.results])
    operands = enumerate(stmt.operands)
    return [
        _cut(x, found.get(slot)) for slot, x in operands if isinstance(x, TensorView)
    ]


def _cut(x: TensorView, axis: int | None) -> StreamedAxis:
    if axis is None or axis < 0:
        return StreamedAxis(None)
    extent = x.shape[axis]
    return StreamedAxis(axis, isinstance(extent, Const) and extent.value == 1)
