# SPDX-License-Identifier: Apache-2.0
"""Borders made of an array's own elements: the modes of pad that are index maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import maximum, minimum
from nfuser.compiler.ops.elementwise.arithmetic import copy
from nfuser.compiler.ops.mismatch import no_extension
from nfuser.compiler.ops.shapes.moves import concatenate, remap, tile
from nfuser.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def extend(
    b: Builder,
    x: TensorView,
    widths: Sequence[tuple[Scalar | int, Scalar | int]],
    mode: str,
) -> TensorView:
    """Add ``widths`` elements before and after each axis, as ``mode`` continues it.

    ``mode`` is edge, wrap, symmetric or reflect. No width is negative.
    """
    if len(widths) != x.ndim:
        message = f"pad: {len(widths)} widths for an array with {x.ndim} axes"
        raise ArgumentError(message)
    shape = list(x.shape)
    index: dict[int, Scalar] = {}
    for axis, (left, right) in enumerate(widths):
        before, after = sc.as_scalar(left), sc.as_scalar(right)
        if before is after is sc.const(0):
            continue
        extent = x.shape[axis]
        shape[axis] = extent + before + after
        _check(b, extent, shape[axis], axis)
        index[axis] = _MODES[mode](
            scalar_symbols.place(axis, shape[axis]), before, extent
        )
    if not index:
        return copy(b, x, "A")
    made = remap(b, x, shape, index)
    lefts = {axis: sc.as_scalar(widths[axis][0]) for axis in index}
    b.meant[made] = lambda: _in_parts(b, x, lefts, shape, mode)
    return made


def _in_parts(
    b: Builder,
    x: TensorView,
    lefts: Mapping[int, Scalar],
    shape: Sequence[Scalar],
    mode: str,
) -> TensorView:
    """Return what ``extend`` does, by joining parts of ``x`` along one axis a time."""
    for axis, left in lefts.items():
        by = _edges if mode == "edge" else _PERIODS[mode]
        x = _continued(b, x, axis, (left, shape[axis]), by)
    return x


def _continued(
    b: Builder,
    x: TensorView,
    axis: int,
    wanted: tuple[Scalar, Scalar],
    by: Callable[..., TensorView],
) -> TensorView:
    left, extent = wanted
    if by is _edges:
        return _edges(b, x, axis, left, extent)
    whole = by(b, x, axis)
    period = whole.shape[axis]
    begin = -left % period
    counts: list[Scalar | int] = [1] * x.ndim
    counts[axis] = (begin + extent + period - 1) // period
    return views.window(b, tile(b, whole, counts), axis, begin, extent)


def _edges(
    b: Builder, x: TensorView, axis: int, left: Scalar, extent: Scalar
) -> TensorView:
    own = x.shape[axis]
    parts: list[TensorView] = []
    for start, count in ((sc.const(0), left), (own - 1, extent - own - left)):
        shape = list(x.shape)
        shape[axis] = count
        parts.append(views.broadcast_to(b, views.window(b, x, axis, start, 1), shape))
    return concatenate(b, [parts[0], x, parts[1]], axis)


def _itself(b: Builder, x: TensorView, axis: int) -> TensorView:
    del b, axis
    return x


def _and_back(b: Builder, x: TensorView, axis: int) -> TensorView:
    return concatenate(b, [x, views.flip(b, x, axis)], axis)


def _and_back_between(b: Builder, x: TensorView, axis: int) -> TensorView:
    extent = x.shape[axis]
    rest = maximum(extent * 2 - 2, 1) - extent
    back = views.window(b, views.flip(b, x, axis), axis, minimum(rest, 1), rest)
    return concatenate(b, [x, back], axis)


_PERIODS: dict[str, Callable[..., TensorView]] = {
    "wrap": _itself,
    "symmetric": _and_back,
    "reflect": _and_back_between,
}


def _check(b: Builder, extent: Scalar, wanted: Scalar, axis: int) -> None:
    given, then = b.today(extent), b.today(wanted)
    if given is None or then is None:
        return
    if problem := no_extension(given, then, axis):
        raise ShapeError(problem)


def _edge(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    return minimum(maximum(place - left, 0), extent - 1)


def _turned(place: Scalar, left: Scalar, period: Scalar) -> Scalar:
    """Return ``place - left`` modulo a period, all that is divided being natural.

    Kernels divide natural numbers; the host works out ``-left % period``.
    """
    return (place + -left % period) % period


def _wrap(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    return _turned(place, left, extent)


def _symmetric(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    turned = _turned(place, left, extent * 2)
    return minimum(turned, extent * 2 - 1 - turned)


def _reflect(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    period = maximum(extent * 2 - 2, 1)  # one element is its own reflection
    turned = _turned(place, left, period)
    return minimum(turned, period - turned)


_MODES: dict[str, Callable[[Scalar, Scalar, Scalar], Scalar]] = {
    "edge": _edge,
    "wrap": _wrap,
    "symmetric": _symmetric,
    "reflect": _reflect,
}
