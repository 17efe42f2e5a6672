# SPDX-License-Identifier: Apache-2.0
"""Keys with a boolean mask: ``x[mask]``, ``x[1:, mask]``, and what is put there."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
import nfuser.compiler.trace.numpy.movement.writes as writes
import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.ir.same_value import same_value
from nfuser.compiler.ir.scalars.functions import equal
from nfuser.compiler.trace.standins.chosen import Chosen, spread
from nfuser.compiler.trace.standins.dialect import NUMPY
from nfuser.compiler.trace.standins.literals import array_of
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin, is_ndarray
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def is_mask(t: Tracer, key: Any) -> bool:
    """Tell whether an item of a key is of truth values."""
    if isinstance(key, (bool, np.bool_)) and not isinstance(key, Standin):
        return True
    if isinstance(key, Standin) and hasattr(key, "_remake"):
        return t.tensor(key).dtype.is_bool
    if is_ndarray(key):
        return key.dtype == bool
    listed: Any = key if is_sequence(key) else ()
    return len(listed) > 0 and is_mask(t, listed[0])


def nonzero(t: Tracer, a: Any) -> tuple[Chosen, ...]:
    """Return ``numpy.nonzero``: where a mask holds, along each of its axes."""
    held = array_of(t, a)
    if t.dialect is not NUMPY or not held.ndim:
        raise refusals.function("nonzero")
    mask = ops.truth(t.builder, held)
    places = t.handlers["indices"](t, t.wrap(mask).shape)
    each = (t.wrap(t.tensor(places[k])) for k in range(mask.ndim))
    return tuple(Chosen(x, mask, 0, k) for k, x in enumerate(each))


def flatnonzero(t: Tracer, a: Any) -> Chosen:
    """Return ``numpy.flatnonzero``."""
    return nonzero(t, t.wrap(array_of(t, a)).reshape(-1))[0]


def argwhere(t: Tracer, a: Any) -> Chosen:
    """Return ``numpy.argwhere``: a row of places for each element that holds."""
    found = nonzero(t, a)
    return Chosen(np.stack([x._full for x in found], -1), found[0]._mask, 0)


def spelled(t: Tracer, x: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key with the mask itself for all the places where it holds.

    Axes of other sizes than those of the mask are indexed by the places.
    """
    at = next((k for k, key in enumerate(keys) if isinstance(key, Chosen)), None)
    if at is None:
        return keys
    mask = keys[at]._mask
    found = keys[at : at + mask.ndim]
    for axis, key in enumerate(found):
        is_same = isinstance(key, Chosen) and same_value(
            t.builder.exprs, key._mask, mask
        )
        if not is_same or key._axis != axis:
            return keys
    lead, tail = keys[:at], keys[at:]
    axis = sum(k is not None for k in lead)
    if any(k is Ellipsis for k in lead):
        axis = x.ndim - sum(k is not None for k in tail)
    extents = t.tensor(x).shape[axis : axis + mask.ndim]
    pairs = list(zip(extents, mask.shape, strict=False))
    if not len(found) == len(pairs) == mask.ndim:
        return keys
    if not all(t.builder.ask(equal(m, n), usual=1) for m, n in pairs):
        return keys
    return (*keys[:at], t.wrap(mask), *keys[at + mask.ndim :])


def named(t: Tracer, x: Any, keys: tuple[Any, ...]) -> Any:
    """Return ``x[keys]`` where an array of the key is what a mask chooses."""
    at = next(k for k, key in enumerate(keys) if isinstance(key, Chosen))
    lead = keys[:at]
    if t.dialect is not NUMPY or not all(isinstance(k, slice) for k in lead):
        raise UnsupportedError(refusals.MASK)
    return keys[at].places_in(x, lead, keys[at:])


def chosen(t: Tracer, x: Any, keys: tuple[Any, ...]) -> Chosen:
    """Return ``x[keys]``, which is a copy."""
    if t.dialect is not NUMPY:
        raise UnsupportedError(refusals.MASK)
    part, mask, place = _parted(t, x, keys)
    return Chosen(t.wrap(t.tensor(part)), mask, place)


def put(t: Tracer, x: Any, keys: tuple[Any, ...], value: Any) -> None:
    """Do ``x[keys] = value`` for one value, or for those of the same mask."""
    part, mask, place = _parted(t, x, keys)
    b, held = t.builder, t.tensor(part)
    rest = held.ndim - place - mask.ndim
    if isinstance(value, Chosen):
        new = t.tensor(Chosen(part, mask, place).fitted(value))
    elif _is_plain(value):
        new = b.convert(t.operand(value), held.dtype)
    else:
        new = t.tensor(spread(t, value, mask.ndim, rest, held.dtype))
    if new.ndim > held.ndim:
        lead = new.shape[: new.ndim - held.ndim]
        if not all(b.ask(equal(n, 1), usual=1) for n in lead):
            given, wanted = b.shape_text(new.shape), b.shape_text(held.shape)
            raise refusals.does_not_fit(wanted, given, is_item=True)
        new = ops.squeeze(b, new, tuple(range(len(lead))))
    wide = ops.expand_dims(b, mask, tuple(range(mask.ndim, mask.ndim + rest)))
    found = ops.where(b, wide, b.cast(new, held.dtype), held)
    writes.write(t, part, t.wrap(found), "unsafe")


def _parted(t: Tracer, x: Any, keys: tuple[Any, ...]) -> tuple[Any, TensorView, int]:
    """Return the view that the rest of a key gives, the mask, and its first axis."""
    at = next(k for k, key in enumerate(keys) if is_mask(t, key))
    mask = array_of(t, keys[at])
    lead, tail = list(keys[:at]), list(keys[at + 1 :])
    if any(_is_index(t, k) for k in (*lead, *tail)):
        raise UnsupportedError(refusals.SCATTER)
    used = sum(k is not None and k is not Ellipsis for k in (*lead, *tail))
    if used + mask.ndim > x.ndim:
        message = (
            f"too many indices for array: array is {x.ndim}-dimensional, but "
            f"{used + mask.ndim} were indexed"
        )
        raise refusals.AxisError(message)
    part = x
    if lead or tail:
        # With an ellipsis it is a view, also if no axis is left.
        has_one = any(k is Ellipsis for k in (*lead, *tail))
        end = () if has_one else (Ellipsis,)
        part = x[(*lead, *[slice(None)] * mask.ndim, *tail, *end)]
    place = sum(k is None or isinstance(k, slice) for k in lead)
    if any(k is Ellipsis for k in lead):
        place += x.ndim - used - mask.ndim
    if _is_apart(keys, at):
        axes = range(place, place + mask.ndim)
        part, place = np.moveaxis(part, tuple(axes), tuple(range(mask.ndim))), 0
    _require_fit(t, mask, t.tensor(part), place)
    return part, mask, place


def _is_index(t: Tracer, key: Any) -> bool:
    """Tell whether an item of a key beside the mask is an array, or a mask too."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return False
    is_number = hasattr(key, "__index__") and not getattr(key, "ndim", 0)
    return is_mask(t, key) or not is_number


def _is_apart(keys: tuple[Any, ...], at: int) -> bool:
    """Tell whether something lies between the mask and an integer of a key.

    NumPy then puts the axis of what is chosen first.
    """
    fixed = [
        k
        for k, key in enumerate(keys)
        if k == at or not (key is None or key is Ellipsis or isinstance(key, slice))
    ]
    return fixed[-1] - fixed[0] >= len(fixed)


def _require_fit(t: Tracer, mask: TensorView, held: TensorView, place: int) -> None:
    """Refuse a mask of other sizes than the axes that it chooses of."""
    b = t.builder
    for extent, wanted in zip(mask.shape, held.shape[place:], strict=False):
        if b.ask(equal(extent, wanted), usual=1):
            continue
        message = (
            f"boolean index of shape {b.shape_text(mask.shape)} did not match the "
            f"indexed array of shape {b.shape_text(held.shape)}"
        )
        raise refusals.AxisError(message)


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(
        value, Standin
    )


HANDLERS: dict[str, Any] = {
    "nonzero": nonzero,
    "flatnonzero": flatnonzero,
    "argwhere": argwhere,
}
