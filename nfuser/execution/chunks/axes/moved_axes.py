# SPDX-License-Identifier: Apache-2.0
"""How what moves elements lies in chunks, where that needs no exchange of chunks."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from nfuser.compiler.domains.reshape import analyze_reshape
from nfuser.compiler.ir.expr import (
    Concatenate,
    Expr,
    Matmul,
    Pad,
    Remap,
    Reshape,
    Slice,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.execution.chunks.axes.chunkings import is_cut, scaled, shifted
from nfuser.execution.chunks.axes.patterns import flat_iota, remapped_by_place

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.known import Axes, Known


def moved_axes(known: Known, expr: Expr) -> Axes | None:
    """Return the axes of what ``expr`` gives; None where chunks are exchanged."""
    match expr:
        case Slice():
            return _sliced(known, expr)
        case Pad():
            return _padded(known, expr)
        case Concatenate():
            return _joined(known, expr)
        case Remap():
            return _remapped(known, expr)
        case Matmul(lhs, rhs):
            return _multiplied(known, lhs, rhs)
        case Reshape():
            return _reshaped(known, expr)
        case _:
            return None


def _sliced(known: Known, expr: Slice) -> Axes | None:
    source = expr.source
    starts = scalar_walk.evaluate_all(expr.starts, known.values)
    found: Axes = []
    for k, (start, n) in enumerate(zip(starts, known.shapes[expr.result], strict=True)):
        chunks, is_flexible = known.axes[source][k]
        step = expr.steps[k]
        if start == 0 and step == 1 and n == known.shapes[source][k]:
            found.append((chunks, is_flexible))
        elif is_cut(chunks) and step != 1:
            return None
        elif chunks is not None and is_cut(chunks) and not is_flexible:
            known.keep(source)
            found.append((shifted(chunks, start, n), True))
        elif is_flexible and step == 1:
            moved = None if chunks is None else shifted(chunks, start, n)
            found.append((moved, True))
        else:
            found.append(((n,), False))
    return found


def _padded(known: Known, expr: Pad) -> Axes | None:
    source = expr.source
    lefts = scalar_walk.evaluate_all(expr.lefts, known.values)
    found: Axes = []
    for k, (left, n) in enumerate(zip(lefts, known.shapes[expr.result], strict=True)):
        if left == 0 and n == known.shapes[source][k]:
            found.append(known.axes[source][k])
        elif is_cut(known.axes[source][k][0]):
            return None
        else:
            found.append(((n,), False))
    return found


def _joined(known: Known, expr: Concatenate) -> Axes | None:
    shape, axis = known.shapes[expr.result], expr.axis
    if any(is_cut(known.axes[t][axis][0]) for t in expr.parts):
        return None
    return [
        ((n,), False) if k == axis else known.join(n, [(t, k) for t in expr.parts])
        for k, n in enumerate(shape)
    ]


def _remapped(known: Known, expr: Remap) -> Axes | None:
    found: Axes = []
    own = remapped_by_place(expr)
    if len(own) != expr.result.ndim:
        if any(is_cut(c) for c, _ in known.axes[expr.source]):
            for k in range(expr.source.ndim):
                known.whole(expr, expr.source, k)
        return [((n,), False) for n in known.shapes[expr.result]]
    for k, n in enumerate(known.shapes[expr.result]):
        if own[k] and n == known.shapes[expr.source][k]:
            found.append(known.axes[expr.source][k])
        elif is_cut(known.axes[expr.source][k][0]):
            return None
        else:
            found.append(((n,), False))
    return found


def _multiplied(known: Known, lhs: TensorView, rhs: TensorView) -> Axes | None:
    cut = any(is_cut(c) for c, _ in known.axes[rhs])
    if cut or lhs.ndim < 2 or rhs.ndim > 2 or is_cut(known.axes[lhs][-1][0]):
        if any(is_cut(c) for t in (lhs, rhs) for c, _ in known.axes[t]):
            return None
        return [((n,), False) for n in _product_shape(known, lhs, rhs)]
    right = [((n,), False) for n in known.shapes[rhs][1:]]
    return [*known.axes[lhs][:-1], *right]


def _product_shape(known: Known, lhs: TensorView, rhs: TensorView) -> tuple[int, ...]:
    found = next(
        e.result
        for e in known.fusion.exprs
        if isinstance(e, Matmul) and e.lhs is lhs and e.rhs is rhs
    )
    return known.shapes[found]


def _reshaped(known: Known, expr: Reshape) -> Axes | None:
    if flat_iota(expr, known.fusion) is not None:
        return [(None, True) for _ in known.shapes[expr.result]]
    old, new = known.shapes[expr.source], known.shapes[expr.result]
    axes = known.axes[expr.source]
    found: Axes = [((n,), n == 1) for n in new]
    if 0 in old:
        return None if any(is_cut(c) for c, _ in axes) else found
    for left, right in analyze_reshape(old, new).groups:
        if not left or not right:
            continue
        if len(left) == len(right) == 1:
            found[right[0]] = axes[left[0]]
            continue
        if any(is_cut(axes[k][0]) for k in left[1:]):
            return None
        chunks = axes[left[0]][0]
        if is_cut(chunks):
            assert chunks is not None
            times = prod(old[k] for k in left[1:])
            over = prod(new[k] for k in right[1:])
            moved = scaled(chunks, times, over)
            if moved is None:
                return None
            found[right[0]] = moved, False
    return found
