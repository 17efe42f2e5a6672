# SPDX-License-Identifier: Apache-2.0
"""Rewrites that a reduction schedule applies to its fusion before it is lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    ExpandDims,
    Expr,
    Pointwise,
    Reduce,
    ReduceOp,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.rewrite.dead_code import drop_dead_code
from nfuser.compiler.schedule.reduction.rewritten.maker import Maker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.tensor import TensorView


def expand_moments(fusion: Fusion, one_pass: bool) -> Fusion:
    """Write mean and squared deviations as sums.

    In two dependent passes where rows are kept or small; else in one: the sums of
    x and d * d in f64, where d is the distance from the row's first element, which
    takes the place of the mean well enough for f32 data.
    """

    def change(expr: Expr) -> Replacement | None:
        if not (isinstance(expr, Reduce) and expr.op is ReduceOp.MOMENTS):
            return None
        return (_one_pass if one_pass and takes_one_pass(expr) else _two_passes)(expr)

    return rebuild(fusion, change)


def in_few_passes(fusion: Fusion) -> Fusion:
    """Return ``fusion`` as rows are folded that are read anew in each pass."""
    return fold_exponentials(expand_moments(fusion, one_pass=True))


def takes_one_pass(expr: Reduce) -> bool:
    """Tell whether f64 sums of distances are good enough for the data of ``expr``."""
    is_empty = any(expr.source.shape[k] is sc.const(0) for k in expr.axes)
    return expr.source.dtype is DType.F32 and not is_empty


def widen_sums(fusion: Fusion) -> Fusion:
    """Accumulate sums and products of f32 in f64: long chains lose nothing."""

    def change(expr: Expr) -> Replacement | None:
        if not (
            isinstance(expr, Reduce)
            and expr.op in (ReduceOp.SUM, ReduceOp.PROD)
            and expr.source.dtype is DType.F32
        ):
            return None
        make = Maker(expr)
        wide = make.cast(expr.source, DType.F64)
        total = make.reduce(expr.op, wide, expr.axes)
        return make.replacement(make.cast(total, DType.F32))

    return rebuild(fusion, change)


def fold_exponentials(fusion: Fusion) -> Fusion:
    """Write sums of ``exp(x - max(x))`` so that they need no pass of their own."""
    of = fusion.definition

    def change(expr: Expr) -> Replacement | None:
        if not (isinstance(expr, Reduce) and expr.op is ReduceOp.SUM):
            return None
        power = of.get(expr.source)
        if not (isinstance(power, Pointwise) and power.op.name in _EXPONENTIALS):
            return None
        distance = of[power.operands[0]]
        if not (isinstance(distance, Pointwise) and distance.op.name == "subtract"):
            return None
        source, largest = distance.operands
        if source.dtype is not DType.F32 or not _is_largest(of, source, largest, expr):
            return None
        make = Maker(expr)
        op = _EXPONENTIALS[power.op.name]
        return make.replacement(make.reduce(op, source, expr.axes))

    return drop_dead_code(rebuild(fusion, change))


_EXPONENTIALS = {
    "exp": ReduceOp.EXPONENTIALS,
    "exp_near": ReduceOp.EXPONENTIALS_NEAR,
}


def _is_largest(
    of: Mapping[TensorView, Expr], source: TensorView, largest: TensorView, over: Reduce
) -> bool:
    """Tell whether ``largest`` holds the maximum of ``source`` along the same axes."""
    expand = of[largest]
    if not (isinstance(expand, ExpandDims) and expand.axes == over.axes):
        return False
    reduce = of[expand.source]
    return (
        isinstance(reduce, Reduce)
        and reduce.op is ReduceOp.MAX
        and reduce.source is source
        and reduce.axes == over.axes
    )


def _two_passes(expr: Reduce) -> Replacement:
    make = Maker(expr)
    source, axes = expr.source, expr.axes
    count = make.count(source, axes, source.dtype)
    mean = make.point("divide", make.reduce(ReduceOp.SUM, source, axes), count)
    centred = make.point("subtract", source, make.keepdims(mean, axes))
    square = make.point("multiply", centred, centred)
    return make.replacement(mean, make.reduce(ReduceOp.SUM, square, axes))


def _one_pass(expr: Reduce) -> Replacement:
    make = Maker(expr)
    source, axes = expr.source, expr.axes
    wide = make.cast(source, DType.F64)
    pilot = make.first(wide, axes)
    distance = make.point("subtract", wide, pilot)
    squares = make.reduce(
        ReduceOp.SUM, make.point("multiply", distance, distance), axes
    )
    total = make.reduce(ReduceOp.SUM, wide, axes)
    count = make.count(source, axes, DType.F64)
    mean = make.point("divide", total, count)
    # How far off the pilot was. In f64 even data that differ little have digits left.
    gap = make.point("subtract", mean, make.squeeze(pilot, axes))
    excess = make.point("multiply", make.point("multiply", gap, gap), count)
    m2 = make.point("subtract", squares, excess)
    return make.replacement(make.cast(mean, DType.F32), make.cast(m2, DType.F32))
