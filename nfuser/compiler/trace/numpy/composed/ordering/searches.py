# SPDX-License-Identifier: Apache-2.0
"""What is found by halving an array that is in order, within the kernel around it."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ops as ops
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import given
from nfuser.errors import DTypeError, OptionError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.trace.tracer import Tracer

_STEPS = (4, 8, 12, 16, 20, 24, 28, 32)
"""How often a search halves: for more elements than that it is traced again."""


def _steps(size: Any) -> int:
    """Return how many halves leave one of ``size`` elements."""
    return next((steps for steps in _STEPS if size <= 1 << steps), 63)


def _place(values: Any, size: Any, at: Callable[[Any], Any], *, right: bool) -> Any:
    """Return how many elements come before each of ``values``: those less than it.

    Equal ones come before it if it is to be on their ``right``. ``at`` gives elements.
    """
    found = np.zeros_like(values, dtype=np.int64)
    if size == 0:
        return found
    has_nan = values.dtype.kind not in "biu"
    is_last = np.isnan(values) if has_nan and right else None

    def passes(places: Any) -> Any:
        # NaN comes last, as in a sort.
        element = at(places)
        if right:
            below = values >= element
            return below | is_last if has_nan else below
        above = element >= values
        return ~(above | np.isnan(element) if has_nan else above)

    for step in range(_steps(size)):
        half = -(-size // (1 << step)) // 2  # of the elements that are left
        further = found + half
        found = np.where(passes(further), further, found)
    return found + passes(found)


def _inside(t: Tracer, x: Any, places: Any) -> Any:
    """Return the elements at ``places``, which are places of elements."""
    return t.apply(ops.take_inside, t.tensor(x), t.tensor(places))


def _pair(t: Tracer, name: str, ordered: Any, values: Any) -> tuple[Any, Any]:
    """Return the array in order and the values, in the dtype in which they meet."""
    first, second = array(t, ordered), array(t, values)
    if first.ndim != 1:
        message = (
            f"{name}: what is searched must have one dimension, found {first.ndim}"
        )
        raise ShapeError(message)
    kind = np.promote_types(first.dtype, second.dtype)
    if kind.kind == "c":
        message = f"{name}: expected real numbers, found {kind}"
        raise DTypeError(message)
    return first.astype(kind), second.astype(kind)


def searchsorted(
    t: Tracer, a: Any, v: Any, side: Any = "left", sorter: Any = None
) -> Any:
    """Return ``numpy.searchsorted``."""
    if side not in ("left", "right"):
        message = f"searchsorted: side must be 'left' or 'right', found {side!r}"
        raise OptionError(message)
    ordered, values = _pair(t, "searchsorted", a, v)
    if sorter is not None:
        order = array(t, sorter)
        if order.ndim != 1 or order.shape[0] != ordered.shape[0]:
            shapes = [tuple(map(int, x.shape)) for x in (ordered, order)]
            message = (
                "searchsorted: expected a sorter of the shape of the array, "
                f"{shapes[0]}, found {shapes[1]}"
            )
            raise ShapeError(message)
        ordered = np.take(ordered, order)
    return _place(
        values,
        ordered.shape[0],
        lambda places: _inside(t, ordered, places),
        right=side == "right",
    )


def digitize(t: Tracer, x: Any, bins: Any, right: Any = False) -> Any:
    """Return ``numpy.digitize``; bins that go up and down are not told."""
    edges, values = _pair(t, "digitize", bins, x)
    size = edges.shape[0]
    if size == 0:
        return np.zeros_like(values, dtype=np.int64)
    falls = edges[0] > edges[-1]
    found = _place(
        values,
        size,
        lambda places: _inside(t, edges, np.where(falls, size - 1 - places, places)),
        right=not right,
    )
    return np.where(falls, size - found, found)


def interp(
    t: Tracer,
    x: Any,
    xp: Any,
    fp: Any,
    left: Any = None,
    right: Any = None,
    period: Any = None,
) -> Any:
    """Return ``numpy.interp`` without a period."""
    given("interp", {"period": period})
    known, heights = array(t, xp).astype(np.float64), array(t, fp)
    heights = heights.astype(np.complex128 if heights.dtype.kind == "c" else np.float64)
    parts = (known, *(v for v in (x, left, right) if v is not None))
    if any(array(t, v).dtype.kind == "c" for v in parts) and heights.dtype != complex:
        message = "interp: expected real numbers beside real heights"
        raise DTypeError(message)
    x = array(t, x).astype(np.float64)
    if known.ndim != 1 or heights.ndim != 1:
        message = "interp: xp and fp must have one dimension"
        raise ShapeError(message)
    size = known.shape[0]
    if size != heights.shape[0]:
        message = "interp: fp and xp are not of the same length."
        raise ShapeError(message)
    if size == 0:
        message = "interp: array of sample points is empty"
        raise OptionError(message)
    count = _place(x, size, lambda places: _inside(t, known, places), right=True)
    low = np.maximum(count - 1, 0)
    high = np.minimum(low + 1, size - 1)
    x0, x1 = (_inside(t, known, places) for places in (low, high))
    y0, y1 = (_inside(t, heights, places) for places in (low, high))
    slope = (y1 - y0) / (x1 - x0)
    rise = slope * (x - x0)
    found = rise + y0
    # As NumPy: from the other side where the first one is infinite, or flat.
    found = np.where(np.isnan(found), slope * (x - x1) + y1, found)
    found = np.where(np.isnan(found) & (y0 == y1), y0, found)
    # At x0 itself the rise is 0, and has a slope: that is left as it is.
    found = np.where(((x0 == x) | (high == low)) & (rise != 0), y0, found)
    found = np.where(x > known[-1], heights[-1] if right is None else right, found)
    found = np.where(x < known[0], heights[0] if left is None else left, found)
    return found if size == 1 else np.where(np.isnan(x), x, found)


HANDLERS = {"searchsorted": searchsorted, "digitize": digitize, "interp": interp}
