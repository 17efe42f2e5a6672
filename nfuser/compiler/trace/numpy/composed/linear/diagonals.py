# SPDX-License-Identifier: Apache-2.0
"""Diagonals of matrices, and matrices of diagonals."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops import normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, viewed
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.trace.tracer import Tracer


def diagonal(t: Tracer, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    """Return ``numpy.diagonal``: a view, which is not written."""
    x, offset = viewed(t, a), plain(offset)
    if x.ndim < 2:
        message = f"diagonal: expected two dimensions or more, found {x.ndim}"
        raise ShapeError(message)
    row, column = (normal_axis(plain(k), x.ndim) for k in (axis1, axis2))
    if row == column:
        message = "diagonal: axis1 and axis2 cannot be the same"
        raise ShapeError(message)
    return t.view(lambda _, held: _along(t, t.wrap(held), offset, (row, column)), x)


def _along(t: Tracer, x: Any, offset: Any, axes: tuple[int, int]) -> TensorView:
    x = np.moveaxis(x, axes, (-2, -1))
    x = x[..., offset:] if offset >= 0 else x[..., -offset:, :]
    rows, columns = x.shape[-2:]
    length = min(rows, columns)
    places = t.handlers["arange"](t, length)
    x = x[..., :length, :]
    shape = (*(1,) * (x.ndim - 2), length, 1)
    places = np.broadcast_to(np.reshape(places, shape), (*x.shape[:-1], 1))
    return t.tensor(np.take_along_axis(x, places, -1)[..., 0])


def trace(
    t: Tracer,
    a: Any,
    offset: Any = 0,
    axis1: Any = 0,
    axis2: Any = 1,
    dtype: Any = None,
    out: Any = None,
) -> Any:
    """Return ``numpy.trace``."""
    given("trace", {"out": out})
    return np.sum(diagonal(t, a, offset, axis1, axis2), -1, dtype)


def diag(t: Tracer, v: Any, k: Any = 0) -> Any:
    """Return ``numpy.diag``: of a matrix a view, which is not written."""
    x = viewed(t, v)
    if x.ndim == 2:
        return diagonal(t, x, k)
    if x.ndim != 1:
        message = f"diag: expected one dimension or two, found {x.ndim}"
        raise ShapeError(message)
    return diagflat(t, x, k)


def diagflat(t: Tracer, v: Any, k: Any = 0) -> Any:
    """Return ``numpy.diagflat``."""
    x, offset = array(t, v).ravel(), plain(k)
    length = x.shape[0]
    places = t.handlers["arange"](t, length)
    square = np.where(places[:, None] == places, x, x.dtype.type(0))
    above, below = max(offset, 0), max(-offset, 0)
    return np.pad(square, ((below, above), (above, below))) if offset else square


HANDLERS = {
    "diag": diag,
    "diagflat": diagflat,
    "diagonal": diagonal,
    "trace": trace,
    "linalg.diagonal": lambda t, x, /, *, offset=0: diagonal(t, x, offset, -2, -1),
    "linalg.trace": lambda t, x, /, *, offset=0, dtype=None: trace(
        t, x, offset, -2, -1, dtype
    ),
}
