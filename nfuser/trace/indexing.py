# SPDX-License-Identifier: Apache-2.0
"""Basic indexing: None, Ellipsis, slices and integers."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.ops as ops
import nfuser.trace.refusals as refusals
from nfuser.errors import AxisError, UnsupportedError
from nfuser.trace.standin import Standin
from nfuser.trace.symbolic import SymbolicInt

if TYPE_CHECKING:
    from nfuser.ir.tensor import TensorView
    from nfuser.ops import Builder
    from nfuser.trace.tracer import Tracer


def get_item(tracer: Tracer, x: Any, key: Any) -> Any:
    """Return ``x[key]``."""
    keys = _with_ellipsis(tuple(key) if isinstance(key, tuple) else (key,), x.ndim)
    return tracer.view(_index, x, tuple(_bounds(k) for k in keys))


def _with_ellipsis(keys: tuple[Any, ...], ndim: int) -> tuple[Any, ...]:
    """Return ``keys`` with one entry for each axis."""
    for k in keys:
        _refuse_advanced(k)
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


def _refuse_advanced(key: Any) -> None:
    if key is None or key is Ellipsis or isinstance(key, (slice, SymbolicInt)):
        return
    if isinstance(key, (bool, np.bool)):
        raise UnsupportedError(refusals.MASK)
    if isinstance(key, Standin):
        kind = key._operand().dtype  # pyright: ignore[reportPrivateUsage]
        raise UnsupportedError(refusals.MASK if kind.is_bool else refusals.GATHER)
    if isinstance(key, (list, np.ndarray)) or not hasattr(key, "__index__"):
        raise UnsupportedError(refusals.GATHER)


def _bounds(key: Any) -> Any:
    if isinstance(key, slice):
        step = 1 if key.step is None else key.step.__index__()
        return _bound(key.start), _bound(key.stop), step
    return None if key is None else (_bound(key),)


def _bound(x: Any) -> Any:
    if x is None:
        return None
    return x._operand() if isinstance(x, SymbolicInt) else x.__index__()  # pyright: ignore[reportPrivateUsage]


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
