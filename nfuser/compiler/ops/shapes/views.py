# SPDX-License-Identifier: Apache-2.0
"""Verbs that rearrange axes and change no element."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, TypeAlias

import nfuser.compiler.ir.scalars.functions as scalar_functions
from nfuser.compiler.ir.expr import Expand, ExpandDims, Permute, Slice, Squeeze
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Const
from nfuser.compiler.ops.mismatch import negative_sizes, no_stretch
from nfuser.errors import ArgumentError, AxisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder

Bound: TypeAlias = "Scalar | int | None"


def normal_axis(axis: int, ndim: int) -> int:
    """Return ``axis`` counted from the front."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        message = f"an axis is an integer, not {type(axis).__name__}"
        raise ArgumentError(message)
    number = axis.__index__()
    if not -ndim <= number < ndim:
        message = f"axis {number} is out of bounds for array of dimension {ndim}"
        raise AxisError(message)
    return number % ndim


def normal_axes(axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Return ``axes`` counted from the front, in order; None means all."""
    if axes is None:
        return tuple(range(ndim))
    listed: Sequence[int] = _listed(axes)
    found = [normal_axis(a, ndim) for a in listed]
    if len(set(found)) != len(found):
        message = "duplicate value in 'axis'"
        raise ShapeError(message)
    return tuple(sorted(found))


def check_sizes(b: Builder, name: str, shape: Sequence[Scalar]) -> None:
    """Refuse sizes that are negative today; ``misfits`` looks in later calls."""
    today = [b.today(s) for s in shape]
    if problem := negative_sizes(name, [n for n in today if n is not None]):
        raise ShapeError(problem)


def broadcast_to(
    b: Builder, x: TensorView, shape: Sequence[Scalar | int]
) -> TensorView:
    """Return ``x`` stretched to ``shape``."""
    target = [sc.as_scalar(s) for s in shape]
    check_sizes(b, "broadcast_to", target)
    given = x.shape
    fits = len(target) >= len(given)
    for extent, wanted in zip(reversed(given), reversed(target), strict=False):
        now, then = b.today(extent), b.today(wanted)
        fits &= now is None or then is None or now in (1, then)
    if not fits:
        shapes = [[b.today(s) for s in shape] for shape in (given, target)]
        raise ShapeError(no_stretch("broadcast_to", *shapes))
    same = len(given) == len(target)
    if same and all(a is t for a, t in zip(given, target, strict=True)):
        return x
    return _expanded(b, x, target)


def _expanded(b: Builder, x: TensorView, shape: Sequence[Scalar]) -> TensorView:
    result = b.new(shape, x.dtype)
    b.emit(Expand(x, result))
    b.expanded[result] = x
    return result


def sliced(
    b: Builder,
    x: TensorView,
    starts: Sequence[Scalar],
    shape: Sequence[Scalar],
    steps: Sequence[int],
) -> TensorView:
    """Return every ``steps``-th element from ``starts`` on; they are known to be there.

    An axis that was stretched is so in the part: no elements are taken along it.
    """
    source = b.expanded.get(x)
    part = None if source is None else _part(b, source, x, (starts, shape, steps))
    if part is not None:
        same = len(part.shape) == len(shape) and all(map(is_, part.shape, shape))
        return part if same else _expanded(b, part, shape)
    result = b.new(shape, x.dtype)
    b.emit(Slice(x, result, tuple(starts), tuple(steps)))
    return result


def _part(
    b: Builder,
    source: TensorView,
    x: TensorView,
    taken: tuple[Sequence[Scalar], Sequence[Scalar], Sequence[int]],
) -> TensorView | None:
    """Return the part of ``source`` that is stretched to the part of ``x``.

    None where an axis may be a stretched one in some calls, and not in others.
    """
    zero, one = sc.const(0), sc.const(1)
    own: list[tuple[Scalar, Scalar, int]] = [(zero, n, 1) for n in source.shape]
    lead = x.ndim - source.ndim
    for k, (start, extent, step) in enumerate(zip(*taken, strict=True)):
        is_whole = start is zero and extent is x.shape[k] and step == 1
        if is_whole or k < lead or source.shape[k - lead] is one:
            continue
        if source.shape[k - lead] is not x.shape[k]:
            return None
        own[k - lead] = start, extent, step
    if all(start is zero and step == 1 for start, _, step in own) and all(
        extent is e for (_, extent, _), e in zip(own, source.shape, strict=True)
    ):
        return source
    starts, shape, steps = zip(*own, strict=True)
    return sliced(b, source, starts, shape, steps)


def expand_dims(b: Builder, x: TensorView, axes: int | Sequence[int]) -> TensorView:
    """Insert axes of extent 1 at places of the result."""
    listed = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    places = normal_axes(listed, x.ndim + len(listed))  # pyright: ignore[reportArgumentType]
    if not places:
        return x
    shape: list[Scalar] = list(x.shape)
    for place in places:
        shape.insert(place, sc.const(1))
    result = b.new(shape, x.dtype)
    b.emit(ExpandDims(x, result, places))
    return result


def squeeze(
    b: Builder, x: TensorView, axes: int | Sequence[int] | None = None
) -> TensorView:
    """Drop axes of extent 1: all that are so today, or those named."""
    if axes is None:
        places = tuple(
            k
            for k, extent in enumerate(x.shape)
            if b.ask(scalar_functions.equal(extent, 1))
        )
    else:
        places = normal_axes(axes, x.ndim)
        for place in places:
            if not b.ask(scalar_functions.equal(x.shape[place], 1), usual=1):
                message = (
                    "cannot select an axis to squeeze out which has size not equal to "
                    f"one: axis {place} of shape {b.shape_text(x.shape)}"
                )
                raise ShapeError(message)
    return drop(b, x, places)


def drop(b: Builder, x: TensorView, places: tuple[int, ...]) -> TensorView:
    """Drop axes that are known to have extent 1."""
    if not places:
        return x
    kept = [extent for k, extent in enumerate(x.shape) if k not in places]
    result = b.new(kept, x.dtype)
    b.emit(Squeeze(x, result, places))
    return result


def permute(
    b: Builder, x: TensorView, order: Sequence[int] | None = None
) -> TensorView:
    """Reorder the axes; None reverses them."""
    if order is None:
        order = tuple(reversed(range(x.ndim)))
    if len(order) != x.ndim:
        message = f"axes don't match array: {len(order)} for {x.ndim} dimensions"
        raise ShapeError(message)
    places = tuple(normal_axis(a, x.ndim) for a in order)
    if len(set(places)) != len(places):
        message = "repeated axis in transpose"
        raise ShapeError(message)
    if places == tuple(range(x.ndim)):
        return x
    result = b.new([x.shape[k] for k in places], x.dtype)
    b.emit(Permute(x, result, places))
    return result


def moveaxis(
    b: Builder, x: TensorView, source: int | Sequence[int], target: int | Sequence[int]
) -> TensorView:
    """Move axes to new places, the others staying in order."""
    origins = [normal_axis(a, x.ndim) for a in _listed(source)]
    places = [normal_axis(a, x.ndim) for a in _listed(target)]
    if len(origins) != len(places):
        message = (
            "`source` and `destination` arguments must have the same number of elements"
        )
        raise ShapeError(message)
    order = [k for k in range(x.ndim) if k not in origins]
    for place, origin in sorted(zip(places, origins, strict=True)):
        order.insert(place, origin)
    return permute(b, x, order)


def _listed(axes: int | Sequence[int]) -> Sequence[int]:
    return axes if isinstance(axes, (tuple, list)) else (axes,)  # pyright: ignore[reportReturnType]


def swapaxes(b: Builder, x: TensorView, first: int, second: int) -> TensorView:
    """Exchange two axes."""
    order = list(range(x.ndim))
    i, j = normal_axis(first, x.ndim), normal_axis(second, x.ndim)
    order[i], order[j] = order[j], order[i]
    return permute(b, x, order)


def flip(
    b: Builder, x: TensorView, axes: int | Sequence[int] | None = None
) -> TensorView:
    """Reverse the order along ``axes``, all of them by default."""
    places = normal_axes(axes, x.ndim)
    bounds = dict.fromkeys(places, (None, None, -1))
    return take_slices(b, x, bounds)


def take_slices(
    b: Builder, x: TensorView, bounds: Mapping[int, tuple[Bound, Bound, int]]
) -> TensorView:
    """Slice the axes in ``bounds`` by (start, stop, step), clamped as Python does."""
    starts: list[Scalar] = [sc.const(0)] * x.ndim
    steps = [1] * x.ndim
    shape = list(x.shape)
    for place, (start, stop, step) in bounds.items():
        if start is None and stop is None and step == 1:
            continue
        starts[place], shape[place] = _clamped(b, x.shape[place], start, stop, step)
        steps[place] = step
    whole = all(s is sc.const(0) for s in starts) and set(steps) <= {1}
    if whole and all(a is e for a, e in zip(shape, x.shape, strict=True)):
        return x
    return sliced(b, x, starts, shape, steps)


def _clamped(
    b: Builder, extent: Scalar, start: Bound, stop: Bound, step: int
) -> tuple[Scalar, Scalar]:
    """Return the first index and the number of elements.

    Which side a bound lies on is asked, not written into the extent: the program stays
    short, and sizes that clamp otherwise trace again.
    """
    if step == 0:
        message = "slice step cannot be zero"
        raise ShapeError(message)
    if step < 0 and start is None and stop is None:
        if step == -1:
            return extent - 1, extent
        return extent - 1, (extent - step - 1) // -step
    low = sc.const(0) if step > 0 else sc.const(-1)
    high = extent if step > 0 else extent - 1
    first = _bound(b, start, extent, low, high, low if step > 0 else high)
    last = _bound(b, stop, extent, low, high, high if step > 0 else low)
    span = last - first if step > 0 else first - last
    if b.ask(scalar_functions.less(span, 1)):
        return sc.const(0), sc.const(0)
    width = abs(step)
    return first, (span + (width - 1)) // width


def _bound(
    b: Builder, x: Bound, extent: Scalar, low: Scalar, high: Scalar, default: Scalar
) -> Scalar:
    if x is None:
        return default
    bound = sc.as_scalar(x)
    if high is extent and _is_part(bound, extent):
        return bound
    if not sc.is_natural(bound) and b.ask(scalar_functions.less(bound, 0)):
        bound = bound + extent
        return low if b.ask(scalar_functions.less(bound, low)) else bound
    return high if b.ask(scalar_functions.less(high, bound)) else bound


def _is_part(x: Scalar, whole: Scalar) -> bool:
    """Tell whether ``0 <= x <= whole`` can be seen: x is the whole over a constant."""
    match x:
        case Binary(Op.FLOORDIV, lhs, Const()):
            return lhs is whole and sc.is_natural(whole)
        case _:
            return False


def take_index(
    b: Builder, x: TensorView, place: int, index: Scalar | int
) -> TensorView:
    """Take element ``index`` along axis ``place``, which is gone afterwards."""
    extent, start = x.shape[place], sc.as_scalar(index)
    if b.ask(scalar_functions.less(start, 0)):
        start = start + extent
    if b.ask(scalar_functions.less(start, 0)) or not b.ask(
        scalar_functions.less(start, extent), usual=1
    ):
        message = (
            f"index {b.today(index)} is out of bounds for axis {place} with size "
            f"{b.today(extent)}"
        )
        raise AxisError(message)
    starts: list[Scalar] = [sc.const(0)] * x.ndim
    starts[place] = start
    shape = list(x.shape)
    shape[place] = sc.const(1)
    return drop(b, sliced(b, x, starts, shape, (1,) * x.ndim), (place,))


def window(
    b: Builder, x: TensorView, axis: int, start: Scalar | int, extent: Scalar | int
) -> TensorView:
    """Return ``extent`` elements from ``start`` on, which are known to be there."""
    starts: list[Scalar] = [sc.const(0)] * x.ndim
    starts[axis] = sc.as_scalar(start)
    shape = list(x.shape)
    shape[axis] = sc.as_scalar(extent)
    return sliced(b, x, starts, shape, (1,) * x.ndim)


def at_least(b: Builder, x: TensorView, rank: int) -> TensorView:
    """Return ``x`` with at least ``rank`` axes, as NumPy's ``atleast_3d`` adds them."""
    missing = rank - x.ndim
    if missing <= 0:
        return x
    if rank == 3 and x.ndim:
        return expand_dims(b, x, 2 if missing == 1 else (0, 2))
    return expand_dims(b, x, tuple(range(missing)))
