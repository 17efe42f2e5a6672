# SPDX-License-Identifier: Apache-2.0
"""The concrete forms of what rearranges elements, and of what transposes that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.expr import (
    Assign,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    Pad,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Slice,
    Squeeze,
    SumTo,
    Take,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ir.tensor import IterDomain, IterType, TensorView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.reshape import ReshapePattern
    from nfuser.compiler.ir.scalars.scalar import Scalar

Made: TypeAlias = tuple[list[Expr], tuple[TensorView, ...]]


def concrete(shape: Sequence[Scalar], like: TensorView) -> TensorView:
    """Return a tensor of known axes, of the dtype and at the line of ``like``."""
    one = sc.const(1)
    axes = tuple(
        IterDomain(x, IterType.BROADCAST if x is one else IterType.ITERATION)
        for x in shape
    )
    return TensorView(axes, like.dtype, like.source)


def decomposed(expr: Reshape, pattern: ReshapePattern, shape: Sequence[Scalar]) -> Made:
    """Return a reshape to ``shape`` as squeeze, merges and splits, and broadcast."""
    source, shape = expr.source, _kept_extents(expr.source, pattern, shape)
    result = concrete(shape, expr.result)
    if sc.const(0) in shape:
        return _nothing(result)
    made: list[Expr] = []
    if pattern.squeezed:
        kept = [x for k, x in enumerate(source.shape) if k not in pattern.squeezed]
        squeezed = concrete(kept, result)
        made.append(Squeeze(source, squeezed, pattern.squeezed))
        source = squeezed
    if any(len(old) > 1 or len(new) > 1 for old, new in pattern.groups):
        wide = [x for k, x in enumerate(shape) if k not in pattern.broadcast]
        merged = concrete(wide, result)
        groups = _renumbered(pattern)
        made.append(Reshape(source, merged, groups, expr.inferred))
        source = merged
    if pattern.broadcast:
        made.append(ExpandDims(source, result, pattern.broadcast))
        source = result
    return made, (source,)


def summed(expr: SumTo, shape: Sequence[Scalar]) -> Made:
    """Return the sum over the axes that stretch ``shape`` to that of the source."""
    source, one = expr.source, sc.const(1)
    lead = source.ndim - len(shape)
    wanted = [*[one] * lead, *shape]
    axes = tuple(
        k
        for k, extent in enumerate(wanted)
        if extent is one and source.shape[k] is not one
    )
    made: list[Expr] = []
    if axes:
        kept = [x for k, x in enumerate(source.shape) if k not in axes]
        folded = concrete(kept, expr.result)
        made.append(Reduce(ReduceOp.SUM, source, (folded,), axes, is_derived=True))
        source = folded
    gone = lead - sum(k < lead for k in axes)
    if gone:
        dropped = concrete(source.shape[gone:], expr.result)
        made.append(Squeeze(source, dropped, tuple(range(gone))))
        source = dropped
    if places := tuple(k - lead for k in axes if k >= lead):
        rest = iter(source.shape)
        full = [one if k in places else next(rest) for k in range(len(shape))]
        result = concrete(full, expr.result)
        made.append(ExpandDims(source, result, places))
        source = result
    return made, (source,)


def _kept_extents(
    source: TensorView, pattern: ReshapePattern, shape: Sequence[Scalar]
) -> list[Scalar]:
    """Return ``shape`` with the source's own scalar for each axis that stays one.

    The two are equal in every call of this pattern, but not always the same scalar:
    the result's may be a literal, or a quotient.
    """
    kept = list(shape)
    for old, new in pattern.groups:
        if len(old) == len(new) == 1:
            kept[new[0]] = source.shape[old[0]]
    return kept


def _renumbered(
    pattern: ReshapePattern,
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """Return the groups, axes counted without those of extent 1."""
    old = [k for left, _ in pattern.groups for k in left]
    new = [k for _, right in pattern.groups for k in right]
    return tuple(
        (tuple(map(old.index, left)), tuple(map(new.index, right)))
        for left, right in pattern.groups
    )


def _nothing(result: TensorView) -> Made:
    """Return an empty tensor that reads no other.

    A reduction of it runs all the same, and would read where its loops stand at 0.
    """
    nothing = concrete((), result)
    return [Constant(0, nothing), Expand(nothing, result)], (result,)


_MOVING = (Slice, Pad, Concatenate, Remap, Take)


def without_trivial_resize(expr: Expr) -> Made:
    """Forward the source of what resizes nothing; leave out what is never read."""
    zero = sc.const(0)
    if isinstance(expr, _MOVING) and zero in expr.result.shape:
        return _nothing(expr.result)
    match expr:
        case Expand(source, result) if source.shape == result.shape:
            return [], (source,)
        case Assign(source, value) if zero in value.shape:
            return [], (source,)
        case Slice(source, result, starts, steps):
            same = source.shape == result.shape and set(steps) <= {1}
            if same and all(s is zero for s in starts):
                return [], (source,)
        case Pad(source, _, result, lefts):
            if source.shape == result.shape and all(s is zero for s in lefts):
                return [], (source,)
            if _is_fill(expr):
                return [Expand(expr.fill, result)], (result,)
        case Concatenate(parts, result, axis):
            full = [t for t in parts if t.shape[axis] is not zero] or [parts[0]]
            if len(full) == 1 and full[0].shape == result.shape:
                return [], (full[0],)
            if len(full) < len(parts):
                expr = replace(expr, parts=tuple(full))
        case _:
            pass
    return [expr], (getattr(expr, "result"),)  # noqa: B009


def _is_fill(expr: Pad) -> bool:
    """Tell whether it shows that no element comes of the source."""
    axes = zip(expr.source.shape, expr.result.shape, expr.lefts, strict=True)
    gaps = (x for old, new, left in axes for x in (old, new - left, left + old))
    return any(isinstance(x, Const) and x.value <= 0 for x in gaps)
