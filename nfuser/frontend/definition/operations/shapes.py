# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` on axes and extents, and slices."""

# The operands of an operation are handles and numbers of many types.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.operators as scalar_op
import nfuser.compiler.ops as ops
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less, maximum, minimum, select
from nfuser.compiler.ops.mismatch import shape_text
from nfuser.errors import ArgumentError, ShapeError
from nfuser.frontend.definition.operations.stretched import is_stretched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.frontend.definition.draft import Draft


def _size(d: Draft, arg: Any, dim: int) -> sc.Scalar:
    """Return the extent along ``dim``, a scalar that may be an extent again."""
    x = d.tensor(arg)
    return x.shape[ops.normal_axis(dim, x.ndim)]


def _shape(d: Draft, arg: Any) -> list[sc.Scalar]:
    """Return all extents."""
    return list(d.tensor(arg).shape)


def along(d: Draft, arg: Any, dim: int, work: Callable[[Any, int], Any]) -> Any:
    """Do ``work`` along an axis; a tensor without axes is a line of one for it."""
    x = d.tensor(arg)
    place = ops.normal_axis(dim, max(x.ndim, 1))
    found = work(ops.at_least(d.builder, x, 1), place)
    return found if x.ndim else ops.squeeze(d.builder, found, 0)


def extents_of(d: Draft, shape: Any) -> list[sc.Scalar]:
    """Return the extents in a list of integers and scalars."""
    return [d.extent(item) for item in listed(shape, "a shape")]


def listed(items: Any, what: str) -> Sequence[Any]:
    """Return ``items`` if they are a list."""
    if not isinstance(items, list | tuple):
        message = f"{what} is a list, not {type(items).__name__}"
        raise ArgumentError(message)
    return items


def sizes_text(shape: Sequence[sc.Scalar]) -> str:
    """Render a shape for a message, unknown sizes as question marks."""
    return shape_text([n.value if isinstance(n, sc.Const) else None for n in shape])


def _permute(d: Draft, arg: Any, dims: Sequence[int]) -> Any:
    """Reorder the axes: axis k of the result is axis ``dims[k]``."""
    return ops.permute(d.builder, d.tensor(arg), tuple(dims))


def _squeeze(
    d: Draft, arg: Any, dims: int | Sequence[int], squeeze_expanded: bool = False
) -> Any:
    """Drop axes of size 1; with ``squeeze_expanded`` also those that were stretched."""
    x = d.tensor(arg)
    axes = tuple(dims) if isinstance(dims, list) else dims
    if squeeze_expanded:
        for k in ops.normal_axes(axes, x.ndim):
            if is_stretched(d, x, k):
                x = _first(d, x, k)
    return ops.squeeze(d.builder, x, axes)


def _first(d: Draft, x: TensorView, axis: int) -> TensorView:
    """Return the first element along an axis that is stretched, as one of size 1."""
    message = f"axis {axis} of shape {d.shape_text(x)} has no element to keep: {{}}"
    d.require_natural(x.shape[axis] - 1, message)
    starts, extents = [sc.const(0)] * x.ndim, list(x.shape)
    extents[axis] = sc.const(1)
    return ops.sliced(d.builder, x, starts, extents, (1,) * x.ndim)


def _broadcast(d: Draft, arg: Any, is_broadcast_dim: Sequence[bool]) -> Any:
    """Insert an axis of extent 1 at each True; the False are the axes of ``arg``."""
    x = d.tensor(arg)
    new = tuple(k for k, is_new in enumerate(is_broadcast_dim) if is_new)
    if len(is_broadcast_dim) - len(new) != x.ndim:
        message = (
            f"is_broadcast_dim has {len(is_broadcast_dim) - len(new)} False for the "
            f"{x.ndim} axes of the tensor"
        )
        raise ShapeError(message)
    return ops.expand_dims(d.builder, x, new)


def _broadcast_in_dim(
    d: Draft, arg: Any, shape: Any, broadcast_dims: Sequence[int]
) -> Any:
    """Stretch ``arg`` to ``shape``; its axes are ``broadcast_dims`` there."""
    x, target = d.tensor(arg), extents_of(d, shape)
    places = [ops.normal_axis(k, len(target)) for k in broadcast_dims]
    if len(places) != x.ndim or any(a >= b for a, b in pairwise(places)):
        message = (
            f"broadcast_dims must name {x.ndim} places of the result, in increasing "
            f"order; found {list(broadcast_dims)}"
        )
        raise ShapeError(message)
    new = tuple(k for k in range(len(target)) if k not in places)
    return ops.broadcast_to(d.builder, ops.expand_dims(d.builder, x, new), target)


def _expand(d: Draft, arg: Any, shape: Any) -> Any:
    """Stretch ``arg`` to ``shape``; -1 keeps the extent."""
    x = d.tensor(arg)
    if len(shape) < x.ndim:
        message = f"expand to {len(shape)} axes, but the tensor has {x.ndim}"
        raise ShapeError(message)
    added = len(shape) - x.ndim
    target: list[sc.Scalar] = []
    for k, item in enumerate(shape):
        if type(item) is int and item == -1:
            if k < added:
                message = f"-1 keeps an extent, but axis {k} of the result is new"
                raise ShapeError(message)
            target.append(x.shape[k - added])
        else:
            target.append(d.extent(item))
    return ops.broadcast_to(d.builder, x, target)


def _slice(
    d: Draft,
    arg: Any,
    start_indices: Sequence[Any],
    end_indices: Sequence[Any],
    strides: Sequence[int] | None = None,
    manual_normalization: bool = False,
) -> Any:
    """Take ``[start:end:stride]`` along each axis, as Python clamps and counts.

    With ``manual_normalization``, ``0 <= start <= end <= extent`` is promised.
    """
    x = d.tensor(arg)
    steps = (1,) * x.ndim if strides is None else tuple(strides)
    if {len(start_indices), len(end_indices), len(steps)} != {x.ndim}:
        message = f"slice takes a start, an end and a stride for each of {x.ndim} axes"
        raise ShapeError(message)
    if any(type(step) is not int or step < 1 for step in steps):
        message = f"strides of a slice are positive integers, not {list(steps)}"
        raise ShapeError(message)
    starts: list[sc.Scalar] = []
    extents: list[sc.Scalar] = []
    for k, step in enumerate(steps):
        bounds = [start_indices[k], end_indices[k]]
        start, span = taken_range(d, x, k, bounds, exact=manual_normalization)
        starts.append(start)
        extents.append((span + (step - 1)) // step)
    return ops.sliced(d.builder, x, starts, extents, steps)


def taken_range(
    d: Draft, x: TensorView, axis: int, bounds: Sequence[Any], *, exact: bool = False
) -> tuple[sc.Scalar, sc.Scalar]:
    """Return where ``bounds`` along an axis begin, and how many elements they hold."""
    extent = x.shape[axis]
    first, last = (d.integer(item, "a bound of a slice") for item in bounds)
    if exact:
        text = f"start {bounds[0]} and end {bounds[1]} do not lie in order within axis "
        for gap in (first, last - first, extent - last):
            d.require_natural(gap, f"{text}{axis} of shape {d.shape_text(x)}, by {{}}")
        return first, last - first
    start, end = clamped(first, extent), clamped(last, extent)
    if start is sc.const(0) or is_part(start, end):
        return start, end - start
    return start, maximum(end, start) - start


def clamped(bound: sc.Scalar, extent: sc.Scalar) -> sc.Scalar:
    """Return a bound of a slice, counted from the end if negative."""
    if is_part(bound, extent):
        return bound
    if sc.is_natural(bound):
        return minimum(bound, extent)
    behind = maximum(bound + extent, 0)
    if isinstance(bound, sc.Const):
        return behind
    ahead = minimum(bound, extent)
    return select(less(bound, 0), behind, ahead)


def is_part(x: sc.Scalar, whole: sc.Scalar) -> bool:
    """Tell whether ``0 <= x <= whole`` can be seen: x is a part, or the whole."""
    if isinstance(x, sc.Binary) and x.op is scalar_op.Op.FLOORDIV:
        return x.lhs is whole and isinstance(x.rhs, sc.Const) and sc.is_natural(whole)
    return x is whole and sc.is_natural(whole)


def _broadcast_tensors(d: Draft, tensors: Sequence[Any]) -> Any:
    """Stretch all tensors to the shape in which they meet."""
    held = [d.tensor(item) for item in tensors]
    if not held:
        message = "expected at least one tensor, found none"
        raise ArgumentError(message)
    shape = d.builder.broadcast(*held, name="broadcast_tensors")
    return [ops.broadcast_to(d.builder, x, shape) for x in held]


def _matrix_transpose(d: Draft, arg: Any) -> Any:
    """Exchange the last two axes."""
    return ops.swapaxes(d.builder, d.tensor(arg), -2, -1)


def _at_least(rank: int) -> Any:
    def operation(d: Draft, arg: Any) -> Any:
        return ops.at_least(d.builder, d.tensor(arg), rank)

    operation.__doc__ = f"Add axes until there are {rank}, where NumPy does."
    return operation


def _stride_order(d: Draft, arg: Any, stride_order: Sequence[int]) -> Any:
    """Lay the elements out in memory: axis k is the ``stride_order[k]``-th fastest."""
    x = d.tensor(arg)
    if sorted(stride_order) != list(range(x.ndim)):
        message = (
            f"pass the ranks of all axes, 0 the fastest: expected the numbers below "
            f"{x.ndim}, each once, found {list(stride_order)}"
        )
        raise ShapeError(message)
    fastest = sorted(range(x.ndim), key=lambda axis: stride_order[axis])
    return ops.stride_order(d.builder, x, tuple(fastest))


SHAPES: dict[str, Callable[..., Any]] = {
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "atleast_3d": _at_least(3),
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "broadcast_tensors": _broadcast_tensors,
    "expand": _expand,
    "matrix_transpose": _matrix_transpose,
    "permute": _permute,
    "shape": _shape,
    "size": _size,
    "slice": _slice,
    "squeeze": _squeeze,
    "stride_order": _stride_order,
}
