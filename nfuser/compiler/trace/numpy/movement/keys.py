# SPDX-License-Identifier: Apache-2.0
"""Keys of arrays, as they are written: what is plain in them, and what are arrays."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.dtypes import DType
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


WHOLE = (None, None, 1)


def places_of(keys: tuple[Any, ...]) -> list[int]:
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


def parts_of(tracer: Tracer, x: Any, key: Any) -> tuple[Any, list[Any], list[int], int]:
    """Return the view that the rest of a key chooses, and its arrays and their axes.

    The last is where the axes of the arrays stand in what the key chooses.
    """
    listed = key if isinstance(key, tuple) else (key,)
    spelled = [read_key(tracer, k) for k in listed]
    keys = with_ellipsis(spelled, x.ndim)
    arrays = [k for k in keys if isinstance(k, Gather)]
    bounds = tuple(bounds_of(tracer, k) for k in keys)
    if any(b != WHOLE for b in bounds):
        x = tracer.view(index_plainly, x, bounds)
    places = places_of(keys)
    for array, place in zip(arrays, places, strict=True):
        extent = tracer.tensor(x).shape[place]
        check_range(tracer, array.given, extent, array.axis, "indexing")
    at = front_of(spelled, places) if arrays else 0
    return x, [a.tensor for a in arrays], places, at


def front_of(keys: list[Any], places: list[int]) -> int:
    """Return where the axes of several index arrays stand in what they choose."""
    return 0 if is_apart(keys) else places[0]


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


def is_apart(keys: list[Any]) -> bool:
    """Tell whether something lies between the integers and arrays of a key.

    NumPy then puts the axes of the index first.
    """
    chosen = [
        k
        for k, item in enumerate(keys)
        if not (item is None or item is Ellipsis or isinstance(item, slice))
    ]
    return chosen[-1] - chosen[0] >= len(chosen)


def with_ellipsis(keys: list[Any], ndim: int) -> tuple[Any, ...]:
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


def read_key(t: Tracer, key: Any) -> Any:
    """Return a key as it is, or as an index array."""
    if key is None or key is Ellipsis:
        return key
    if isinstance(key, (slice, SymbolicInt, Gather)):
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


def bounds_of(t: Tracer, key: Any) -> Any:
    """Return the bounds of a slice, the place of an integer, or None for a new axis."""
    if isinstance(key, Gather):
        return WHOLE
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


def index_plainly(b: Builder, x: TensorView, keys: tuple[Any, ...]) -> TensorView:
    """Return the view that bounds choose, one for each axis of it or of ``x``."""
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
