# SPDX-License-Identifier: Apache-2.0
"""What an expression needs of each source for a part of its result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.reshape import analyze_reshape
from nfuser.compiler.ir.expr import (
    Expand,
    ExpandDims,
    Expr,
    Matmul,
    Permute,
    Pointwise,
    Reduce,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Squeeze,
    SumTo,
    Take,
    sources,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.execution.chunks.axes.patterns import flat_iota
from nfuser.execution.chunks.axes.places import NONE, WHOLE, Along, need, spread_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.places import Axis, Margins, Need, Place
    from nfuser.execution.chunks.axes.spread import Spread


def required(spread: Spread, expr: Expr, place: Place, margins: Margins) -> list[Need]:
    """Return what ``expr`` needs of each source for its result at ``place``."""
    axes = list(zip(place, margins, strict=True))
    match expr:
        case Pointwise() | Expand():
            return [_met(spread, t, expr.result, axes) for t in sources(expr)]
        case ExpandDims(source, axes=added):
            kept = [a for k, a in enumerate(axes) if k not in added]
            return [need(source, kept)]
        case Squeeze(source, axes=dropped) | Reduce(source=source, axes=dropped):
            return [need(source, spread_out(axes, dropped))]
        case Permute(source, order=order):
            kept = [WHOLE] * source.ndim
            for k, j in enumerate(order):
                kept[j] = axes[k]
            return [need(source, kept)]
        case Slice(source):
            starts = scalar_walk.evaluate_all(expr.starts, spread.values)
            kept = [
                (p, (m[0] + s, m[1] + s)) if p is not None else WHOLE
                for (p, m), s in zip(axes, starts, strict=True)
            ]
            return [need(source, kept)]
        case Reshape():
            return _reshaped(spread, expr, axes)
        case _:
            return _required_whole(spread, expr, axes)


def _required_whole(spread: Spread, expr: Expr, axes: list[Axis]) -> list[Need]:
    """Return what is needed by what reads all of some axes."""
    match expr:
        case Take(source, index, axis=axis) if not expr.along:
            middle = axis + index.ndim
            kept = [*axes[:axis], WHOLE, *axes[middle:]]
            return [need(source, kept), need(index, axes[axis:middle])]
        case SumTo(source):
            summed = spread.summed_axes(expr)
            kept = spread_out(axes, expr.axes)
            kept = [WHOLE if k in summed else a for k, a in enumerate(kept)]
            return [need(source, kept)]
        case Matmul(lhs, rhs):
            if all(p is None for p, _ in axes):
                return [need(t, [WHOLE] * t.ndim) for t in (lhs, rhs)]
            rows = axes[: lhs.ndim - 1]
            return [
                need(lhs, [*rows, WHOLE]),
                need(rhs, [WHOLE] * rhs.ndim),
            ]
        case Scan() if expr in spread.carries:
            carried = list(axes)
            along = axes[expr.axis][0]
            assert along is not None
            carried[expr.axis] = replace(along, each=True), NONE
            carry = spread.carries[expr]
            return [need(expr.source, axes), need(carry, carried)]
        case Scatter() if expr in spread.partials:
            partial = spread.partials[expr]
            return [need(t, [WHOLE] * t.ndim) for t in (expr.source, partial)]
        case Scatter():
            return [need(t, [WHOLE] * t.ndim) for t in sources(expr)]
        case _:
            rank = len(axes)
            return [
                need(t, axes if t.ndim == rank else [WHOLE] * t.ndim)
                for t in sources(expr)
            ]


def _met(spread: Spread, t: TensorView, result: TensorView, axes: list[Axis]) -> Need:
    """Return what is needed of an operand that stretches to ``result``."""
    lead = result.ndim - t.ndim
    shape, own = spread.shapes[result], spread.shapes[t]
    return need(
        t,
        [axes[k + lead] if n == shape[k + lead] else WHOLE for k, n in enumerate(own)],
    )


def _reshaped(spread: Spread, expr: Reshape, axes: Sequence[Axis]) -> list[Need]:
    if flat_iota(expr, spread.fusion) is not None:
        return []
    old = spread.shapes[expr.source]
    new = spread.shapes[expr.result]
    found: list[Along | None] = [None] * len(old)
    margins = [NONE] * len(old)
    groups = () if 0 in old else analyze_reshape(old, new).groups
    for left, right in groups:
        if not left or not right:
            continue
        along, margin = axes[right[0]]
        if along is None:
            continue
        if len(left) == len(right) == 1:
            margins[left[0]] = margin
            found[left[0]] = along
            continue
        times = over = 1
        for k in right[1:]:
            times *= new[k]
        for k in left[1:]:
            over *= old[k]
        found[left[0]] = along.scaled(times, over)
    return [(expr.source, tuple(found), tuple(margins))]
