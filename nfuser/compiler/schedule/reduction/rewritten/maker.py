# SPDX-License-Identifier: Apache-2.0
"""Makes the expressions that stand for a reduction once its schedule is known."""

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
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.fusion import Replacement
from nfuser.compiler.ir.point_op import CAST, POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.ir.tensor import IterDomain, IterType, TensorView

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType


class Maker:
    """Appends expressions whose axes are already concrete, of the line of ``of``."""

    def __init__(self, of: Reduce) -> None:
        self.exprs: list[Expr] = []
        self.line = of.results[0].source

    def replacement(self, *tensors: TensorView) -> Replacement:
        """Return what was made, with what stands for the results."""
        return Replacement(tuple(self.exprs), tensors)

    def point(self, name: str, *operands: TensorView) -> TensorView:
        """Return an operation on each element; one of ``operands`` is the widest."""
        widest = max(operands, key=_spread)
        made = replace(widest, source=self.line)
        self.exprs.append(Pointwise(POINT_OPS[name], operands, made))
        return made

    def cast(self, source: TensorView, dtype: DType) -> TensorView:
        """Return ``source`` with ``dtype``."""
        made = replace(source, dtype=dtype, source=self.line)
        self.exprs.append(Pointwise(CAST, (source,), made))
        return made

    def reduce(
        self, op: ReduceOp, source: TensorView, axes: tuple[int, ...]
    ) -> TensorView:
        """Return what ``op`` folds ``source`` into, without ``axes``."""
        kept = tuple(a for k, a in enumerate(source.axes) if k not in axes)
        made = replace(source, axes=kept, source=self.line)
        self.exprs.append(Reduce(op, source, (made,), axes))
        return made

    def count(
        self, source: TensorView, axes: tuple[int, ...], dtype: DType
    ) -> TensorView:
        """Return the number of elements along ``axes``."""
        number = replace(source, axes=(), dtype=dtype, source=self.line)
        total = product(source.shape[k] for k in axes)
        self.exprs.append(FromScalar(total, number))
        return number

    def keepdims(self, source: TensorView, axes: tuple[int, ...]) -> TensorView:
        """Return ``source`` with ``axes`` of extent 1 besides."""
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
