# SPDX-License-Identifier: Apache-2.0
"""Whether all elements along an axis are known to be one and the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Argument,
    Expand,
    ExpandDims,
    Permute,
    Pointwise,
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.frontend.definition.inputs import TensorInput, memory_order

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.frontend.definition.draft import Draft


def is_stretched(d: Draft, x: TensorView, axis: int) -> bool:
    """Tell whether ``axis`` was stretched, or defined as an axis of stride 0."""
    pending = [(x, axis)]
    while pending:
        tensor, place = pending.pop()
        if tensor.shape[place] is sc.const(1):
            continue
        expr = d.definition(tensor)
        if isinstance(expr, Argument) and _has_no_stride(d, expr.slot, place):
            continue
        came = _origins(expr, tensor.ndim, place)
        if came is None:
            return False
        pending += came
    return True


def _origins(expr: Expr, rank: int, place: int) -> list[tuple[TensorView, int]] | None:
    """Return the axes from which axis ``place`` of a result takes its elements."""
    match expr:
        case Expand(source):
            return _behind(rank, place, (source,))
        case Pointwise(_, operands):
            return _behind(rank, place, operands)
        case Slice(source):
            return [(source, place)]
        case ExpandDims(source, _, axes):
            return [(source, place - sum(k < place for k in axes))]
        case Squeeze(source, _, axes):
            return [(source, [k for k in range(source.ndim) if k not in axes][place])]
        case Permute(source, _, order):
            return [(source, order[place])]
        case _:
            return None


def _behind(
    rank: int, place: int, operands: tuple[TensorView, ...]
) -> list[tuple[TensorView, int]]:
    """Return the axes that meet in ``place``; operands of lower rank have none."""
    own = [(x, place - (rank - x.ndim)) for x in operands]
    return [(x, k) for x, k in own if k >= 0]


def _has_no_stride(d: Draft, slot: int, axis: int) -> bool:
    defined = d.inputs[slot]
    if not isinstance(defined, TensorInput):
        return False
    order = memory_order(defined.stride_order, len(defined.shape))
    return defined.contiguity[order.index(axis)] is None
