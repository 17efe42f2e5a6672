# SPDX-License-Identifier: Apache-2.0
"""Arrays made of their indices, and of numbers in geometric progression."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.trace.numpy.names.refusals as refusals
from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.standins.sizes import is_sequence
from nfuser.errors import ArgumentError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _axes(t: Tracer, name: str, sizes: Any, dtype: Any) -> list[Any]:
    """Return the indices along each axis, with an axis of size 1 for each other."""
    if not is_sequence(sizes):
        message = f"{name}: expected a tuple of sizes, found {sizes!r}"
        raise ArgumentError(message)
    shape = tuple(sizes)
    rank = len(shape)
    return [
        t.handlers["arange"](t, size).astype(dtype)[
            (*(None,) * axis, slice(None), *(None,) * (rank - axis - 1))
        ]
        for axis, size in enumerate(shape)
    ]


def ix_(t: Tracer, *args: Any) -> tuple[Any, ...]:
    """Return ``numpy.ix_`` of places."""
    found: list[Any] = []
    for k, each in enumerate(args):
        x = array(t, each)
        if x.ndim != 1:
            message = "Cross index must be 1 dimensional"
            raise ShapeError(message)
        if x.dtype == bool:
            raise UnsupportedError(refusals.MASK)
        after = (None,) * (len(args) - k - 1)
        found.append(x[((None,) * k + (slice(None), *after))])
    return tuple(found)


def indices(t: Tracer, dimensions: Any, dtype: Any = int, sparse: Any = False) -> Any:
    """Return ``numpy.indices``."""
    made = _axes(t, "indices", dimensions, dtype)
    if sparse:
        return tuple(made)
    if not made:
        return t.handlers["zeros"](t, (0,), dtype)
    return np.stack(np.broadcast_arrays(*made))


def fromfunction(
    t: Tracer, function: Any, shape: Any, *, dtype: Any = float, **options: Any
) -> Any:
    """Return ``numpy.fromfunction``."""
    made = _axes(t, "fromfunction", shape, dtype)
    return function(*(np.broadcast_arrays(*made) if made else ()), **options)


def logspace(
    t: Tracer,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    """Return ``numpy.logspace`` between two numbers."""
    if array(t, base).ndim:
        message = "logspace: expected a number as base; write base ** linspace(...)"
        raise ArgumentError(message)
    powers = t.handlers["linspace"](t, start, stop, num, endpoint, axis=axis)
    found = np.power(base, powers)
    return found if dtype is None else found.astype(dtype)


def geomspace(
    t: Tracer,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    dtype: Any = None,
    axis: Any = 0,
) -> Any:
    """Return ``numpy.geomspace`` between two numbers of one sign."""
    if any(type(x) in (int, float) and x == 0 for x in (start, stop)):
        message = "geomspace: Geometric sequence cannot include zero"
        raise ShapeError(message)
    first, last = (array(t, x) + np.float64(0) for x in (start, stop))
    sign = np.sign(first)
    low, high = first / sign, last / sign
    powers = logspace(t, np.log10(low), np.log10(high), num, endpoint, axis=axis)
    places = t.handlers["arange"](t, powers.shape[0])
    powers = np.where(places == 0, low, powers)
    if endpoint:
        is_last = (places > 0) & (places == powers.shape[0] - 1)
        powers = np.where(is_last, high, powers)
    found = powers * sign
    return found if dtype is None else found.astype(dtype)


HANDLERS = {
    "fromfunction": fromfunction,
    "geomspace": geomspace,
    "indices": indices,
    "ix_": ix_,
    "logspace": logspace,
}
