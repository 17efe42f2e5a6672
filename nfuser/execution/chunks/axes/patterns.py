# SPDX-License-Identifier: Apache-2.0
"""Expressions that are recognised together with what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Expand,
    ExpandDims,
    Expr,
    Iota,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    ScatterOp,
)
from nfuser.compiler.ir.point_op import CAST
from nfuser.compiler.ir.scalars import scalar_walk

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion

JOINED_BY = {
    ScatterOp.ADD: ReduceOp.SUM,
    ScatterOp.MULTIPLY: ReduceOp.PROD,
    ScatterOp.MAX: ReduceOp.MAX,
    ScatterOp.MIN: ReduceOp.MIN,
}
"""How what scatters by parts of an index give is joined; what is set has an order."""


def remapped_by_place(expr: Remap) -> list[bool]:
    """Tell of each axis whether its elements stay; nothing where axes mix."""
    found: list[bool] = []
    if expr.source.ndim != expr.result.ndim:
        return []
    for k, index in enumerate(expr.index):
        loops = scalar_walk.loops_in(index)
        if any(-1 - loop.number != k for loop in loops):
            return []
        found.append(len(loops) == 1 and index is loops[0])
    return found


def flat_iota(expr: Expr, fusion: Fusion) -> tuple[Iota, Pointwise | None] | None:
    """Return the index that ``expr`` reshapes, with the cast between them, if any."""
    if not isinstance(expr, Reshape):
        return None
    cast, made = None, fusion.definition[expr.source]
    if isinstance(made, Pointwise) and made.op is CAST:
        cast, made = made, fusion.definition[made.operands[0]]
    return (made, cast) if isinstance(made, Iota) else None


def shift_of(expr: Reduce, fusion: Fusion) -> Reduce | None:
    """Return the maximum relative to which ``expr`` sums exponentials, if it does."""
    if expr.op is not ReduceOp.SUM:
        return None
    power = fusion.definition[expr.source]
    if not (isinstance(power, Pointwise) and power.op.name == "exp"):
        return None
    gap = fusion.definition[power.operands[0]]
    if not (isinstance(gap, Pointwise) and gap.op.name == "subtract"):
        return None
    base, less = gap.operands
    made = fusion.definition[less]
    kept: tuple[int, ...] = ()
    while isinstance(made, (ExpandDims, Expand)):
        kept = made.axes if isinstance(made, ExpandDims) else kept
        made = fusion.definition[made.source]
    if not (isinstance(made, Reduce) and made.op is ReduceOp.MAX):
        return None
    if made.source is not base or made.axes != expr.axes:
        return None
    fits = kept == made.axes or len(made.axes) == base.ndim
    return made if fits else None
