# SPDX-License-Identifier: Apache-2.0
"""Verbs that put elements elsewhere: reshape, pad, concatenate, roll, tile."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.ir.expr import Concatenate, Pad, Remap, Reshape
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less, product
from nfuser.compiler.ir.scalars.scalar import Const
from nfuser.compiler.ops.elementwise.arithmetic import copy
from nfuser.compiler.ops.mismatch import no_join, no_pad, no_reshape
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand


def reshape(b: Builder, x: TensorView, shape: Sequence[Scalar | int]) -> TensorView:
    """Return the elements of ``x`` in C order as ``shape``; one size may be -1."""
    sizes = [sc.as_scalar(s) for s in shape]
    open_ones = [k for k, s in enumerate(sizes) if _is_open(b, s)]
    if len(open_ones) > 1:
        message = "reshape: can only specify one unknown dimension: one -1, not more"
        raise ShapeError(message)
    inferred = open_ones[0] if open_ones else None
    if inferred is not None:
        rest = product(s for k, s in enumerate(sizes) if k != inferred)
        total = product(x.shape)
        if b.today(rest) == 0:
            sizes[inferred] = sc.const(0)
        else:
            sizes[inferred] = total if rest is sc.const(1) else total // rest
    given, wanted = _known(b, x.shape), _known(b, sizes)
    if given is not None and wanted is not None:
        problem = no_reshape(given, wanted, inferred)
        if problem:
            raise ShapeError(problem)
    if x.ndim == len(sizes) and all(
        a is s for a, s in zip(x.shape, sizes, strict=True)
    ):
        return x
    result = b.new(sizes, x.dtype)
    b.emit(Reshape(x, result, None, inferred))
    return result


def _is_open(b: Builder, x: Scalar) -> bool:
    """Tell whether a size is -1; as in NumPy, any negative number says so."""
    if isinstance(x, Const):
        return x.value < 0
    return not sc.is_natural(x) and bool(b.ask(less(x, 0)))


def _known(b: Builder, shape: Sequence[Scalar]) -> list[int] | None:
    today = [b.today(s) for s in shape]
    found = [n for n in today if n is not None]
    return found if len(found) == len(today) else None


def merge_axes(b: Builder, x: TensorView, first: int, last: int) -> TensorView:
    """Join the axes ``first`` to ``last`` into one."""
    merged = product(x.shape[first : last + 1])
    return reshape(b, x, (*x.shape[:first], merged, *x.shape[last + 1 :]))


def pad(
    b: Builder,
    x: TensorView,
    widths: Sequence[tuple[Scalar | int, Scalar | int]],
    fill: Operand = 0,
) -> TensorView:
    """Add ``widths`` elements before and after each axis; negative ones drop some."""
    if len(widths) != x.ndim:
        message = f"pad: {len(widths)} widths for an array with {x.ndim} axes"
        raise ArgumentError(message)
    pairs = [(sc.as_scalar(left), sc.as_scalar(right)) for left, right in widths]
    if all(w is sc.const(0) for pair in pairs for w in pair):
        return copy(b, x, "A")
    shape = [n + left + right for n, (left, right) in zip(x.shape, pairs, strict=True)]
    given, wanted = _known(b, x.shape), _known(b, shape)
    if given is not None and wanted is not None and (gap := no_pad(given, wanted)):
        raise ShapeError(gap)
    result = b.new(shape, x.dtype)
    lefts = tuple(left for left, _ in pairs)
    b.emit(Pad(x, b.convert(fill, x.dtype), result, lefts))
    return result


def concatenate(
    b: Builder, parts: Sequence[TensorView], axis: int, dtype: DType | None = None
) -> TensorView:
    """Return ``parts`` one after another along ``axis``."""
    if not parts:
        message = "concatenate: need at least one array to concatenate"
        raise ShapeError(message)
    ranks = {t.ndim for t in parts}
    if ranks == {0}:
        message = "concatenate: zero-dimensional arrays cannot be concatenated; stack"
        raise ShapeError(message)
    if len(ranks) > 1:
        listed = ", ".join(str(t.ndim) for t in parts)
        message = (
            "concatenate: all the input array dimensions must match exactly; "
            f"the arrays have {listed} axes"
        )
        raise ShapeError(message)
    axis = views.normal_axis(axis, parts[0].ndim)
    shapes = [_known(b, t.shape) for t in parts]
    known = [s for s in shapes if s is not None]
    if len(known) == len(shapes) and (gap := no_join(known, axis)):
        raise ShapeError(gap)
    dtype = dtype or b.promote(*parts)
    same = [b.cast(t, dtype) for t in parts]
    if len(same) == 1:
        return same[0]
    shape = list(parts[0].shape)
    shape[axis] = sum((t.shape[axis] for t in parts[1:]), parts[0].shape[axis])
    result = b.new(shape, dtype)
    b.emit(Concatenate(tuple(same), result, axis))
    return result


def stack(
    b: Builder, parts: Sequence[TensorView], axis: int = 0, dtype: DType | None = None
) -> TensorView:
    """Return ``parts`` side by side along a new axis."""
    if not parts:
        message = "stack: need at least one array to stack"
        raise ShapeError(message)
    if len({t.ndim for t in parts}) > 1:
        message = "stack: all input arrays must have the same shape"
        raise ShapeError(message)
    place = views.normal_axis(axis, parts[0].ndim + 1)
    shapes = [_known(b, t.shape) for t in parts]
    if None not in shapes and len(set(map(tuple, filter(None, shapes)))) > 1:
        listed = ", ".join(b.shape_text(t.shape) for t in parts)
        message = f"stack: all input arrays must have the same shape, found {listed}"
        raise ShapeError(message)
    wide = [views.expand_dims(b, t, place) for t in parts]
    return concatenate(b, wide, place, dtype)


def remap(
    b: Builder,
    x: TensorView,
    shape: Sequence[Scalar],
    index: Mapping[int, Scalar],
) -> TensorView:
    """Return an array of ``shape``; along the axes in ``index``, read ``x`` there.

    The scalars are written in ``scalar.place(axis, extent)``.
    """
    result = b.new(shape, x.dtype)
    whole = (index.get(k, scalar_symbols.place(k, shape[k])) for k in range(x.ndim))
    b.emit(Remap(x, result, tuple(whole)))
    return result


def roll(b: Builder, x: TensorView, shift: Scalar | int, axis: int) -> TensorView:
    """Move elements ``shift`` places along ``axis``; what falls off comes in again."""
    axis = views.normal_axis(axis, x.ndim)
    extent = x.shape[axis]
    back, index = _rolled(sc.as_scalar(shift), axis, extent)
    made = remap(b, x, x.shape, {axis: index})

    def parts() -> TensorView:
        last = views.window(b, x, axis, extent - back, back)
        return concatenate(b, [last, views.window(b, x, axis, 0, extent - back)], axis)

    b.meant[made] = parts
    return made


@lru_cache(256)
def _rolled(shift: Scalar, axis: int, extent: Scalar) -> tuple[Scalar, Scalar]:
    """Return how far back what was ``shift`` places on is read, and where that is."""
    back, place = shift % extent, scalar_symbols.place(axis, extent)
    return back, place - back + extent * less(place, back)


def tile(b: Builder, x: TensorView, counts: Sequence[Scalar | int]) -> TensorView:
    """Return ``x`` laid side by side ``counts`` times along its last axes."""
    missing = len(counts) - x.ndim
    if missing > 0:
        x = views.expand_dims(b, x, tuple(range(missing)))
    every = [sc.const(1)] * -missing + [sc.as_scalar(c) for c in counts]
    _check_counts(b, "tile", every)
    shape = [n * c for n, c in zip(x.shape, every, strict=True)]
    index = {
        k: scalar_symbols.place(k, shape[k]) % n
        for k, (n, c) in enumerate(zip(x.shape, every, strict=True))
        if c is not sc.const(1)
    }
    if not index:
        return x
    made = remap(b, x, shape, index)
    b.meant[made] = lambda: _copies(b, x, {k: (every[k], 0) for k in index})
    # NumPy gives C order, whatever the order of x.
    return copy(b, made, "C")


def _copies(
    b: Builder, x: TensorView, counts: Mapping[int, tuple[Scalar, int]]
) -> TensorView:
    """Return ``x`` stretched along new axes, which are merged with those it has.

    ``counts`` has, for an axis, how often, and 1 where the new axis stands behind it.
    """
    order = [p for k in range(x.ndim) for p in _beside(k, counts.get(k))]
    places = [place for place, (_, count) in enumerate(order) if count is not None]
    wide = views.expand_dims(b, x, places)
    shape = [x.shape[k] if count is None else count for k, count in order]
    stretched = views.broadcast_to(b, wide, shape)
    whole = [n * counts[k][0] if k in counts else n for k, n in enumerate(x.shape)]
    result = b.new(whole, x.dtype)
    b.emit(Reshape(stretched, result))
    return result


def _beside(
    axis: int, count: tuple[Scalar, int] | None
) -> list[tuple[int, Scalar | None]]:
    if count is None:
        return [(axis, None)]
    new, own = (axis, count[0]), (axis, None)
    return [own, new] if count[1] else [new, own]


def repeat(b: Builder, x: TensorView, count: Scalar | int, axis: int) -> TensorView:
    """Return each element ``count`` times along ``axis``."""
    axis = views.normal_axis(axis, x.ndim)
    times = sc.as_scalar(count)
    _check_counts(b, "repeat", [times])
    shape = list(x.shape)
    shape[axis] = shape[axis] * times
    made = remap(b, x, shape, {axis: scalar_symbols.place(axis, shape[axis]) // times})
    b.meant[made] = lambda: _copies(b, x, {axis: (times, 1)})
    return copy(b, made, "C")


def _check_counts(b: Builder, name: str, counts: Sequence[Scalar]) -> None:
    for count in counts:
        if not sc.is_natural(count) and b.ask(less(count, 0)):
            message = (
                f"{name}: negative dimensions are not allowed: count {b.today(count)}; "
                "expected 0 or more"
            )
            raise ShapeError(message)
