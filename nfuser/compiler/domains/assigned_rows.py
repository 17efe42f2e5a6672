# SPDX-License-Identifier: Apache-2.0
"""Rows of an array: which one is read, which one is assigned, and what lies apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Slice
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Assign
    from nfuser.compiler.ir.tensor import TensorView


def is_assigned_row(read: Slice, made: Assign) -> bool:
    """Tell whether it is one row that is read, and the very one that was assigned."""
    axes = zip(read.result.axes, made.source.axes, strict=True)
    is_row = any(axis.is_broadcast and not whole.is_broadcast for axis, whole in axes)
    if not is_row or read.result.shape != made.value.shape:
        return False
    jumps = zip(read.result.axes, read.steps, made.steps, strict=True)
    return read.starts == made.starts and all(
        axis.is_broadcast or step == other for axis, step, other in jumps
    )


def are_apart(one: Slice | Assign, other: Slice | Assign) -> bool:
    """Tell whether one is of a row in front of all that the other is of.

    Both are of the same array. Axes of one place each tell them apart either way.
    """
    parts = _part(one).axes, _part(other).axes
    for k, (a, b) in enumerate(zip(*parts, strict=True)):
        gap = other.starts[k] - one.starts[k]
        if not isinstance(gap, sc.Const) or not gap.value:
            continue
        if a.is_broadcast and b.is_broadcast:
            return True
        if a.is_broadcast and gap.value * other.steps[k] > 0:
            return True
        if b.is_broadcast and gap.value * one.steps[k] < 0:
            return True
    return False


def _part(expr: Slice | Assign) -> TensorView:
    return expr.result if isinstance(expr, Slice) else expr.value
