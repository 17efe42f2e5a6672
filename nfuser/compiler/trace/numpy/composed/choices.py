# SPDX-License-Identifier: Apache-2.0
"""Choices among arrays, comparisons of whole ones, and other short ones."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.numpy.composed.parts import array, viewed
from nfuser.compiler.trace.numpy.dispatch.keywords import given, plain
from nfuser.errors import ArgumentError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from nfuser.compiler.trace.tracer import Tracer


def select(t: Tracer, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Return ``numpy.select``."""
    conditions = [array(t, c) for c in condlist]
    if len(conditions) != len(choicelist) or not conditions:
        message = (
            "select: expected as many conditions as choices, and one at least, found "
            f"{len(conditions)} and {len(choicelist)}"
        )
        raise ArgumentError(message)
    kind = np.result_type(*choicelist, default)
    found = array(t, default).astype(kind)
    pairs = zip(conditions, choicelist, strict=True)
    for condition, choice in reversed(list(pairs)):
        found = np.where(
            _bools("select", condition), array(t, choice).astype(kind), found
        )
    return found


def _bools(name: str, x: Any) -> Any:
    if x.dtype != bool:
        message = f"{name}: expected conditions of dtype bool, found {x.dtype}"
        raise ArgumentError(message)
    return x


def piecewise(
    t: Tracer, x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any
) -> Any:
    """Return ``numpy.piecewise`` of numbers."""
    x = array(t, x)
    if args or kw or any(callable(f) for f in funclist):
        message = (
            "piecewise: a function would be given the elements where its condition "
            "holds, a number of them that depends on values; write where(condition, "
            "f(x), g(x)) or select([condition], [f(x)])"
        )
        raise UnsupportedError(message)
    parts = condlist if isinstance(condlist, (list, tuple)) else [condlist]
    conditions = [_bools("piecewise", array(t, c)) for c in parts]
    if len(funclist) - len(conditions) not in (0, 1):
        message = (
            f"piecewise: with {len(conditions)} condition(s), either "
            f"{len(conditions)} or {len(conditions) + 1} functions are expected"
        )
        raise ArgumentError(message)
    is_rest = len(funclist) > len(conditions)
    found = np.zeros_like(x) + (funclist[-1] if is_rest else 0)
    for condition, number in zip(conditions, funclist, strict=False):
        found = np.where(condition, number, found)
    return found.astype(x.dtype)


def allclose(
    t: Tracer,
    a: Any,
    b: Any,
    rtol: Any = 1e-5,
    atol: Any = 1e-8,
    equal_nan: Any = False,
) -> Any:
    """Return ``numpy.allclose``, as an array of no dimensions."""
    close = np.isclose(array(t, a), array(t, b), rtol, atol, equal_nan)
    return np.all(close)


def array_equal(t: Tracer, a1: Any, a2: Any, equal_nan: Any = False) -> Any:
    """Return ``numpy.array_equal``, as an array of no dimensions."""
    x, y = array(t, a1), array(t, a2)
    if x.ndim != y.ndim or any(m != n for m, n in zip(x.shape, y.shape, strict=True)):
        return t.handlers["zeros"](t, (), bool)
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (np.isnan(x) & np.isnan(y))
    return np.all(same)


def array_equiv(t: Tracer, a1: Any, a2: Any) -> Any:
    """Return ``numpy.array_equiv``, as an array of no dimensions."""
    x, y = array(t, a1), array(t, a2)
    pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
    if any(m not in (1, n) and n != 1 for m, n in pairs):
        return t.handlers["zeros"](t, (), bool)
    return np.all(x == y)


def modf(t: Tracer, x: Any, **options: Any) -> Any:
    """Return ``numpy.modf``."""
    given("modf", options)
    x = array(t, x)
    x = x.astype(np.fabs(x).dtype) if x.dtype.kind in "biu" else x
    whole = np.trunc(x)
    part = np.where(np.isinf(x), x.dtype.type(0), x - whole)
    return np.copysign(part, x), whole


def vander(t: Tracer, x: Any, N: Any = None, increasing: Any = False) -> Any:  # noqa: N803 (NumPy's name)
    """Return ``numpy.vander``."""
    x, count = array(t, x), plain(N)
    if x.ndim != 1:
        message = f"vander: expected one dimension, found {x.ndim}"
        raise ShapeError(message)
    x = x.astype(np.promote_types(x.dtype, int))[:, None]
    columns = x.shape[0] if count is None else count
    factors = np.broadcast_to(x, (x.shape[0], columns))
    is_first = t.handlers["arange"](t, columns) == 0
    powers = np.cumprod(np.where(is_first, x.dtype.type(1), factors), axis=1)
    powers = powers.astype(x.dtype)
    return powers if increasing else powers[:, ::-1]


def rot90(t: Tracer, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    """Return ``numpy.rot90``."""
    x, (first, second) = viewed(t, m), plain(axes)
    if x.ndim < 2 or first % x.ndim == second % x.ndim:
        message = f"rot90: expected two different axes of an array, found {axes}"
        raise ShapeError(message)
    turns = plain(k) % 4
    if turns == 0:
        return x[:]
    if turns == 2:
        return np.flip(x, (first, second))
    if turns == 1:
        return np.swapaxes(np.flip(x, second), first, second)
    return np.flip(np.swapaxes(x, first, second), second)


def meshgrid(
    t: Tracer, *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy"
) -> Any:
    """Return ``numpy.meshgrid``: new arrays, or views where nothing is copied."""
    if indexing not in ("xy", "ij"):
        message = f"meshgrid: expected indexing of 'xy' or 'ij', found {indexing!r}"
        raise ArgumentError(message)
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    rows = [array(t, x) if copy else viewed(t, x) for x in xi]
    arrays = [x if x.ndim == 1 else x.ravel() for x in rows]
    made = [
        x[(*(None,) * axis, slice(None), *(None,) * (len(xi) - axis - 1))]
        for x, axis in zip(arrays, order, strict=True)
    ]
    found = tuple(made) if sparse or not made else np.broadcast_arrays(*made)
    return tuple(t.wrap(t.tensor(x)) for x in found) if copy else found


HANDLERS = {
    "allclose": allclose,
    "array_equal": array_equal,
    "array_equiv": array_equiv,
    "meshgrid": meshgrid,
    "modf": modf,
    "piecewise": piecewise,
    "rot90": rot90,
    "select": select,
    "vander": vander,
}
