# SPDX-License-Identifier: Apache-2.0
"""Verbs that read elements where an index array says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Take
from nfuser.compiler.ops.elementwise.arithmetic import maximum, remainder
from nfuser.errors import AxisError, DTypeError, ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def take(b: Builder, x: TensorView, index: TensorView, axis: int) -> TensorView:
    """Return the elements of ``x`` along ``axis`` that ``index`` names."""
    return _taken(b, x, index, axis)


def take_inside(b: Builder, x: TensorView, index: TensorView) -> TensorView:
    """Return the elements of a row that ``index`` names, all of them there."""
    return _taken(b, x, index, 0, inside=True)


def index_by(b: Builder, x: TensorView, index: TensorView, axis: int) -> TensorView:
    """Return what ``take`` does, laid in memory as NumPy's ``x[:, index]`` is."""
    return _taken(b, x, index, axis, leads=True)


def _taken(
    b: Builder, x: TensorView, index: TensorView, axis: int, **options: bool
) -> TensorView:
    _check_index("take", index)
    axis = views.normal_axis(axis, x.ndim)
    shape = (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
    result = b.new(shape, x.dtype)
    b.emit(Take(x, index, result, axis, **options))
    return result


def clipped_index(b: Builder, index: TensorView) -> TensorView:
    """Return an index that counts nothing from the end: mode clip of ``take``."""
    return maximum(b, index, 0)


def wrapped_index(b: Builder, index: TensorView, extent: Scalar) -> TensorView:
    """Return an index that starts over past either end: mode wrap of ``take``."""
    return remainder(b, b.cast(index, DType.I64), b.from_scalar(extent, DType.I64))


def take_along_axis(
    b: Builder, x: TensorView, index: TensorView, axis: int
) -> TensorView:
    """Return, for each element of ``index``, one element of ``x`` along ``axis``."""
    _check_index("take_along_axis", index)
    axis = views.normal_axis(axis, x.ndim)
    if index.ndim != x.ndim:
        message = "take_along_axis: the index and the array must have as many axes"
        raise ShapeError(message)
    shape = list(index.shape)
    for k in range(x.ndim):
        if k != axis:
            meet = b.meet([x.shape[k], index.shape[k]])
            if meet is None:
                given = [b.shape_text(t.shape) for t in (x, index)]
                message = f"take_along_axis: shapes {given[0]} {given[1]} do not meet"
                raise ShapeError(message)
            shape[k] = meet
    result = b.new(shape, x.dtype)
    b.emit(Take(x, index, result, axis, along=True))
    return result


def _check_index(name: str, index: TensorView) -> None:
    if index.dtype.is_integer:
        return
    message = f"{name}: an index has an integer dtype, not {index.dtype}"
    # As NumPy's: one is a TypeError, the other an IndexError.
    raise DTypeError(message) if name == "take" else AxisError(message)
