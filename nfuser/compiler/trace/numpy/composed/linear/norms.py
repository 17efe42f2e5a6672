# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A002 (an argument has the name that NumPy gives it)
"""Norms of vectors and matrices."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops.shapes.views import normal_axes, normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, as_float
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def norm(
    t: Tracer, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False
) -> Any:
    """Return ``numpy.linalg.norm``."""
    x, axis = as_float(array(t, x)), plain(axis)
    if axis is None and (ord is None or x.ndim not in (1, 2)):
        if ord is not None:
            message = (
                f"norm: expected a vector or a matrix for ord={ord!r}, found {x.ndim} "
                "dimensions; name one axis or two"
            )
            raise ArgumentError(message)
        return _vector(x, 2, None, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple) else (axes,)
    if len(axes) == 1:
        return _vector(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) != 2:
        message = f"norm: expected one axis or two, found {len(axes)}"
        raise ArgumentError(message)
    return _matrix(x, ord, axes, keepdims)


def vector_norm(
    t: Tracer, x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2
) -> Any:
    """Return ``numpy.linalg.vector_norm``."""
    return _vector(as_float(array(t, x)), ord, plain(axis), keepdims)


def matrix_norm(
    t: Tracer, x: Any, /, *, keepdims: Any = False, ord: Any = "fro"
) -> Any:
    """Return ``numpy.linalg.matrix_norm``."""
    return _matrix(as_float(array(t, x)), ord, (-2, -1), keepdims)


def _squares(x: Any) -> Any:
    return x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x


def _vector(x: Any, order: Any, axis: Any, keepdims: Any) -> Any:
    if isinstance(order, str):
        message = f"norm: expected a number as ord of a vector, found {order!r}"
        raise ArgumentError(message)
    if order == 2:
        return np.sqrt(np.sum(_squares(x), axis, keepdims=keepdims))
    size = np.abs(x)
    if order == np.inf:
        return _largest(size, axis, keepdims)
    if order == -np.inf:
        return np.min(size, axis, keepdims=keepdims)
    if order == 0:
        return np.sum((x != 0).astype(size.dtype), axis, keepdims=keepdims)
    if order == 1:
        return np.sum(size, axis, keepdims=keepdims)
    return np.sum(size**order, axis, keepdims=keepdims) ** (1 / order)


def _largest(x: Any, axis: Any, keepdims: Any) -> Any:
    """Return the largest of what is not negative; of nothing that is 0."""
    axes = normal_axes(axis, x.ndim)
    fold = np.sum if any(x.shape[k] == 0 for k in axes) else np.max
    return fold(x, axis, keepdims=keepdims)


def _smallest(x: Any, axis: Any, keepdims: Any) -> Any:
    return np.min(x, axis, keepdims=keepdims)


def _matrix(x: Any, order: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    if order in (None, "fro", "f"):
        return np.sqrt(np.sum(_squares(x), axes, keepdims=keepdims))
    folds = {1: _largest, -1: _smallest, np.inf: _largest, -np.inf: _smallest}
    if order not in folds:
        message = (
            f"norm: ord={order!r} of a matrix takes its singular values, which have no "
            "fused form; use 'fro', 1, -1, inf or -inf, or call it outside the fused "
            "function"
        )
        raise UnsupportedError(message)
    row, column = (normal_axis(k, x.ndim) for k in axes)
    summed, kept = (row, column) if abs(order) == 1 else (column, row)
    totals = np.sum(np.abs(x), summed, keepdims=True)
    found = folds[order](totals, kept, True)
    return found if keepdims else np.squeeze(found, (row, column))


HANDLERS = {
    "linalg.norm": norm,
    "linalg.vector_norm": vector_norm,
    "linalg.matrix_norm": matrix_norm,
}
