# SPDX-License-Identifier: Apache-2.0
"""Indexing: None, Ellipsis, slices, integers, and one array or list of integers."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.masks as masks
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.ops.builder import TurnIndex
from nfuser.compiler.trace.numpy.movement.gathers import (
    check_range,
    index_tensor,
    passed_number,
)
from nfuser.compiler.trace.standins.sizes import is_sequence, size
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.compiler.trace.standins.symbolic import SymbolicInt
from nfuser.errors import ArgumentError, AxisError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.tracer import Tracer


class Gather:
    """An index array in a key; ``given`` is how the user wrote it."""

    def __init__(self, given: Any, tensor: TensorView) -> None:
        self.given = given
        self.tensor = tensor
        self.axis = 0  # of the indexed array


def get_item(tracer: Tracer, x: Any, key: Any) -> Any:
    """Return ``x[key]``."""
    listed = key if isinstance(key, tuple) else (key,)
    if any(masks.is_mask(tracer, k) for k in listed):
        return masks.chosen(tracer, x, listed)
    spelled = [_read(tracer, k) for k in listed]
    keys = _with_ellipsis(spelled, x.ndim)
    arrays = [k for k in keys if isinstance(k, Gather)]
    wide = [k for k in arrays if k.tensor.ndim]
    bounds = tuple(_bounds(tracer, k) for k in keys)
    plain = [b for b in bounds if b != _WHOLE]
    if plain or not arrays:
        x = tracer.view(_index, x, bounds)
    if not arrays:
        return x
    places = _places(keys)
    if len(wide) > 1:
        at = front_of(spelled, places)
        for array, place in zip(arrays, places, strict=True):
            extent = tracer.tensor(x).shape[place]
            check_range(tracer, array.given, extent, array.axis, "indexing")
        return tracer.call_on_tensor(_index_by_all, x, arrays, places, at)
    for array, place in reversed(list(zip(arrays, places, strict=True))):
        extent = tracer.tensor(x).shape[place]
        check_range(tracer, array.given, extent, array.axis, "indexing")
        if not array.tensor.ndim and tracer.builder.places is not None:
            read = TurnIndex(array.tensor, extent, array.axis)
            tracer.builder.places.append(read)
        if wide or not tracer.is_looping:
            x = tracer.call_on_tensor(ops.index_by, x, array.tensor, place)
            continue
        # NumPy gives a view, which shows what is assigned to the array later.
        x = tracer.view(ops.index_by, x, array.tensor, place)
        x._is_shared = True
    if not wide or not _is_apart(spelled):
        return x
    at = arrays.index(wide[0])
    first = places[at] - at  # the arrays before it have no axes
    moved = range(first, first + wide[0].tensor.ndim)
    return tracer.call_on_tensor(ops.moveaxis, x, (*moved,), (*range(len(moved)),))


_WHOLE = (None, None, 1)


def _places(keys: tuple[Any, ...]) -> list[int]:
    """Return the axis of each index array once the integers have gone."""
    found: list[int] = []
    place = 0
    axis = 0
    for key in keys:
        if isinstance(key, Gather):
            key.axis = axis
            found.append(place)
        axis += key is not None
        place += key is None or isinstance(key, (slice, Gather))
    return found


def front_of(keys: list[Any], places: list[int]) -> int:
    """Return where the axes of several index arrays stand in what they choose."""
    return 0 if _is_apart(keys) else places[0]


def _index_by_all(
    b: Builder, x: TensorView, arrays: list[Gather], places: list[int], at: int
) -> TensorView:
    """Return the elements that index arrays name, each one along an axis."""
    indices = together(b, [a.tensor for a in arrays])
    turned, _ = ops.rows_first(b, x, places)
    count = len(places)
    extents = turned.shape[:count]
    index = ops.flat_index(b, indices, extents)
    rows = ops.reshape(b, turned, [product(extents), *turned.shape[count:]])
    found = ops.take(b, rows, index, 0)
    axes = tuple(range(index.ndim))
    return ops.moveaxis(b, found, axes, tuple(k + at for k in axes)) if at else found


def together(b: Builder, indices: list[TensorView]) -> list[TensorView]:
    """Return index arrays as 64-bit integers of one shape, as they stretch."""
    try:
        shape = b.broadcast(*indices, name="indexing")
    except ShapeError:
        given = " ".join(b.shape_text(i.shape) for i in indices)
        message = (
            "shape mismatch: indexing arrays could not be broadcast together with "
            f"shapes {given}"
        )
        raise refusals.mismatch(message) from None
    return [ops.broadcast_to(b, b.cast(i, DType.I64), shape) for i in indices]


def parts_of(tracer: Tracer, x: Any, key: Any) -> tuple[Any, list[Any], list[int], int]:
    """Return the view that the rest of a key chooses, and its arrays and their axes.

    The last is where the axes of the arrays stand in what the key chooses.
    """
    listed = key if isinstance(key, tuple) else (key,)
    spelled = [_read(tracer, k) for k in listed]
    keys = _with_ellipsis(spelled, x.ndim)
    arrays = [k for k in keys if isinstance(k, Gather)]
    bounds = tuple(_bounds(tracer, k) for k in keys)
    if any(b != _WHOLE for b in bounds):
        x = tracer.view(_index, x, bounds)
    places = _places(keys)
    for array, place in zip(arrays, places, strict=True):
        extent = tracer.tensor(x).shape[place]
        check_range(tracer, array.given, extent, array.axis, "indexing")
    at = front_of(spelled, places) if arrays else 0
    return x, [a.tensor for a in arrays], places, at


def _is_apart(keys: list[Any]) -> bool:
    """Tell whether something lies between the integers and arrays of a key.

    NumPy then puts the axes of the index first.
    """
    chosen = [
        k
        for k, item in enumerate(keys)
        if not (item is None or item is Ellipsis or isinstance(item, slice))
    ]
    return chosen[-1] - chosen[0] >= len(chosen)


def _with_ellipsis(keys: list[Any], ndim: int) -> tuple[Any, ...]:
    """Return ``keys`` with one entry for each axis."""
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > ndim:
        message = (
            f"too many indices for array: array is {ndim}-dimensional, but {used} were "
            "indexed"
        )
        raise AxisError(message)
    places = [k for k, item in enumerate(keys) if item is Ellipsis]
    if len(places) > 1:
        message = "an index can only have a single ellipsis ('...')"
        raise AxisError(message)
    at = places[0] if places else len(keys)
    return (*keys[:at], *(slice(None),) * (ndim - used), *keys[at + 1 :])


def _read(t: Tracer, key: Any) -> Any:
    """Return a key as it is, or as an index array."""
    if key is None or key is Ellipsis or isinstance(key, (slice, SymbolicInt)):
        return key
    if isinstance(key, (bool, np.bool)):
        raise UnsupportedError(refusals.MASK)
    if isinstance(key, Standin):
        if (number := passed_number(t, key)) is not None:
            return number
    elif hasattr(key, "__index__") and not getattr(key, "ndim", 0):
        return key.__index__()
    elif not (is_sequence(key) or hasattr(key, "dtype")):
        raise AxisError(refusals.not_an_index(type(key).__name__))
    index = index_tensor(t, key)
    if index.dtype.is_bool:
        raise UnsupportedError(refusals.MASK)
    if not index.dtype.is_integer:
        raise AxisError(refusals.not_an_index(f"an array of {index.dtype}"))
    return Gather(key, index)


def _bounds(t: Tracer, key: Any) -> Any:
    if isinstance(key, Gather):
        return _WHOLE
    if isinstance(key, slice):
        step = 1 if key.step is None else _plain(key.step)
        return _bound(t, key.start), _bound(t, key.stop), step
    return None if key is None else (_bound(t, key),)


def _plain(step: Any) -> int:
    """Return a step, which is part of the program: an open one becomes a guard."""
    try:
        return step.__index__()
    except (AttributeError, TypeError) as error:
        message = f"slice: expected an integer as step, found {step!r}"
        raise ArgumentError(message) from error


def _bound(t: Tracer, x: Any) -> Any:
    return None if x is None else size(t, x, "slice")


def _index(b: Builder, x: TensorView, keys: tuple[Any, ...]) -> TensorView:
    slices = {}
    place = 0
    for key in keys:
        if key is not None:
            if len(key) == 3:
                slices[place] = key
            place += 1
    result = ops.take_slices(b, x, slices) if slices else x
    place = 0
    for key in keys:
        if key is None:
            result = ops.expand_dims(b, result, place)
        elif len(key) == 1:
            result = ops.take_index(b, result, place, key[0])
            continue
        place += 1
    return result
