# SPDX-License-Identifier: Apache-2.0
"""Indexing: None, Ellipsis, slices, integers, and one array or list of integers."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.keys as keys
import nfuser.compiler.trace.numpy.movement.masks as masks
from nfuser.compiler.ir.scalars.functions import product
from nfuser.compiler.ops.builder import TurnIndex
from nfuser.compiler.trace.numpy.movement.gathers import check_range
from nfuser.compiler.trace.standins.standin import chosen_by_masks

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder
    from nfuser.compiler.trace.tracer import Tracer


def get_item(tracer: Tracer, x: Any, key: Any) -> Any:
    """Return ``x[key]``."""
    listed = masks.spelled(tracer, x, key if isinstance(key, tuple) else (key,))
    if any(masks.is_mask(tracer, k) for k in listed):
        return masks.chosen(tracer, x, listed)
    if any(type(k) in chosen_by_masks for k in listed):
        return masks.named(tracer, x, listed)
    whole = x
    spelled = [keys.read_key(tracer, k) for k in listed]
    each = keys.with_ellipsis(spelled, x.ndim)
    arrays = [k for k in each if isinstance(k, keys.Gather)]
    wide = [k for k in arrays if k.tensor.ndim]
    bounds = tuple(keys.bounds_of(tracer, k) for k in each)
    plain = [b for b in bounds if b != keys.WHOLE]
    if plain or not arrays:
        x = tracer.view(keys.index_plainly, x, bounds)
    if not arrays:
        return x
    places = keys.places_of(each)
    if len(wide) > 1:
        at = keys.front_of(spelled, places)
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
        if wide or not (tracer.is_looping or _is_number(array.given)):
            x = tracer.call_on_tensor(ops.index_by, x, array.tensor, place)
            continue
        # NumPy gives a view, which shows what is assigned to the array later.
        x = tracer.view(ops.index_by, x, array.tensor, place)
        x._counted = (whole, tuple(spelled))
    if not wide or not keys.is_apart(spelled):
        return x
    at = arrays.index(wide[0])
    first = places[at] - at  # the arrays before it have no axes
    moved = range(first, first + wide[0].tensor.ndim)
    return tracer.call_on_tensor(ops.moveaxis, x, (*moved,), (*range(len(moved)),))


def _is_number(index: Any) -> bool:
    """Tell whether NumPy has a number here: by an array without axes it copies."""
    return bool(getattr(index, "_is_number", True))


def _index_by_all(
    b: Builder, x: TensorView, arrays: list[keys.Gather], places: list[int], at: int
) -> TensorView:
    """Return the elements that index arrays name, each one along an axis."""
    indices = keys.together(b, [a.tensor for a in arrays])
    turned, _ = ops.rows_first(b, x, places)
    count = len(places)
    extents = turned.shape[:count]
    index = ops.flat_index(b, indices, extents)
    rows = ops.reshape(b, turned, [product(extents), *turned.shape[count:]])
    found = ops.take(b, rows, index, 0)
    axes = tuple(range(index.ndim))
    return ops.moveaxis(b, found, axes, tuple(k + at for k in axes)) if at else found
