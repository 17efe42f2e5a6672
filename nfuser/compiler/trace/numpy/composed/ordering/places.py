# SPDX-License-Identifier: Apache-2.0
"""Places in an array, along each axis or in a row, and choices by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops import normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain
from nfuser.compiler.trace.standins.literals import holds_standins
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.compiler.trace.standins.standin import Standin
from nfuser.errors import ArgumentError, AxisError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer

_CLIPS = ("raise", "wrap", "clip")


def _sizes(name: str, shape: Any, order: str) -> tuple[Any, ...]:
    """Return sizes, the one whose index varies fastest last."""
    if order not in ("C", "F"):
        message = f"{name}: order must be 'C' or 'F', found {order!r}"
        raise ShapeError(message)
    sizes = tuple(shape) if is_sequence(shape) else (shape,)
    return sizes if order == "C" else sizes[::-1]


def _indices(t: Tracer, name: str, item: Any, casting: Any = "same_kind") -> Any:
    found = array(t, item)
    if not np.can_cast(found.dtype, np.int64, casting):
        message = f"{name}: expected indices that cast to int64, found {found.dtype}"
        raise ArgumentError(message)
    return found.astype(np.int64)


def _check(name: str, item: Any, count: Any) -> None:
    """Refuse numbers that are known while tracing and too large or too small."""
    if isinstance(item, Standin) or holds_standins(item):
        return
    known = np.asarray(item)
    if known.size and (known.min() < 0 or int(known.max()) >= count):
        message = f"{name}: an index is out of bounds for {int(count)} elements"
        raise ShapeError(message)


def unravel_index(
    t: Tracer, indices: Any, shape: Any, order: str = "C"
) -> tuple[Any, ...]:
    """Return ``numpy.unravel_index``; only numbers known while tracing are checked."""
    sizes = _sizes("unravel_index", shape, order)
    rest = _indices(t, "unravel_index", indices)
    if rest.ndim and not sizes:
        message = "unravel_index: multiple indices are not supported for 0d arrays"
        raise ShapeError(message)
    count: Any = 1
    for size in sizes:
        count = count * size
    _check("unravel_index", indices, count)
    found: list[Any] = []
    for size in sizes[:0:-1]:
        found.append(rest % size)
        rest = rest // size
    found += [rest] if sizes else []
    return tuple(found if order == "F" else found[::-1])


def ravel_multi_index(
    t: Tracer, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C"
) -> Any:
    """Return ``numpy.ravel_multi_index``; only known numbers are checked."""
    sizes = _sizes("ravel_multi_index", dims, order)
    clips = mode if is_sequence(mode) else (mode,) * len(sizes)
    places = [*multi_index]
    if len(places) != len(sizes) or len(clips) != len(sizes):
        message = (
            f"ravel_multi_index: expected an array of indices for each of {len(sizes)} "
            f"sizes, found {len(places)}"
        )
        raise ShapeError(message)
    turn = -1 if order == "F" else 1
    found: Any = 0
    for place, size, clip in zip(places[::turn], sizes, clips[::turn], strict=True):
        index = _indices(t, "ravel_multi_index", place)
        if clip not in _CLIPS:
            message = (
                "ravel_multi_index: clipmode must be 'raise', 'clip' or 'wrap', found "
                f"{clip!r}"
            )
            raise ShapeError(message)
        if clip == "raise":
            _check("ravel_multi_index", place, size)
        elif clip == "wrap":
            index = index % size
        else:
            index = np.clip(index, 0, size - 1)
        found = found * size + index
    return found


def choose(
    t: Tracer, a: Any, choices: Any, out: Any = None, mode: Any = "raise"
) -> Any:
    """Return ``numpy.choose``; an index out of range takes the nearest choice."""
    given("choose", {"out": out})
    index = _indices(t, "choose", a, "safe")
    items = [*choices]
    listed = [array(t, c) for c in items]
    if mode not in _CLIPS or not listed:
        message = (
            "choose: expected a choice at least, and a mode of 'raise', 'clip' or "
            f"'wrap', found {len(listed)} and {mode!r}"
        )
        raise ShapeError(message)
    if mode == "raise":
        _check("choose", a, len(listed))
    if mode == "wrap":
        index = index % len(listed)
    kind = np.result_type(*map(_kind, items, listed))
    *earlier, found = [c.astype(kind) for c in listed]
    found = np.broadcast_arrays(index, found)[1]
    for k in reversed(range(len(earlier))):
        found = np.where(index <= k, earlier[k], found)
    return found


def _kind(item: Any, held: Any) -> Any:
    """Return what promotes as ``item`` does: a number of Python's is no array."""
    kind = item.__class__
    return kind(0) if kind in (bool, int, float, complex) else held.dtype


def isin(
    t: Tracer,
    element: Any,
    test_elements: Any,
    assume_unique: Any = False,
    invert: Any = False,
    *,
    kind: Any = None,
) -> Any:
    """Return ``numpy.isin``, each element compared with each."""
    del assume_unique
    if kind not in (None, "sort", "table"):
        message = f"isin: expected a kind of None, 'sort' or 'table', found {kind!r}"
        raise ShapeError(message)
    same = array(t, element)[..., None] == array(t, test_elements).ravel()
    found = np.any(same, -1)
    return ~found if invert else found


def resize(t: Tracer, a: Any, new_shape: Any) -> Any:
    """Return ``numpy.resize``, which repeats the elements."""
    x = array(t, a).ravel()
    shape = tuple(new_shape) if is_sequence(new_shape) else (new_shape,)
    count: Any = 1
    for size in shape:
        if size < 0:
            message = "resize: all elements of `new_shape` must be non-negative"
            raise ShapeError(message)
        count = count * size
    if x.shape[0] == 0:
        return t.handlers["zeros"](t, shape, x.dtype)
    places = t.handlers["arange"](t, count) % x.shape[0]
    return np.take(x, places).reshape(shape)


def rollaxis(t: Tracer, a: Any, axis: Any, start: Any = 0) -> Any:
    """Return ``numpy.rollaxis``."""
    rank = a.ndim
    place, start = normal_axis(plain(axis), rank), plain(start)
    before = start + rank if start < 0 else start
    if not 0 <= before <= rank:
        message = f"rollaxis: expected -{rank} <= start < {rank + 1}, found {start}"
        raise AxisError(message)
    return t.handlers["moveaxis"](t, a, place, before - (place < before))


HANDLERS = {
    "choose": choose,
    "isin": isin,
    "ravel_multi_index": ravel_multi_index,
    "resize": resize,
    "rollaxis": rollaxis,
    "unravel_index": unravel_index,
}
