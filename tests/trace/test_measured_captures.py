# SPDX-License-Identifier: Apache-2.0
"""Python may read how long an array from outside is: it is as long in no other call."""

# What a traced function is given, and gives, has no static type.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError


class Held:
    y: Any
    a: Any


HELD = Held()


def by_len(x: Any) -> Any:
    y = HELD.y
    return x + y, x * len(y)


def by_shape(x: Any) -> Any:
    y = HELD.y
    return x + y, x * y.shape[0]


def by_size(x: Any) -> Any:
    y, z = HELD.y, HELD.a
    return x + y + z, x * y.size


def by_bytes_of_a_view(x: Any) -> Any:
    y = HELD.y
    return x + y, x * y.T.nbytes


def under_a_new_name(x: Any) -> Any:
    y = HELD.y
    z = y
    n = len(z)
    y = z = x + y
    return y, z * n


def _measured(found: Any) -> int:
    return len(found)


def by_another_function(x: Any) -> Any:
    y = HELD.y
    return x + y, x * _measured(y)


def in_a_closure(x: Any) -> Any:
    y = HELD.y

    def count() -> int:
        return len(y)

    return x + y, x * count()


def in_a_loop(x: Any) -> Any:
    y = HELD.y
    z, k = x + y, 0
    while k < len(y):
        z = z * 0.5
        k += 1
    return z, y


def beside_a_write(x: Any) -> Any:
    a, y = HELD.a, HELD.y
    for _ in range(len(y)):
        a[:2] *= 0.5
    return y, a * x


def an_element_before(x: Any) -> Any:
    y = HELD.y
    first = float(y[0])
    y = x + y
    return y, x * first


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize(
    "function",
    [
        *(by_len, by_shape, by_size, by_bytes_of_a_view, under_a_new_name),
        *(by_another_function, in_a_closure, in_a_loop, beside_a_write),
        an_element_before,
    ],
)
def test_sizes_that_python_read_are_those_of_the_call(
    function: Any, backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for n in (5, 5, 5, 5, 7, 7, 7, 4, 5):
        x = np.arange(3.0)[:, None]
        HELD.y, HELD.a = np.ones(n) * n, np.arange(n) * 2.0
        wanted = function(x)
        HELD.a = np.arange(n) * 2.0
        for one, other in zip(fused(x), wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_another_name_for_what_is_added_costs_no_trace() -> None:
    def function(x: Any) -> Any:
        y = HELD.y
        z = x + y
        return z * x.shape[0] + len(z)

    fused = nfuser.fuse(function)
    for n in (5, 5, 7, 4):
        x = np.arange(3.0)[:, None]
        HELD.y = np.ones(n) * n
        np.testing.assert_array_equal(fused(x), function(x))
    assert fused.cache_info().traces == 1


def _last_of_a_part(x: Any) -> Any:
    a, y = HELD.a, HELD.y
    a[:] = x
    return y[-1]


def _each_of_a_part(x: Any) -> Any:
    a, y = HELD.a, HELD.y
    a[:] = x
    found = 0.0
    for item in y:
        found = item
    return found


def _computed_of_a_part(x: Any) -> Any:
    a, y = HELD.a, HELD.y
    a[:] = x
    return y * 1


@pytest.mark.parametrize(
    "function", [_last_of_a_part, _each_of_a_part, _computed_of_a_part]
)
@pytest.mark.parametrize("is_apart_first", [False, True])
def test_a_part_that_python_read_is_refused_where_the_whole_is_assigned_to(
    function: Any, is_apart_first: bool
) -> None:
    fused = nfuser.fuse(function)
    x = np.arange(3.0) - 8
    if is_apart_first:
        HELD.a, HELD.y = np.ones((5, 3)), np.arange(5.0)
        np.testing.assert_array_equal(fused(x), function(x))
    HELD.a = np.ones((5, 3))
    HELD.y = HELD.a[:, 0]
    with pytest.raises(MutationError, match="another name from outside"):
        fused(x)
    assert (HELD.a == 1).all()


def test_what_lies_between_each_other_is_no_part() -> None:
    fused = nfuser.fuse(_last_of_a_part)
    x = np.arange(3.0) - 8
    for _ in range(3):
        whole = np.arange(30.0).reshape(10, 3)
        HELD.a, HELD.y = whole[::2], whole[1::2, 0]
        assert fused(x) == whole[9, 0]
        np.testing.assert_array_equal(HELD.a, [x] * 5)
