# SPDX-License-Identifier: Apache-2.0
"""What a condition says of a number that turns count: places that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(5)


def cholesky(a: Any) -> Any:
    n = len(a)
    left = np.zeros_like(a)
    for j in range(n):
        for i in range(j, n):
            total = a[i, j]
            for k in range(j):
                total -= left[i, k] * left[j, k]
            left[i, j] = np.sqrt(total) if i == j else total / left[j, j]
    return left


def bubble_sort(x: Any) -> Any:
    for i in range(len(x)):
        moved = False
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
                moved = True
        if not moved:
            break
    return x


def insertion_sort(x: Any) -> Any:
    for i in range(1, len(x)):
        new, j = x[i], i - 1
        while j >= 0 and x[j] > new:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = new
    return x


def mirrored(x: Any) -> Any:
    low, high = 0, len(x) - 1
    for _ in range(3):
        low, high = 0, len(x) - 1
        while low < len(x):
            old = x[low]
            x[low] = x[high] * 0.5
            x[high] = old
            low += 1
            high -= 1
    return x


def strided(x: Any) -> Any:
    for i in range(len(x)):
        j = i
        while j > 0:
            x[j] += x[j - 1] * 0.5
            j -= 3
        x[j] += i
    return x


SERIAL: dict[Any, Callable[[int], Any]] = {
    cholesky: lambda n: RNG.random((n, n)) + n * np.eye(n),
    bubble_sort: RNG.random,
    insertion_sort: RNG.random,
    strided: RNG.random,
}


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", SERIAL)
def test_loops_to_where_another_loop_is_are_one_kernel(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for n in (70, 66, 71) if backend == "cpu" else (9, 7):
        given = SERIAL[function](n)
        mine = given.copy()
        np.testing.assert_allclose(fused(mine), function(given), rtol=1e-14)
        np.testing.assert_array_equal(mine, given)
        kernels = fused.kernels(mine)
        assert [str(k.schedule) for k in kernels].count("serial()") == 1
        assert not any("_body" in k.name for k in kernels)
    assert fused.cache_info().traces == 1


def too_far(x: Any, n: int) -> None:
    for i in range(n):
        for j in range(i, n + 1):
            x[j] = x[j - 1] + 1


def either(x: Any, n: int) -> None:
    for i in range(n):
        j = i
        while j >= 0 or x[0] > 2:
            x[j] += 1
            j -= 2


def other_bound(x: Any, n: int) -> None:
    for i in range(n):
        j, end = i, n
        while j < end:
            x[j] += 1
            j += 1
            end += i


def begun_beyond(x: Any, n: int) -> None:
    for i in range(n):
        j, goes_on = i + 1, x[i] >= 0
        while goes_on:
            x[j] += 1
            j += 1
            goes_on = j < n


def not_counted(x: Any, n: int) -> None:
    for i in range(n):
        j = i
        while j < n:
            x[j] += 1
            j += x[j].astype(int)


@pytest.mark.parametrize("function", [too_far, either, other_bound, begun_beyond])
def test_places_that_are_not_there_raise_where_numpy_raises(
    function: Callable[..., Any],
) -> None:
    fused = nfuser.fuse(function)
    for n in (5, 6):
        theirs, mine = (np.arange(1.0 * n) for _ in range(2))
        with pytest.raises(IndexError):
            function(theirs, n)
        with pytest.raises(IndexError):
            fused(mine, n)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("function", [mirrored, not_counted])
def test_numbers_that_no_condition_bounds_are_right(
    function: Callable[..., Any],
) -> None:
    for n in (5, 8):
        theirs, mine = (np.arange(1.0 * n) + 20 for _ in range(2))
        rest = () if function is mirrored else (n,)
        function(theirs, *rest)
        nfuser.fuse(function)(mine, *rest)
        np.testing.assert_array_equal(mine, theirs)


def test_a_step_that_is_computed_is_refused_with_what_to_write() -> None:
    def of_range(n: Any) -> Any:
        found = np.ones(n + 1)
        for i in range(2, n + 1):
            for k in range(i + i, n + 1, i):
                found[k] += i
        return found

    def of_while(n: Any) -> Any:
        found = np.ones(n + 1)
        for i in range(2, n + 1):
            k = i + i
            while k <= n:
                found[k] += i
                k += i
        return found

    with pytest.raises(nfuser.NfuserError, match="write a while loop"):
        nfuser.fuse(of_range)(400)
    np.testing.assert_array_equal(nfuser.fuse(of_while)(400), of_range(400))


def test_a_step_that_is_far_is_no_counter() -> None:
    def far(x: Any, n: int) -> None:
        for i in range(n):
            j = i
            while j < n:
                x[j] += 1
                j += 1 << 62

    theirs, mine = np.zeros(70), np.zeros(70)
    far(theirs, 70)
    fused = nfuser.fuse(far)
    fused(mine, 70)
    np.testing.assert_array_equal(mine, theirs)
    assert "indexing" in str(fused.explain(mine, 70))  # each place is looked at


def product_bound(x: Any, y: Any, n: int) -> Any:
    for t in range(len(y)):
        i = t + 0
        while i < (t + n) * 4 and y[t] > 0:
            x[i] = 1
            i += 1
    return x


def far_counter(x: Any, y: Any, n: int) -> Any:
    for t in range(len(y)):
        i = t + (2**63 - 100)
        while i <= n and y[t] > 0:
            k = t + 5
            while k >= i and y[1] > 0:
                x[k] = 1
                k -= 1
            i += 1
    return x


@pytest.mark.parametrize(
    ("program", "n"), [(product_bound, -(2**62) - 2**61 - 5), (far_counter, 2**63 - 1)]
)
def test_what_64_bits_do_not_hold_proves_no_place(
    program: Callable[..., Any], n: int
) -> None:
    x, y = np.zeros(200), np.r_[1.0, 1.0, np.zeros(78)]
    # Kernels count in 64 bits: what they come to is no place, and not written to. The
    # interpreter looks at each place that is said to be there.
    with pytest.raises(HostError, match="out of bounds for axis 0"):
        nfuser.fuse(program, backend="interpret")(x, y, n)


def read_from_the_first(x: Any, y: Any) -> Any:
    total = 0.0
    for t in range(len(x)):
        i = t
        while i < len(x) and y[i] > 0:
            i += 1
        while i < len(x):
            total += x[i]
            i += 1
    return total


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_rows_of_vmap_that_have_ended_read_no_place_beyond(backend: str) -> None:
    x, y = np.arange(80.0), np.zeros((4, 80))
    y[1, :70] = y[2, :30] = 1
    f = nfuser.vmap(read_from_the_first, in_axes=(None, 0))
    wanted = [read_from_the_first(x, row) for row in y]
    np.testing.assert_allclose(nfuser.fuse(f, backend=backend)(x, y), wanted)
