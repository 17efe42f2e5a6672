# SPDX-License-Identifier: Apache-2.0
"""Rewrites that a reduction schedule applies to its fusion before it is lowered."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.ir import scalar as sc
from nfuser.ir.expr import (
    ExpandDims,
    Expr,
    FromScalar,
    Pointwise,
    Reduce,
    ReduceOp,
    Slice,
    Squeeze,
)
from nfuser.ir.fusion import Fusion, Replacement, rebuild
from nfuser.ir.point_op import CAST, POINT_OPS
from nfuser.ir.tensor import IterDomain, IterType, TensorView
from nfuser.rewrite.dead_code import drop_dead_code

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        make = _Maker(expr)
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
        make = _Maker(expr)
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


class _Maker:
    """Appends expressions whose axes are already concrete, of the line of ``of``."""

    def __init__(self, of: Reduce) -> None:
        self.exprs: list[Expr] = []
        self.line = of.results[0].source

    def replacement(self, *tensors: TensorView) -> Replacement:
        return Replacement(tuple(self.exprs), tensors)

    def point(self, name: str, *operands: TensorView) -> TensorView:
        widest = max(operands, key=_spread)
        made = replace(widest, source=self.line)
        self.exprs.append(Pointwise(POINT_OPS[name], operands, made))
        return made

    def cast(self, source: TensorView, dtype: DType) -> TensorView:
        made = replace(source, dtype=dtype, source=self.line)
        self.exprs.append(Pointwise(CAST, (source,), made))
        return made

    def reduce(
        self, op: ReduceOp, source: TensorView, axes: tuple[int, ...]
    ) -> TensorView:
        kept = tuple(a for k, a in enumerate(source.axes) if k not in axes)
        made = replace(source, axes=kept, source=self.line)
        self.exprs.append(Reduce(op, source, (made,), axes))
        return made

    def count(
        self, source: TensorView, axes: tuple[int, ...], dtype: DType
    ) -> TensorView:
        """Return the number of elements along ``axes``."""
        number = replace(source, axes=(), dtype=dtype, source=self.line)
        total = sc.product(source.shape[k] for k in axes)
        self.exprs.append(FromScalar(total, number))
        return number

    def keepdims(self, source: TensorView, axes: tuple[int, ...]) -> TensorView:
        rest = iter(source.axes)
        one = sc.const(1)
        shape = tuple(
            IterDomain(one, IterType.BROADCAST) if k in axes else next(rest)
            for k in range(source.ndim + len(axes))
        )
        made = replace(source, axes=shape, source=self.line)
        self.exprs.append(ExpandDims(source, made, axes))
        return made

    def squeeze(self, source: TensorView, axes: tuple[int, ...]) -> TensorView:
        """Return ``source`` without ``axes``, which have extent 1."""
        kept = tuple(a for k, a in enumerate(source.axes) if k not in axes)
        made = replace(source, axes=kept, source=self.line)
        self.exprs.append(Squeeze(source, made, axes))
        return made

    def first(self, source: TensorView, axes: tuple[int, ...]) -> TensorView:
        """Read ``source`` at index 0 along ``axes``, which stay with extent 1."""
        one = sc.const(1)
        shape = tuple(
            IterDomain(one, IterType.BROADCAST) if k in axes else axis
            for k, axis in enumerate(source.axes)
        )
        made = replace(source, axes=shape, source=self.line)
        zeros = (sc.const(0),) * source.ndim
        self.exprs.append(Slice(source, made, zeros, (1,) * source.ndim))
        return made


def _spread(tensor: TensorView) -> tuple[int, int]:
    """Rank tensors by how much of the result's shape they already have."""
    return tensor.ndim, -sum(axis.is_broadcast for axis in tensor.axes)


def _two_passes(expr: Reduce) -> Replacement:
    make = _Maker(expr)
    source, axes = expr.source, expr.axes
    count = make.count(source, axes, source.dtype)
    mean = make.point("divide", make.reduce(ReduceOp.SUM, source, axes), count)
    centred = make.point("subtract", source, make.keepdims(mean, axes))
    square = make.point("multiply", centred, centred)
    return make.replacement(mean, make.reduce(ReduceOp.SUM, square, axes))


def _one_pass(expr: Reduce) -> Replacement:
    make = _Maker(expr)
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
