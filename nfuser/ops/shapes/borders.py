# SPDX-License-Identifier: Apache-2.0
"""Borders made of an array's own elements: the modes of pad that are index maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.errors import ArgumentError, ShapeError
from nfuser.ir import scalar as sc
from nfuser.ops.elementwise.arithmetic import copy
from nfuser.ops.mismatch import no_extension
from nfuser.ops.shapes.moves import remap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.ops.builder import Builder


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
        index[axis] = _MODES[mode](sc.place(axis, shape[axis]), before, extent)
    return remap(b, x, shape, index) if index else copy(b, x, "A")


def _check(b: Builder, extent: Scalar, wanted: Scalar, axis: int) -> None:
    given, then = b.today(extent), b.today(wanted)
    if given is None or then is None:
        return
    if problem := no_extension(given, then, axis):
        raise ShapeError(problem)


def _edge(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    return sc.minimum(sc.maximum(place - left, 0), extent - 1)


def _turned(place: Scalar, left: Scalar, period: Scalar) -> Scalar:
    """Return ``place - left`` modulo a period, all that is divided being natural.

    Kernels divide natural numbers; the host works out ``-left % period``.
    """
    return (place + -left % period) % period


def _wrap(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    return _turned(place, left, extent)


def _symmetric(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    turned = _turned(place, left, extent * 2)
    return sc.minimum(turned, extent * 2 - 1 - turned)


def _reflect(place: Scalar, left: Scalar, extent: Scalar) -> Scalar:
    period = sc.maximum(extent * 2 - 2, 1)  # one element is its own reflection
    turned = _turned(place, left, period)
    return sc.minimum(turned, period - turned)


_MODES: dict[str, Callable[[Scalar, Scalar, Scalar], Scalar]] = {
    "edge": _edge,
    "wrap": _wrap,
    "symmetric": _symmetric,
    "reflect": _reflect,
}
