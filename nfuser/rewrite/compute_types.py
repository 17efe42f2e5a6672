# SPDX-License-Identifier: Apache-2.0
"""Compute 16-bit floats in f32: round at outputs and at explicit casts only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.dtypes import DType
from nfuser.ir.expr import (
    Argument,
    Expr,
    Pointwise,
    Reduce,
    results,
    sources,
)
from nfuser.ir.fusion import Fusion, with_sources
from nfuser.ir.point_op import CAST, NEAR, is_copy

if TYPE_CHECKING:
    from nfuser.ir.tensor import TensorView


def widen_halves(fusion: Fusion) -> Fusion:
    """Return ``fusion`` with f16 and bf16 only in arguments, casts and outputs."""
    if all(_is_widened(expr) for expr in fusion.exprs) and not any(
        isinstance(fusion.definition[t], Argument) for t in fusion.outputs
    ):
        return fusion
    widener = _Widener()
    for expr in fusion.exprs:
        widener.add(expr)
    outputs = [widener.narrow(t) for t in fusion.outputs]
    return Fusion(fusion.name, widener.exprs, outputs)


def _is_widened(expr: Expr) -> bool:
    """Tell whether ``expr`` has halves only where they may be."""
    if isinstance(expr, Argument) or (isinstance(expr, Pointwise) and expr.op is CAST):
        return True
    return not any(t.dtype.is_half for t in (*sources(expr), *results(expr)))


class _Widener:
    def __init__(self) -> None:
        self.exprs: list[Expr] = []
        self._wide: dict[TensorView, TensorView] = {}

    def add(self, expr: Expr) -> None:
        """Append the f32 form of ``expr``."""
        halves = [t for t in results(expr) if t.dtype.is_half]
        expr = with_sources(expr, [self._wide.get(t, t) for t in sources(expr)])
        if isinstance(expr, Argument):
            self.exprs.append(expr)
            if halves:
                self._wide[expr.result] = self._cast(expr.result, DType.F32)
            return
        if not halves:
            self.exprs.append(expr)
            return
        if isinstance(expr, Pointwise) and expr.op is CAST:
            narrow = self._cast(expr.operands[0], expr.result.dtype, expr.result)
            self._wide[expr.result] = self._cast(narrow, DType.F32)
            return
        if isinstance(expr, Pointwise) and is_copy(expr.op):
            self._wide[expr.result] = expr.operands[0]
            return
        made = {t: replace(t, dtype=DType.F32) for t in halves}
        self._wide.update(made)
        if isinstance(expr, Reduce):
            self.exprs.append(replace(expr, results=tuple(made.values())))
        else:
            if isinstance(expr, Pointwise):
                expr = replace(expr, op=NEAR.get(expr.op.name, expr.op))
            self.exprs.append(replace(expr, result=made[expr.result]))

    def _cast(
        self, tensor: TensorView, dtype: DType, like: TensorView | None = None
    ) -> TensorView:
        if tensor.dtype is dtype:
            return tensor
        made = replace(like or tensor, dtype=dtype, axes=tensor.axes)
        self.exprs.append(Pointwise(CAST, (tensor,), made))
        return made

    def narrow(self, output: TensorView) -> TensorView:
        """Return what stands for ``output``, rounded to its dtype."""
        if not output.dtype.is_half:
            return output
        made = replace(output)
        self.exprs.append(Pointwise(CAST, (self._wide[output],), made))
        return made
