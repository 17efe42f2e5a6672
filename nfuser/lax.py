# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: A001 (functions have the names that JAX gives them)
"""Loops and choices under JAX's names: inside fused functions they stay what they are.

A loop is compiled once, however often it runs; its body is traced once. On plain
arrays, outside of fused functions, Python runs them.

>>> import numpy as np
>>> import nfuser
>>> @nfuser.fuse
... def smooth(u, steps):
...     def step(_, u):
...         return (u + np.roll(u, 1)) / 2
...     return nfuser.lax.fori_loop(0, steps, step, u)
>>> smooth(np.array([0.0, 8.0, 0.0, 0.0]), 2)
array([0., 2., 4., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import nfuser.compiler.trace.call.tree as tree
import nfuser.compiler.trace.loops.forms as forms
from nfuser.compiler.trace.tracer import current_tracer
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
X = TypeVar("X")

__all__ = ["cond", "fori_loop", "map", "scan", "while_loop"]


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, T], T], init_val: T
) -> T:
    """Return what ``for i in range(lower, upper): val = body_fun(i, val)`` leaves.

    Parameters
    ----------
    lower, upper
        The bounds of ``i``; in fused functions also sizes, integer arguments, and
        arrays without axes.
    body_fun
        Takes ``i`` and the value, and returns the next value: a nest of arrays and
        numbers of the same structure, shapes and dtypes.
    init_val
        The value before the first iteration.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        If the value does not keep its shapes, its dtypes or its structure.

    Examples
    --------
    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    10
    """
    tracer = current_tracer()
    if tracer is not None:
        return forms.fori_loop(tracer, lower, upper, body_fun, init_val)
    value = _own(init_val)
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value


def while_loop(
    cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T
) -> T:
    """Return what ``while cond_fun(val): val = body_fun(val)`` leaves.

    Parameters
    ----------
    cond_fun
        Takes the value, and returns one truth value.
    body_fun
        Takes the value, and returns the next one, of the same structure, shapes and
        dtypes.
    init_val
        The value before the first iteration.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        If the value does not keep its shapes, its dtypes or its structure.

    Examples
    --------
    >>> while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    192
    """
    tracer = current_tracer()
    if tracer is not None:
        return forms.while_loop(tracer, cond_fun, body_fun, init_val)
    value = _own(init_val)
    while cond_fun(value):
        value = body_fun(value)
    return value


def scan(
    f: Callable[[T, Any], tuple[T, Any]],
    init: T,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[T, Any]:
    """Return the last carried value of a loop over rows, and what each step gave.

    Parameters
    ----------
    f
        Takes the carried value and a row of ``xs``; returns the next carried value
        and ``y``, a nest of arrays.
    init
        The carried value before the first step.
    xs
        A nest of arrays whose first axes are equally long, or None.
    length
        The number of steps, if ``xs`` does not say it.
    reverse
        Whether rows are taken from the last one on; ``y`` of each step lies where its
        row lay.

    Returns
    -------
    tuple
        The last carried value, and all ``y``, stacked along a new first axis.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        If the carried value does not keep its shapes, its dtypes or its structure.

    Examples
    --------
    >>> scan(lambda s, x: (s + x, s * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    """
    tracer = current_tracer()
    if tracer is not None:
        return forms.scan(tracer, f, init, xs, length, reverse=reverse)
    arrays, form = tree.flatten(xs)
    count = _length(arrays, length)
    made: list[list[Any]] = []
    shape, carry = tree.NOTHING, _own(init)
    for k in reversed(range(count)) if reverse else range(count):
        rows = _own([x[k] for x in arrays])
        carry, y = f(carry, tree.unflatten(form, rows))
        leaves, shape = tree.flatten(_own(y))
        made.append(leaves)
    if not made:  # what a step would give, of rows of zeros
        rows = [np.zeros(np.shape(x)[1:], np.asarray(x).dtype) for x in arrays]
        leaves, shape = tree.flatten(f(init, tree.unflatten(form, rows))[1])
        empty = [np.zeros((0, *np.shape(y)), np.asarray(y).dtype) for y in leaves]
        return carry, tree.unflatten(shape, empty)
    columns = zip(*(reversed(made) if reverse else made), strict=True)
    return carry, tree.unflatten(shape, [np.stack(column) for column in columns])


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return ``f`` of each row of ``xs``, stacked along a new first axis.

    Parameters
    ----------
    f
        Takes a row, and returns a nest of arrays.
    xs
        A nest of arrays whose first axes are equally long.

    Returns
    -------
    Any
        What ``f`` returns, with one axis more.

    Examples
    --------
    >>> map(lambda row: row.sum(), np.ones((2, 3)))
    array([3., 3.])
    """
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def cond(
    pred: Any,
    true_fun: Callable[..., T],
    false_fun: Callable[..., T],
    *operands: Any,
) -> T:
    """Return ``true_fun(*operands) if pred else false_fun(*operands)``.

    In a fused function both functions are traced, and ``pred`` may be an array without
    axes. A function with a reduction, a product or a loop in it runs only if it is
    chosen; what is cheaper is computed on both sides.

    Parameters
    ----------
    pred
        One truth value.
    true_fun, false_fun
        Return nests of arrays of the same structure, shapes and dtypes.
    operands
        What both take.

    Examples
    --------
    >>> cond(3 > 2, lambda x: x + 1, lambda x: x - 1, 10)
    11
    """
    tracer = current_tracer()
    if tracer is None or type(pred) in (bool, np.bool):
        return true_fun(*operands) if pred else false_fun(*operands)
    return forms.cond(tracer, pred, true_fun, false_fun, operands)


def _own(nest: T) -> T:
    """Return ``nest`` with arrays of its own, which a body may write into."""
    leaves, shape = tree.flatten(nest)
    return tree.unflatten(shape, [_copied(x) for x in leaves])


def _copied(x: Any) -> Any:
    copy = getattr(x, "clone" if hasattr(x, "clone") else "copy", None)
    return x if copy is None else copy()


def _length(arrays: list[Any], length: int | None) -> int:
    known = {len(x) for x in arrays} | ({length} if length is not None else set[int]())
    if len(known) == 1:
        return known.pop()
    if not known:
        message = "pass length=n to scan: there is no xs that says how many steps to do"
        raise ArgumentError(message)
    message = f"scan: expected one number of steps, found {sorted(known)}"
    raise ArgumentError(message)
