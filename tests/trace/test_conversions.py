# SPDX-License-Identifier: Apache-2.0
"""``np.asarray`` and its kin give a traced array back."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import NfuserError

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(12.0).reshape(3, 4)
LIST = [1.0, 2.0, 3.5, -4.0]

CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "asarray": lambda x, items, a: np.asarray(x) * 2,
    "dtype": lambda x, items, a: np.asarray(x, np.float32) + 1,
    "contiguous": lambda x, items, a: np.ascontiguousarray(x.T) + 1,
    "columns": lambda x, items, a: np.asfortranarray(x),
    "any": lambda x, items, a: np.asanyarray(x)[1:],
    "copy": lambda x, items, a: np.array(x),
    "no copy": lambda x, items, a: np.array(x, copy=False),
    "axes": lambda x, items, a: np.array(x, ndmin=3) + 1,
    "stacked": lambda x, items, a: np.array([x, x + 1]),
    "numbers": lambda x, items, a: np.array([x[0, 0], 1.0, x.sum()]),
    "list": lambda x, items, a: np.asarray(items) * x,
    "nested": lambda x, items, a: np.array([items, items[::-1], items]) - x,
    "number": lambda x, items, a: np.asarray(a) * x,
    "of 0-d": lambda x, items, a: np.ascontiguousarray(a) * x,
    "plain": lambda x, items, a: np.asarray([0.5, 1, 2, 3]) * np.asarray(x),
}


@pytest.mark.parametrize("name", CASES)
def test_it_means_what_numpy_means(name: str) -> None:
    function = CASES[name]
    fused = nfuser.fuse(function)
    for number in (2.5, -1.0, 4.0):
        found, expected = fused(X, LIST, number), function(X, LIST, number)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.strides == expected.strides
    assert fused.cache_info().traces == 1


def test_a_list_of_other_numbers_runs_the_same_kernel() -> None:
    fused = nfuser.fuse(lambda items: np.asarray(items) * 2)
    for k in range(5):
        np.testing.assert_array_equal(fused([k, 1.5, 2.0]), np.array([k, 1.5, 2.0]) * 2)
    assert fused.cache_info().compiled <= 1


def test_what_is_converted_is_still_the_argument() -> None:
    def function(x: Any) -> Any:
        y = np.asarray(x)
        y += 1
        return y

    x = X.copy()
    assert nfuser.fuse(function)(x) is x
    np.testing.assert_array_equal(x, X + 1)


def test_numpy_is_itself_after_a_trace_and_for_other_threads() -> None:
    plain = np.asarray
    inside, found = threading.Event(), threading.Event()
    seen: list[Any] = []

    def other() -> None:
        inside.wait(10)
        seen.append(np.asarray([1, 2]))
        found.set()

    def function(x: Any) -> Any:
        y = np.asarray(x)
        inside.set()
        found.wait(10)
        return y * 2

    thread = threading.Thread(target=other)
    thread.start()
    np.testing.assert_array_equal(nfuser.fuse(function)(X), X * 2)
    thread.join()
    assert type(seen[0]) is np.ndarray
    assert np.asarray is plain
    with pytest.raises(NfuserError):
        nfuser.fuse(lambda x: np.asarray(x) + complex(x.sum()))(X)
    assert np.asarray is plain
