# SPDX-License-Identifier: Apache-2.0
"""Compute on tensors before axes of extent 1 are inserted into them, not after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import ExpandDims, Expr, Pointwise, Squeeze
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


def insert_axes_last(fusion: Fusion) -> Fusion:
    """Let ``f(expand_dims(x))`` be ``expand_dims(f(x))``, and drop what is undone.

    Axes inserted one after another are inserted at once. What is computed of a row then
    reads the same whether its axis was kept or inserted again later, and is computed
    once.
    """
    outputs = set(fusion.outputs)
    inserted: dict[TensorView, ExpandDims] = {}

    def change(expr: Expr) -> Replacement | TensorView | None:
        match expr:
            case ExpandDims(source, result, axes) if source in inserted:
                before = inserted[source]
                kept = [k for k in range(result.ndim) if k not in axes]
                every = sorted((*axes, *(kept[k] for k in before.axes)))
                inserted[result] = ExpandDims(before.source, result, tuple(every))
                return Replacement((inserted[result],), (result,))
            case ExpandDims():
                inserted[expr.result] = expr
            case Squeeze(source, result, axes) if source in inserted:
                before = inserted[source]
                if before.axes == axes and result not in outputs:
                    return before.source
            case Pointwise() if expr.result not in outputs:
                if moved := _moved(expr, inserted):
                    inserted[expr.result] = moved[1]
                    return Replacement(moved, (expr.result,))
            case _:
                pass
        return None

    return rebuild(fusion, change)


def _moved(
    expr: Pointwise, inserted: dict[TensorView, ExpandDims]
) -> tuple[Pointwise, ExpandDims] | None:
    """Return ``expr`` on what its operands were before the same axes were inserted."""
    views = [inserted.get(t) for t in expr.operands]
    axes = next((view.axes for view in views if view), None)
    if axes is None or any(
        view.axes != axes if view else operand.ndim
        for view, operand in zip(views, expr.operands, strict=True)
    ):
        return None
    ranks = {view.source.ndim for view in views if view}
    if ranks != {expr.result.ndim - len(axes)}:
        return None
    own = [
        view.source if view else operand
        for view, operand in zip(views, expr.operands, strict=True)
    ]
    kept = [a for k, a in enumerate(expr.result.axes) if k not in axes]
    made = replace(expr.result, axes=tuple(kept))
    before = replace(expr, operands=tuple(own), result=made)
    return before, ExpandDims(made, expr.result, axes)
