# SPDX-License-Identifier: Apache-2.0
"""Verbs that put elements in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.complex.parts as parts
import nfuser.compiler.ops.elementwise.logic as logic
import nfuser.compiler.ops.shapes.moves as moves
import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Sort
from nfuser.compiler.ops.shapes.gather import take_along_axis
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def sort(
    b: Builder,
    x: TensorView,
    axis: int | None = -1,
    *,
    descending: bool = False,
    kth: tuple[int, ...] = (),
) -> TensorView:
    """Return ``numpy.sort``; NaN is larger than all else.

    Of which only the places ``kth`` are asked for, it is ``numpy.partition``.
    """
    x, place = _along(b, x, axis, "sort")
    if x.dtype.is_complex:
        found = take_along_axis(b, x, argsort(b, x, place), place)
    else:
        found = b.cast(_sorted(b, x, place, places=False, kth=kth), x.dtype)
    return views.flip(b, found, place) if descending else found


def argsort(
    b: Builder,
    x: TensorView,
    axis: int | None = -1,
    *,
    stable: bool = False,
    descending: bool = False,
    kth: tuple[int, ...] = (),
) -> TensorView:
    """Return ``numpy.argsort``: where each element was, in order.

    Of which only the places ``kth`` are asked for, it is ``numpy.argpartition``.
    """
    x, place = _along(b, x, axis, "argsort", own=1)
    if descending:
        # From behind, so that equal ones come out in the order they have.
        behind = argsort(b, views.flip(b, x, place), place, stable=stable)
        last = b.from_scalar(x.shape[place] - 1, behind.dtype)
        return b.point("subtract", last, views.flip(b, behind, place))
    if x.dtype.is_complex:
        return _by_keys(b, _complex_keys(b, x), place)
    return _sorted(b, x, place, places=True, stable=stable, kth=kth)


def lexsort(b: Builder, keys: Sequence[TensorView], axis: int = -1) -> TensorView:
    """Return the order by the last of ``keys``, where equal by the one before it."""
    if not keys:
        message = "lexsort: need sequence of keys with len > 0"
        raise ArgumentError(message)
    first, *others = keys
    shape = first.shape
    stretched = (views.broadcast_to(b, key, shape) for key in others)
    given = [_along(b, key, axis, "lexsort", own=1) for key in (first, *stretched)]
    return _by_keys(b, [key for key, _ in given], given[0][1])


def _along(
    b: Builder, x: TensorView, axis: int | None, name: str, own: int = 0
) -> tuple[TensorView, int]:
    """Return what has the axis to sort along, and its place.

    ``own`` is how many axes NumPy takes a number to have.
    """
    if axis is None:
        return moves.reshape(b, x, [-1]), 0
    if x.ndim or not own:
        return x, views.normal_axis(axis, x.ndim)
    views.normal_axis(axis, own)
    return views.expand_dims(b, x, (0,)), 0


def _sorted(
    b: Builder,
    x: TensorView,
    axis: int,
    *,
    places: bool,
    stable: bool = False,
    kth: tuple[int, ...] = (),
) -> TensorView:
    # Libraries sort small integers fast, and not all of them truth values.
    x = b.cast(x, DType.U8) if x.dtype.is_bool else x
    result = b.new(x.shape, DType.I64 if places else x.dtype)
    b.emit(Sort(x, result, axis, places, stable, kth))
    return result


def _by_keys(b: Builder, keys: Sequence[TensorView], axis: int) -> TensorView:
    """Sort by one key after another, the last decides: each keeps what was equal."""
    order: TensorView | None = None
    for key in keys:
        if key.dtype.is_complex:
            order = _by(b, _complex_keys(b, key), axis, order)
        else:
            order = _by(b, [key], axis, order)
    assert order is not None
    return order


def _by(
    b: Builder, keys: Sequence[TensorView], axis: int, order: TensorView | None
) -> TensorView:
    for key in keys:
        if order is None:
            order = _sorted(b, key, axis, places=True, stable=True)
            continue
        there = take_along_axis(b, key, order, axis)
        next_ = _sorted(b, there, axis, places=True, stable=True)
        order = take_along_axis(b, order, next_, axis)
    assert order is not None
    return order


def _complex_keys(b: Builder, x: TensorView) -> list[TensorView]:
    """Return what NumPy sorts complex numbers by: the last key first."""
    re, im = parts.real(b, x), parts.imag(b, x)
    nans = (b.cast(logic.isnan(b, t), DType.U8) for t in (re, im))
    first, second = nans
    return [im, re, b.point("add", b.point("add", first, first), second)]
