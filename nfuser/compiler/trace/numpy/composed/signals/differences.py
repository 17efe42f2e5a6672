# SPDX-License-Identifier: Apache-2.0
"""Differences of neighbours, and what is made of them."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops.shapes.views import normal_axes, normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, as_float
from nfuser.compiler.trace.numpy.dispatch.keywords import MISSING, plain
from nfuser.errors import ArgumentError, RangeError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _neighbours(x: Any, axis: int) -> tuple[Any, Any]:
    """Return all elements along ``axis`` but the first, and all but the last."""
    return x[_along(axis, slice(1, None))], x[_along(axis, slice(None, -1))]


def diff(
    t: Tracer,
    a: Any,
    n: Any = 1,
    axis: Any = -1,
    prepend: Any = MISSING,
    append: Any = MISSING,
) -> Any:
    """Return ``numpy.diff``."""
    times = plain(n)
    if times == 0:
        return a
    if times < 0:
        message = f"diff: expected an order n of 0 or more, found {times}"
        raise ArgumentError(message)
    x = array(t, a)
    if not x.ndim:
        message = "diff: expected an array of at least one dimension, found a number"
        raise ShapeError(message)
    axis = normal_axis(plain(axis), x.ndim)
    ends = [p if p is MISSING else _end(t, p, x, axis) for p in (prepend, append)]
    parts = [p for p in (ends[0], x, ends[1]) if p is not MISSING]
    x = np.concatenate(parts, axis) if len(parts) > 1 else x
    for _ in range(times):
        after, before = _neighbours(x, axis)
        x = after != before if x.dtype == bool else after - before
    return x


def _end(t: Tracer, part: Any, x: Any, axis: int) -> Any:
    found = array(t, part)
    shape = [1 if k == axis else n for k, n in enumerate(x.shape)]
    return found if found.ndim else np.broadcast_to(found, shape)


def ediff1d(t: Tracer, ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return ``numpy.ediff1d``."""
    x = array(t, ary).ravel()
    after, before = _neighbours(x, 0)
    ends = [None if e is None else array(t, e).ravel() for e in (to_begin, to_end)]
    for end in ends:
        if end is not None and not np.can_cast(end.dtype, x.dtype, "same_kind"):
            message = (
                f"ediff1d: expected ends of a dtype that casts to {x.dtype}, found "
                f"{end.dtype}; convert them with astype"
            )
            raise ArgumentError(message)
    parts = [p for p in (ends[0], after - before, ends[1]) if p is not None]
    return np.concatenate([p.astype(x.dtype) for p in parts])


def trapezoid(t: Tracer, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    """Return ``numpy.trapezoid``."""
    y = array(t, y)
    axis = normal_axis(plain(axis), y.ndim)
    after, before = _neighbours(y, axis)
    width = dx
    if x is not None:
        places = array(t, x)
        width = diff(t, places, axis=axis if places.ndim > 1 else -1)
        if places.ndim == 1:
            width = width[(slice(None), *(None,) * (y.ndim - axis - 1))]
    return np.sum(width * (after + before) / 2.0, axis)


def gradient(
    t: Tracer, f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1
) -> Any:
    """Return ``numpy.gradient``."""
    x = array(t, f)
    x = as_float(x) if x.dtype != bool else x  # whose difference is refused, as NumPy's
    axes = normal_axes(plain(axis), x.ndim)
    if axis is not None and not isinstance(axis, int):
        axes = tuple(normal_axis(plain(a), x.ndim) for a in axis)
    if len(varargs) not in (0, 1, len(axes)):
        message = (
            f"gradient: expected no spacing, one, or one for each of {len(axes)} axes, "
            f"found {len(varargs)}"
        )
        raise ArgumentError(message)
    if edge_order not in (1, 2):
        message = f"gradient: expected an edge_order of 1 or 2, found {edge_order!r}"
        raise ArgumentError(message)
    spacings = varargs or (1.0,)
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    pairs = zip(axes, spacings, strict=True)
    found = tuple(_slope(t, x, k, step, edge_order) for k, step in pairs)
    single = len(found) == 1 and (axis is None or isinstance(axis, int))
    return found[0] if single else found


def unwrap(
    t: Tracer,
    p: Any,
    discont: Any = None,
    axis: Any = -1,
    *,
    period: Any = 2 * np.pi,
) -> Any:
    """Return ``numpy.unwrap``."""
    x, place = array(t, p), plain(axis)
    steps = diff(t, x, axis=place)
    place = normal_axis(place, x.ndim)
    discont = period / 2 if discont is None else discont
    kind = t.handlers["result_type"](t, steps, period)
    if kind.kind == "u":
        message = f"unwrap: half a period below 0 is out of bounds for {kind}"
        raise RangeError(message)
    is_whole = kind.kind == "i"
    high = period // 2 if is_whole else period / 2
    turned = np.remainder(steps + high, period) - high
    if not is_whole or period % 2 == 0:
        turned = np.where((turned == -high) & (steps > 0), high, turned)
    change = np.where(np.abs(steps) < discont, 0, turned - steps)
    first = x[_along(place, slice(None, 1))].astype(kind)
    rest = x[_along(place, slice(1, None))] + np.cumsum(change, place)
    return np.concatenate([first, rest.astype(kind)], place)


def _slope(t: Tracer, x: Any, axis: int, spacing: Any, order: int) -> Any:
    if x.shape[axis] < order + 1:
        message = (
            f"gradient: expected at least {order + 1} elements along axis {axis} for "
            f"edge_order={order}, found {int(x.shape[axis])}"
        )
        raise ShapeError(message)
    x = np.moveaxis(x, axis, 0)
    wide = (slice(None), *(None,) * (x.ndim - 1))
    steps = None
    if isinstance(spacing, (list, tuple)) or getattr(spacing, "ndim", 0):
        places = array(t, spacing)
        if places.ndim != 1 or places.shape[0] != x.shape[0]:
            message = (
                f"gradient: expected a number or {int(x.shape[0])} places along axis "
                f"{axis}, found an array of shape {tuple(map(int, places.shape))}"
            )
            raise ShapeError(message)
        places = as_float(places)
        steps = (places[1:] - places[:-1])[wide]
    inner = _inner(x, spacing, steps)
    first, last = (_edge(x, spacing, steps, order, at_end=e) for e in (False, True))
    whole = np.concatenate([first[None], inner, last[None]])
    whole = whole.astype(np.float64 if x.dtype == bool else x.dtype)
    return np.moveaxis(whole, 0, axis)


def _inner(x: Any, step: Any, steps: Any) -> Any:
    """Return the slope between two neighbours of each inner element."""
    if steps is None:
        return (x[2:] - x[:-2]) / (2.0 * step)
    left, right = steps[:-1], steps[1:]
    both = left + right
    below, here = -right / (left * both), (right - left) / (left * right)
    return below * x[:-2] + here * x[1:-1] + left / (right * both) * x[2:]


def _edge(x: Any, step: Any, steps: Any, order: int, *, at_end: bool) -> Any:
    """Return the slope at the first element, or at the last, in NumPy's order."""
    if order == 1:
        after, before = (x[-1], x[-2]) if at_end else (x[1], x[0])
        close = step if steps is None else steps[-1 if at_end else 0]
        return (after - before) / close
    factors = _of_three(step, steps, at_end=at_end)
    parts = x[-3:] if at_end else x[:3]
    first, second, third = (a * parts[k] for k, a in enumerate(factors))
    return first + second + third


def _of_three(step: Any, steps: Any, *, at_end: bool) -> tuple[Any, Any, Any]:
    """Return what the outer three elements are multiplied by, in their order."""
    if steps is None:
        left, middle, right = (0.5, -2.0, 1.5) if at_end else (-1.5, 2.0, -0.5)
        return left / step, middle / step, right / step
    one, two = (steps[-2], steps[-1]) if at_end else (steps[0], steps[1])
    both = one + two
    if at_end:
        return (
            two / (one * both),
            -both / (one * two),
            (2.0 * two + one) / (two * both),
        )
    return (
        -(2.0 * one + two) / (one * both),
        both / (one * two),
        -one / (two * both),
    )


HANDLERS = {
    "diff": diff,
    "ediff1d": ediff1d,
    "gradient": gradient,
    "trapezoid": trapezoid,
    "unwrap": unwrap,
}
