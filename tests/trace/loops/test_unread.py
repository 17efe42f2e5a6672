# SPDX-License-Identifier: Apache-2.0
"""What raises under NumPy raises here, though nobody reads what it would have given."""

# What a traced function is given has no static type.
# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser import lax


def reads_rows(a: Any, b: Any, n: Any) -> Any:
    for i in range(n):
        a[i]
    return b + 1


def reads_backwards(a: Any, b: Any, n: Any) -> Any:
    for i in range(n):
        b[-1 - i]
        a[-i]
    return b + 1


def reads_ahead(a: Any, b: Any, n: Any) -> Any:
    s = b * 0
    for i in range(n):
        s = s + a[2 * i + 1]
    return b + 1


def reads_in_two_loops(a: Any, b: Any, n: Any) -> Any:
    for i in range(n):
        for _ in range(2):
            a[i]
    return b + 1


def adds_in_turns(a: Any, b: Any, n: Any) -> Any:
    for _ in range(n):
        a + b
    return b + 1


def adds_in_two_loops(a: Any, b: Any, n: Any) -> Any:
    for _ in range(n):
        for _ in range(n):
            a + b
    return b + 1


def writes_rows(a: Any, b: Any, n: Any) -> Any:
    z = np.zeros(3)
    for i in range(n):
        z[i] = a[0]
    return b + 1


def writes_by_an_array(a: Any, b: Any, n: Any) -> Any:
    z = np.zeros(3)
    z[(a * n).astype(int)] = 1.0
    return b + 1


def writes_by_an_array_in_turns(a: Any, b: Any, n: Any) -> Any:
    for _ in range(n):
        z = np.zeros(3)
        z[(a * n).astype(int)] += 1.0
    return b + 1


def counts(a: Any, b: Any, n: Any) -> Any:
    z = np.zeros(3)
    np.add.at(z, (a * n).astype(int), 1.0)
    return b + 1


def inverts(a: Any, b: Any, n: Any) -> Any:
    np.linalg.inv(np.eye(3) * (5 - n))
    return b + 1


def inverts_in_turns(a: Any, b: Any, n: Any) -> Any:
    for i in range(n):
        np.linalg.inv(np.eye(3) * (a[0] + 4 - i))
    return b + 1


def goes_on(a: Any, b: Any, n: Any) -> Any:
    s = b * 0
    while s.sum() < n:
        z = np.zeros(3)
        z[s[:1].astype(int)] = 1
        s[0] += 1
    return b + 1


FUNCTIONS = (
    reads_rows,
    reads_backwards,
    reads_ahead,
    reads_in_two_loops,
    adds_in_turns,
    adds_in_two_loops,
    writes_rows,
    writes_by_an_array,
    writes_by_an_array_in_turns,
    counts,
    inverts,
    inverts_in_turns,
    goes_on,
)
A = np.arange(4.0)
CALLS = [(A, A, n) for n in (0, 1, 2, 5, 70)] + [(A, A[:3], n) for n in (0, 1, 5)]


def _end(function: Any, given: Any) -> Any:
    try:
        return function(*(x.copy() if isinstance(x, np.ndarray) else x for x in given))
    except Exception as error:  # noqa: BLE001 (whatever NumPy raises)
        return error


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_nobody_reads_raises_what_numpy_does(function: Any) -> None:
    fused = nfuser.fuse(function)
    kinds: set[bool] = set()
    for given in CALLS:
        wanted, found = _end(function, given), _end(fused, given)
        kinds.add(isinstance(wanted, Exception))
        if isinstance(wanted, Exception):
            assert isinstance(found, type(wanted)), (given, wanted, found)
        else:
            np.testing.assert_array_equal(found, wanted)
    assert kinds == {False, True}


def chosen(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if i < len(a):
            s = s + a[i]
        s = s + (a[i] if i < 2 else 0.0)
    return s


def ends_early(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s = s + a[i]
        if s > 5:
            break
    return s


def skips(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if i >= len(a):
            continue
        s = s + a[i]
    return s


def never_turns(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        for k in range(i - n + 1, 0):
            s = s + a[k] + a[n + k]
    return s


@pytest.mark.parametrize("function", [chosen, ends_early, skips, never_turns])
def test_elements_that_no_turn_reads_need_not_be_there(function: Any) -> None:
    fused = nfuser.fuse(function)
    for n in (0, 2, 4):
        np.testing.assert_array_equal(fused(A, n), function(A, n))
    if function is not never_turns:
        np.testing.assert_array_equal(fused(A, 70), function(A, 70))


def test_a_loop_of_lax_reads_no_element_that_is_not_there() -> None:
    def total(a: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, s: s + a[i], 0.0)

    fused = nfuser.fuse(total)
    assert fused(A, 4) == 6.0
    for function in (total, fused):
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0"):
            function(A, 5)
    assert fused(A, 3) == 3.0


def test_a_place_in_an_array_without_elements_raises() -> None:
    def fill(k: Any) -> Any:
        z = np.zeros((3, 0))
        z[k] = 1.0
        return z

    fused = nfuser.fuse(fill)
    assert fused(np.array([1])).shape == (3, 0)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        fused(np.array([5]))
