# SPDX-License-Identifier: Apache-2.0
"""Products of vectors, matrices and tensors."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ops import normal_axis
from nfuser.compiler.trace.numpy.composed.parts import array, conjugate, viewed
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def outer(t: Tracer, a: Any, b: Any, out: Any = None) -> Any:
    """Return ``numpy.outer``."""
    given("outer", {"out": out})
    return array(t, a).ravel()[:, None] * array(t, b).ravel()


def outer_of(name: str) -> Any:
    """Return the handler of ``numpy.ufunc.outer`` of the ufunc called ``name``."""

    def handler(t: Tracer, a: Any, b: Any, /, **options: Any) -> Any:
        given(f"{name}.outer", options)
        x, y = array(t, a), array(t, b)
        return t.handlers[name](t, x[(..., *(None,) * y.ndim)], y)

    return handler


def dot(t: Tracer, a: Any, b: Any, out: Any = None) -> Any:
    """Return ``numpy.dot``."""
    given("dot", {"out": out})
    x, y = array(t, a), array(t, b)
    if not x.ndim or not y.ndim:
        return x * y
    if x.ndim <= 2 and y.ndim <= 2:
        return x @ y
    return tensordot(t, x, y, (-1, max(-2, -y.ndim)))


def inner(t: Tracer, a: Any, b: Any) -> Any:
    """Return ``numpy.inner``."""
    x, y = array(t, a), array(t, b)
    return tensordot(t, x, y, (-1, -1)) if x.ndim and y.ndim else x * y


def vdot(t: Tracer, a: Any, b: Any) -> Any:
    """Return ``numpy.vdot``."""
    return conjugate(array(t, a)).ravel() @ array(t, b).ravel()


def tensordot(t: Tracer, a: Any, b: Any, axes: Any = 2) -> Any:
    """Return ``numpy.tensordot``."""
    x, y, axes = array(t, a), array(t, b), plain(axes)
    if isinstance(axes, int):
        axes = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
    left, right = (k if isinstance(k, tuple) else (k,) for k in axes)
    left = [normal_axis(k, x.ndim) for k in left]
    right = [normal_axis(k, y.ndim) for k in right]
    pairs = list(zip(left, right, strict=False))
    if len(left) != len(right) or any(x.shape[m] != y.shape[n] for m, n in pairs):
        message = (
            f"tensordot: expected axes of equal sizes, found axes {left} of shape "
            f"{tuple(map(int, x.shape))} and {right} of {tuple(map(int, y.shape))}"
        )
        raise ShapeError(message)
    rows = [k for k in range(x.ndim) if k not in left]
    columns = [k for k in range(y.ndim) if k not in right]
    shape = (*(x.shape[k] for k in rows), *(y.shape[k] for k in columns))
    depth = prod(x.shape[k] for k in left)
    x = x.transpose(*rows, *left).reshape(prod(x.shape[k] for k in rows), depth)
    count = prod(y.shape[k] for k in columns)
    return (x @ y.transpose(*right, *columns).reshape(depth, count)).reshape(shape)


def vecdot(
    t: Tracer, x1: Any, x2: Any, /, *, axis: Any = -1, keepdims: Any = False
) -> Any:
    """Return ``numpy.vecdot``."""
    x, y = (np.moveaxis(array(t, x), plain(axis), -1) for x in (x1, x2))
    if x.shape[-1] != y.shape[-1]:
        message = (
            f"vecdot: expected vectors of one length, found {int(x.shape[-1])} and "
            f"{int(y.shape[-1])}"
        )
        raise ShapeError(message)
    product = conjugate(x) * y
    found = np.sum(product, -1, dtype=product.dtype)
    return np.expand_dims(found, plain(axis)) if keepdims else found


def matvec(t: Tracer, x1: Any, x2: Any, /) -> Any:
    """Return ``numpy.matvec``."""
    return (array(t, x1) @ array(t, x2)[..., None])[..., 0]


def vecmat(t: Tracer, x1: Any, x2: Any, /) -> Any:
    """Return ``numpy.vecmat``."""
    return (conjugate(array(t, x1))[..., None, :] @ array(t, x2))[..., 0, :]


def kron(t: Tracer, a: Any, b: Any) -> Any:
    """Return ``numpy.kron``."""
    x, y = array(t, a), array(t, b)
    rank = max(x.ndim, y.ndim)
    x, y = (z[(*(None,) * (rank - z.ndim), ...)] for z in (x, y))
    shape = [m * n for m, n in zip(x.shape, y.shape, strict=True)]
    x = np.expand_dims(x, tuple(range(1, 2 * rank, 2)))
    y = np.expand_dims(y, tuple(range(0, 2 * rank, 2)))
    return (x * y).reshape(shape)


def cross(
    t: Tracer,
    a: Any,
    b: Any,
    axisa: Any = -1,
    axisb: Any = -1,
    axisc: Any = -1,
    axis: Any = None,
) -> Any:
    """Return ``numpy.cross`` of vectors of three elements."""
    places = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    x, y = array(t, a), array(t, b)
    x, y = (np.moveaxis(z, plain(k), -1) for z, k in zip((x, y), places, strict=False))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        message = (
            f"cross: expected vectors of 3 elements, found {int(x.shape[-1])} and "
            f"{int(y.shape[-1])}; for the plane write x0 * y1 - x1 * y0"
        )
        raise ShapeError(message)
    (x0, x1, x2), (y0, y1, y2) = ([z[..., k] for k in range(3)] for z in (x, y))
    parts = [x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0]
    return np.moveaxis(np.stack(parts, -1), -1, plain(places[2]))


HANDLERS = {
    "cross": cross,
    "dot": dot,
    "inner": inner,
    "kron": kron,
    "matvec": matvec,
    "outer": outer,
    "tensordot": tensordot,
    "vdot": vdot,
    "vecdot": vecdot,
    "vecmat": vecmat,
    "linalg.cross": lambda t, x1, x2, /, *, axis=-1: cross(t, x1, x2, axis=axis),
    "linalg.matmul": lambda t, x1, x2, /: array(t, x1) @ array(t, x2),
    "linalg.matrix_transpose": lambda t, x, /: viewed(t, x).mT,
    "linalg.outer": lambda t, x1, x2, /: outer(t, x1, x2),
    "linalg.tensordot": lambda t, x1, x2, /, *, axes=2: tensordot(t, x1, x2, axes),
    "linalg.vecdot": vecdot,
}
