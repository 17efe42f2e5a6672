# SPDX-License-Identifier: Apache-2.0
"""Polynomials, as arrays of their coefficients with the highest power first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.composed.parts import array
from nfuser.compiler.trace.numpy.dispatch.keywords import plain
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def _factors(t: Tracer, name: str, p: Any) -> Any:
    x = np.atleast_1d(array(t, p))
    if x.ndim != 1:
        message = f"{name}: expected coefficients in one dimension, found {x.ndim}"
        raise ShapeError(message)
    return x


def _order(name: str, m: Any) -> int:
    times = plain(m)
    if times < 0:
        message = f"{name}: expected an order m of 0 or more, found {times}"
        raise ShapeError(message)
    return int(times)


def polyval(t: Tracer, p: Any, x: Any) -> Any:
    """Return ``numpy.polyval``."""
    factors, x = array(t, p), array(t, x)
    found = np.zeros_like(x)
    for k in range(int(factors.shape[0])):
        found = found * x + factors[k]
    return found


def _combined(name: str, ufunc: Any) -> Any:
    def handler(t: Tracer, a1: Any, a2: Any) -> Any:
        x, y = (_factors(t, name, a) for a in (a1, a2))
        gap = x.shape[0] - y.shape[0]
        if gap == 0:
            return ufunc(x, y)
        if gap > 0:
            return ufunc(x, np.pad(y, (gap, 0)))
        return ufunc(np.pad(x, (-gap, 0)), y)

    return handler


def polyder(t: Tracer, p: Any, m: Any = 1) -> Any:
    """Return ``numpy.polyder``."""
    x = _factors(t, "polyder", p)
    for _ in range(_order("polyder", m)):
        x = x[:-1] * t.handlers["arange"](t, x.shape[0] - 1, 0, -1)
    return x


def polyint(t: Tracer, p: Any, m: Any = 1, k: Any = None) -> Any:
    """Return ``numpy.polyint``."""
    x, times = _factors(t, "polyint", p), _order("polyint", m)
    ends = None if k is None else _factors(t, "polyint", k)
    given = times if ends is None else int(ends.shape[0])
    if given < times and given != 1:
        message = (
            "polyint: k must be a scalar or a rank-1 array of length 1 or >m, found "
            f"{given} for m={times}"
        )
        raise ShapeError(message)
    for turn in range(times):
        end = np.float64(0)
        if ends is not None:
            end = ends[turn if given > 1 else 0]
            end = end * np.float64(1) if given == 1 and times > 1 else end
        slopes = x / t.handlers["arange"](t, x.shape[0], 0, -1)
        x = np.concatenate([slopes, np.atleast_1d(array(t, end))])
    return x


HANDLERS = {
    "polyadd": _combined("polyadd", np.add),
    "polyder": polyder,
    "polyint": polyint,
    "polysub": _combined("polysub", np.subtract),
    "polyval": polyval,
}
