# SPDX-License-Identifier: Apache-2.0
"""Parts of captured arrays: a slice that plain NumPy takes is found in its memory.

``TABLE[:n]`` has no name of its own. It is read again as the same window of ``TABLE``,
while that has the layout that it had: ``n`` is a guard, and all else that chose the
window is a constant of the trace.
"""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import operator
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds

from nfuser.compiler.ir.base import value
from nfuser.compiler.trace.standins.standin import is_ndarray

if TYPE_CHECKING:
    from collections.abc import Iterable

_KINDS = (np.ndarray, np.memmap)
_Memory: TypeAlias = "tuple[int, tuple[int, ...], tuple[int, ...], int]"


@value
class Window:
    """Where a part lies in a contiguous array of one layout; a key of a ``Step``."""

    kind: type
    dtype: np.dtype[Any]
    whole: tuple[tuple[int, ...], tuple[int, ...]]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def read(self, whole: Any) -> np.ndarray[Any, Any]:
        """Return the part of ``whole``, if that has the layout that is expected."""
        if type(whole) is not self.kind or whole.dtype != self.dtype:
            raise LookupError
        if (whole.shape, whole.strides) != self.whole:
            raise LookupError
        forward = whole if whole.flags.c_contiguous else whole.T
        memory = np.asarray(forward).reshape(-1).view(np.uint8)
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)

    def __repr__(self) -> str:
        return f"part of shape {self.shape}"


def window_of(item: Any, whole: Any) -> Window | None:
    """Return where ``item`` lies in ``whole``; None where that is not sure.

    In a contiguous array each place within the bounds holds an element.
    """
    if type(item) not in _KINDS or type(whole) not in _KINDS:
        return None
    if item.dtype != whole.dtype or not item.size or not whole.flags.forc:
        return None
    (low, high), (first, end) = byte_bounds(item), byte_bounds(whole)
    # The address of a part that runs backwards is that of its first element.
    offset = item.__array_interface__["data"][0] - first
    steps = (offset, *item.strides)
    if low < first or high > end or any(step % item.itemsize for step in steps):
        return None
    layout = whole.shape, whole.strides
    return Window(type(whole), whole.dtype, layout, offset, item.shape, item.strides)


def sharing(item: Any, known: Iterable[Any]) -> list[Any]:
    """Return those of the ``known`` arrays that ``item`` may be a part of."""
    if not is_ndarray(item):
        return _sharing_on_device(item, known)
    arrays = (x for x in known if is_ndarray(x))
    return [x for x in arrays if np.may_share_memory(x, item)]


def overlap(one: Any, other: Any) -> bool:
    """Tell whether arrays whose memory lies across share elements, or may."""
    are_known = is_ndarray(one) and is_ndarray(other)
    return not are_known or np.shares_memory(one, other)


def bytes_of(item: Any) -> np.ndarray[Any, Any] | None:
    """Return the memory that ``item`` shows as Python's buffers do, if it does."""
    try:
        return np.asarray(memoryview(item))
    except (BufferError, TypeError, ValueError):
        return None


def _sharing_on_device(item: Any, known: Iterable[Any]) -> list[Any]:
    """Return the same of arrays of other libraries, torch and CuPy for two."""
    low, high = _bounds(_place_of(item))
    bounds = [(x, *_bounds(_place_of(x))) for x in known]
    return [x for x, first, end in bounds if max(low, first) < min(high, end)]


def _place_of(item: Any) -> _Memory | None:
    kind: type[Any] = type(item)
    if hasattr(kind, "data_ptr"):
        steps = tuple(n * item.itemsize for n in item.stride())
        return item.data_ptr(), tuple(item.shape), steps, item.itemsize
    if not hasattr(kind, "__cuda_array_interface__"):
        return None
    shown = getattr(item, "__cuda_array_interface__", None)
    if not shown or "data" not in shown:
        return None
    shape, dtype = tuple(shown["shape"]), np.dtype(shown["typestr"])
    sizes = accumulate(reversed(shape), operator.mul, initial=dtype.itemsize)
    packed = tuple(sizes)[-2::-1]
    steps = shown.get("strides") or packed
    return shown["data"][0], shape, steps, dtype.itemsize


def _bounds(memory: _Memory | None) -> tuple[int, int]:
    """Return the addresses between which elements lie: equal where there are none."""
    if memory is None or 0 in memory[1]:
        return 0, 0
    first, shape, strides, itemsize = memory
    spans = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = first + sum(span for span in spans if span < 0)
    return low, first + sum(span for span in spans if span > 0) + itemsize


def memory_of(item: Any) -> Any:
    """Return what two views of the same elements have in common."""
    if is_ndarray(item):
        return item.__array_interface__["data"][0], item.shape, item.strides, item.dtype
    place = _place_of(item)
    return id(item) if place is None else (*place, str(item.dtype))
