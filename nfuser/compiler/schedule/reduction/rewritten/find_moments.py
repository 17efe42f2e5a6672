# SPDX-License-Identifier: Apache-2.0
"""Say moments where a sum of squared deviations from the mean is written out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    ExpandDims,
    Expr,
    FromScalar,
    Pointwise,
    Reduce,
    ReduceOp,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild, remembered
from nfuser.compiler.ir.point_op import NEAR, POINT_OPS
from nfuser.compiler.ir.scalars.functions import product

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.tensor import TensorView

_MULTIPLY, _SUBTRACT = POINT_OPS["multiply"], POINT_OPS["subtract"]
_QUOTIENTS = (POINT_OPS["divide"], NEAR["divide"])


@remembered
def find_moments(fusion: Fusion) -> Fusion:
    """Let ``((x - x.mean()) ** 2).sum()`` be the second of the moments of ``x``.

    A heuristic then decides whether mean and deviations are one pass or two. Not a
    rewrite, since the sums of ranks that have a part of a row each add up, and moments
    do not.
    """
    of = fusion.definition

    def change(expr: Expr) -> Replacement | None:
        if not (isinstance(expr, Reduce) and expr.op is ReduceOp.SUM):
            return None
        if (source := _deviating(of, expr)) is None:
            return None
        mean = replace(expr.result)
        moments = Reduce(ReduceOp.MOMENTS, source, (mean, expr.result), expr.axes)
        return Replacement((moments,), (expr.result,))

    return rebuild(fusion, change)


def _deviating(of: Mapping[TensorView, Expr], total: Reduce) -> TensorView | None:
    """Return the tensor whose squared deviations ``total`` adds up, or None."""
    match of[total.source]:
        case Pointwise(op, (left, right)) if op is _MULTIPLY and left is right:
            centred = of[left]
        case _:
            return None
    match centred:
        case Pointwise(op, (source, mean)) if (
            op is _SUBTRACT
            and source.dtype.is_float
            and source.shape == total.source.shape
            and _is_mean(of, mean, source, total.axes)
        ):
            return source
        case _:
            return None


def _is_mean(
    of: Mapping[TensorView, Expr],
    tensor: TensorView,
    source: TensorView,
    axes: tuple[int, ...],
) -> bool:
    """Tell whether ``tensor`` stretches the mean of ``source`` along ``axes``."""
    made = of[tensor]
    if isinstance(made, ExpandDims):
        in_front = source.ndim - tensor.ndim
        stretched = (*range(in_front), *(in_front + k for k in made.axes))
        tensor = made.source
    else:
        stretched = tuple(range(source.ndim - tensor.ndim))
    if stretched != axes:
        return False
    match of[tensor]:
        case Pointwise(op, (total, count)) if op in _QUOTIENTS:
            adds, counts = of[total], of[count]
        case _:
            return False
    return (
        isinstance(adds, Reduce)
        and adds.op is ReduceOp.SUM
        and adds.source is source
        and adds.axes == axes
        and isinstance(counts, FromScalar)
        and counts.scalar is product(source.shape[k] for k in axes)
    )
