# SPDX-License-Identifier: Apache-2.0
"""A number that no element of a tensor is less than, as far as its definition tells.

Up to rounding, and for elements that are numbers: NaN may come out anywhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    VIEWS,
    Constant,
    ExpandDims,
    Expr,
    FromScalar,
    Pointwise,
    Reduce,
    ReduceOp,
    sources,
)
from nfuser.compiler.ir.point_op import CAST, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView

_EXPONENTIALS = ("exp", "exp_near")
_NATURAL = (*_EXPONENTIALS, "exp2", "absolute")  # never below 0, of whatever operand


def least(of: Mapping[TensorView, Expr], tensor: TensorView) -> float:
    """Return a bound from below of ``tensor``, which ``of`` defines; maybe -inf."""
    bounds: dict[TensorView, float] = {}
    for item in toposort([tensor], lambda t: list(sources(of[t]))):
        bounds[item] = _least(of, of[item], bounds)
    return bounds[tensor]


def _least(
    of: Mapping[TensorView, Expr], expr: Expr, bounds: Mapping[TensorView, float]
) -> float:
    match expr:
        case Constant(number) if not isinstance(number, complex):
            return float(number)
        case FromScalar(scalar) if sc.is_natural(scalar):
            return 0.0
        case Pointwise():
            return _of_point(expr, [bounds[t] for t in expr.operands])
        case Reduce(ReduceOp.SUM):
            if _has_largest(of, expr):
                return 1.0
            return 0.0 if bounds[expr.source] >= 0 else -math.inf
        case Reduce(ReduceOp.MAX | ReduceOp.MIN | ReduceOp.FMAX | ReduceOp.FMIN):
            return bounds[expr.source]
        case _ if isinstance(expr, VIEWS):
            return bounds[expr.source]
        case _:
            return -math.inf


def _of_point(expr: Pointwise, bounds: Sequence[float]) -> float:
    name = expr.op.name
    if is_copy(expr.op) or (expr.op is CAST and expr.result.dtype.is_float):
        return bounds[0]
    if name in _NATURAL:
        return 0.0
    if name in ("sqrt", "sqrt_near"):
        return math.sqrt(max(bounds[0], 0.0))
    if name == "add":
        return sum(bounds)
    if name == "maximum":
        return max(bounds)
    if name == "multiply" and expr.operands[0] is expr.operands[1]:
        return 0.0
    is_natural = name in ("multiply", "divide", "divide_near") and min(bounds) >= 0
    return 0.0 if is_natural else -math.inf


def _has_largest(of: Mapping[TensorView, Expr], total: Reduce) -> bool:
    """Tell whether one of the exponentials that ``total`` adds up is that of 0."""
    power = of[total.source]
    if not (isinstance(power, Pointwise) and power.op.name in _EXPONENTIALS):
        return False
    distance = of[power.operands[0]]
    if not (isinstance(distance, Pointwise) and distance.op.name == "subtract"):
        return False
    source, largest = distance.operands
    expand = of[largest]
    reduce = of[expand.source] if isinstance(expand, ExpandDims) else None
    return (
        isinstance(expand, ExpandDims)
        and isinstance(reduce, Reduce)
        and reduce.op is ReduceOp.MAX
        and reduce.source is source
        and reduce.axes == expand.axes == total.axes
    )
