# SPDX-License-Identifier: Apache-2.0
"""Operations of ``fd.ops`` on axes and extents, and those that make arrays."""

# The operands of an operation are handles and numbers of many types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import nfuser.ops as ops
from nfuser.dtypes import DType
from nfuser.errors import ArgumentError, AxisError, ShapeError, UnsupportedError
from nfuser.frontend.definition_types import DataType, dtype_or_none
from nfuser.ir import scalar as sc
from nfuser.ir.expr import Slice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.frontend.definition_draft import Draft
    from nfuser.ir.tensor import TensorView


def _size(d: Draft, arg: Any, dim: int) -> sc.Scalar:
    x = d.tensor(arg)
    return x.shape[ops.normal_axis(dim, x.ndim)]


def _shape(d: Draft, arg: Any) -> list[sc.Scalar]:
    return list(d.tensor(arg).shape)


def _extents(d: Draft, shape: Any) -> list[sc.Scalar]:
    if not isinstance(shape, list | tuple):
        message = f"a shape is a list of extents, not {type(shape).__name__}"
        raise ArgumentError(message)
    return [d.extent(item) for item in shape]


def _permute(d: Draft, arg: Any, dims: Sequence[int]) -> Any:
    return ops.permute(d.builder, d.tensor(arg), tuple(dims))


def _squeeze(
    d: Draft, arg: Any, dims: int | Sequence[int], squeeze_expanded: bool = False
) -> Any:
    if squeeze_expanded:
        message = "squeeze_expanded=True is not supported; index the array outside"
        raise UnsupportedError(message)
    axes = tuple(dims) if isinstance(dims, list) else dims
    return ops.squeeze(d.builder, d.tensor(arg), axes)


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
    x, target = d.tensor(arg), _extents(d, shape)
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
) -> Any:
    """Take ``[start:end:stride]`` along each axis; beyond the end, what there is."""
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
        start = sc.minimum(d.extent(start_indices[k]), x.shape[k])
        end = sc.maximum(sc.minimum(d.extent(end_indices[k]), x.shape[k]), start)
        starts.append(start)
        extents.append((end - start + (step - 1)) // step)
    return _sliced(d, x, starts, extents, steps)


def _select(d: Draft, arg: Any, index: int, dim: int) -> Any:
    """Take element ``index`` along ``dim``, which is gone afterwards."""
    x = d.tensor(arg)
    place = ops.normal_axis(dim, x.ndim)
    extent = x.shape[place]
    if type(index) is not int:
        message = f"select takes an integer that is known now, not {index!r}"
        raise UnsupportedError(message)
    start = sc.const(index) if index >= 0 else extent + index
    left = start if index < 0 else extent - 1 - index
    text = f"index {index} is out of bounds for axis {place}"
    if isinstance(left, sc.Const) and left.value < 0:
        raise AxisError(text)
    d.require_natural(left, f"{text}, by {{}}")
    starts: list[sc.Scalar] = [sc.const(0)] * x.ndim
    extents = list(x.shape)
    starts[place], extents[place] = start, sc.const(1)
    one = _sliced(d, x, starts, extents, (1,) * x.ndim)
    return ops.squeeze(d.builder, one, place)


def _sliced(
    d: Draft,
    x: TensorView,
    starts: Sequence[sc.Scalar],
    extents: Sequence[sc.Scalar],
    steps: tuple[int, ...],
) -> TensorView:
    result = d.builder.new(extents, x.dtype)
    d.builder.emit(Slice(x, result, tuple(starts), steps))
    return result


def _full(d: Draft, shape: Any, fill_value: Any, dtype: Any = DataType.Null) -> Any:
    wanted = dtype_or_none(dtype)
    element = d.operand(fill_value)
    return ops.full(d.builder, _extents(d, shape), element, wanted)


def _iota(
    d: Draft, length: Any, start: Any = 0, step: Any = 1, dtype: Any = DataType.Int
) -> Any:
    """Return ``start + step * i`` for i below ``length``."""
    wanted = dtype_or_none(dtype) or DType.I64
    first, stride = d.operand(start), d.operand(step)
    return ops.arange(d.builder, d.extent(length), first, stride, wanted)


SHAPES: dict[str, Callable[..., Any]] = {
    "broadcast": _broadcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "expand": _expand,
    "full": _full,
    "iota": _iota,
    "permute": _permute,
    "select": _select,
    "shape": _shape,
    "size": _size,
    "slice": _slice,
    "squeeze": _squeeze,
}
