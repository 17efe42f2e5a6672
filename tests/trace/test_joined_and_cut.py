# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays that NumPy joins inside a call, and elements put in and taken out."""

# What a traced function is given has no static type.
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import DTypeError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable


def inserted(x: Any, a: Any) -> Any:
    return (
        *(np.insert(x, 0, 0), np.insert(x, -1, [1, 2]), np.insert(x, len(x), 7)),
        *(np.insert(a, 1, 0, axis=1), np.insert(a, 0, x, axis=0), np.insert(a, 1, 5)),
        *(np.insert(a, -1, x, axis=1), np.insert(x.astype(int), 1, 3.7)),
        *(np.delete(x, 0), np.delete(x, -1), np.delete(a, 1, axis=0), np.delete(a, 3)),
        *(np.delete(a, -2, axis=1), np.cumsum(np.insert(x, 0, 0))),
    )


def joined(x: Any, a: Any) -> Any:
    return (
        *(np.r_[False, x[1:] > x[:-1], False], np.r_[x, 0, 1.5], np.r_[0:3, x]),
        *(np.r_[0, x.astype(int)], np.r_[a, a[:1]], np.r_[x[0], x], np.r_[x[:0], 1]),
        *(np.c_[x, x * 2], np.c_[a, a[:, 0]], np.c_[np.ones_like(x), x, x > 0]),
        np.r_[x.astype(np.float32), 1.5],
    )


def folded(x: Any, a: Any) -> Any:
    y = x[::-1]
    return (
        *(np.maximum.reduce([x, y, x * y]), np.add.reduce([x, y]), np.add.reduce(a)),
        *(np.logical_and.reduce((x > 0, y > 0)), np.maximum.accumulate([x, y])),
        *(np.multiply.reduce([x[0], y[0]]), np.minimum.reduce([a, a.T], axis=1)),
    )


def crossed(x: Any, a: Any) -> Any:
    first: Any = [0, 1]
    last = np.clip(np.arange(len(x)) + 1, 0, len(x) - 1)
    order, b = np.argsort(x), a.copy()
    b[np.ix_(order[:2], order[1:3])] = 9
    return a[np.ix_(last, last)], a[np.ix_(order, first)], b


def into_outputs(x: Any, a: Any) -> Any:
    y, s, w = np.empty_like(x), np.zeros(len(a)), np.empty(len(a))
    same = np.clip(x, -0.5, 0.5, out=x)
    np.clip(x * 3, -1, 1, out=y)
    a.sum(axis=1, out=s)
    np.dot(a, s, out=w)
    np.round(a, 1, out=a)
    return y, np.cumsum(y, out=y[:]), s, w, same


@pytest.mark.parametrize("function", [inserted, joined, folded, crossed, into_outputs])
def test_they_are_numpys(function: Callable[..., Any]) -> None:
    fused = nfuser.fuse(function)
    for seed, n in ((0, 5), (1, 5), (2, 4)):
        rng = np.random.default_rng(seed)
        x, a = rng.normal(size=n), rng.normal(size=(n, n))
        mine, theirs = [x.copy(), a.copy()], [x.copy(), a.copy()]
        found, wanted = fused(*mine), function(*theirs)
        for one, other in zip([*found, *mine], [*wanted, *theirs], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("function", [np.insert, np.delete])
def test_a_place_that_is_not_there_is_no_place(function: Callable[..., Any]) -> None:
    extra = (0,) if function is np.insert else ()
    for at in (9, -9):
        with pytest.raises(IndexError):
            nfuser.fuse(lambda x, at=at: function(x, at, *extra))(np.ones(4))


def test_columns_of_three_axes_are_joined_along_the_last() -> None:
    def columns(x: Any, n: int) -> Any:
        return np.c_[x, x * 2], np.c_[x[0], x[1, :, :n]], np.r_[x, x]

    x = np.random.default_rng(3).normal(size=(2, 3, 4))
    for found, wanted in zip(nfuser.fuse(columns)(x, 2), columns(x, 2), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("value", [300, -1, 1.5, float("nan"), [300], 1j])
def test_what_the_dtype_lacks_is_not_put_in(value: Any) -> None:
    def put(u: Any, value: Any) -> Any:
        return np.insert(u, 1, value)

    u = np.arange(4, dtype=np.uint8)
    for function in (put, lambda u, _: put(u, value)):
        try:
            wanted = function(u, value)
        except (OverflowError, TypeError, ValueError) as error:
            with pytest.raises((type(error), nfuser.NfuserError)):
                nfuser.fuse(function)(u, value)
            continue
        try:
            np.testing.assert_array_equal(nfuser.fuse(function)(u, value), wanted)
        except DTypeError:
            assert not isinstance(value, int)


def test_numbers_that_are_joined_fit_the_dtype() -> None:
    def joined(u: Any, n: int) -> Any:
        return np.r_[u, n]

    u, fused = np.arange(4, dtype=np.uint8), nfuser.fuse(joined)
    np.testing.assert_array_equal(fused(u, 5), joined(u, 5))
    with pytest.raises(OverflowError):
        fused(u, 300)


OUTPUTS: list[Callable[[Any], Any]] = [
    lambda a: np.concatenate([a[1:], a[:1]], out=a),
    lambda a: a.astype(np.float16).mean(axis=0, out=np.empty(3, np.float16)),
    lambda a: a.sum(axis=0, keepdims=True, out=np.empty(3)),
    lambda a: a.sum(out=np.zeros(())),
    lambda a: a.sum(axis=0, out=(np.empty(3),)),
]


@pytest.mark.parametrize("function", OUTPUTS)
def test_outputs_by_which_numpy_computes_otherwise_are_refused(
    function: Callable[[Any], Any],
) -> None:
    with pytest.raises(UnsupportedError, match="out="):
        nfuser.fuse(function)(np.ones((3, 3)))


def test_an_output_of_another_dtype_is_refused() -> None:
    def cut(x: Any) -> Any:
        return np.sum(x, axis=0, out=np.empty(3, np.float32))

    with pytest.raises(UnsupportedError, match="out="):
        nfuser.fuse(cut)(np.ones((2, 3)))
