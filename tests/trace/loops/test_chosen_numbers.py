# SPDX-License-Identifier: Apache-2.0
"""Numbers of Python's that a branch on an element chooses stay numbers of Python's."""

# Traced functions are given what has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import lax
from nfuser.compiler.ops import builder

if TYPE_CHECKING:
    from collections.abc import Callable


def _by_statement(u):
    c = 1.0
    if u[0] > 0:
        c = 2.0
    return u * c, c


def _whole(u):
    c = 1
    if u[0] > 0:
        c = 2 if u[1] > 0 else 4
    return u * c, c


def _truth(u):
    c = False
    if u[0] > 0:
        c = True
    return u * c, c, -c, c + c, c & True


def _opposites(u):
    one, other = not u[0] > 0, not u[1] > 5
    return u * one, one, one + other, -other


def _by_expression(u):
    return u * (2.0 if u[0] > 0 else 1.0)


def _in_turns(u):
    c = 1.0
    for i in range(len(u)):
        if u[i] > 3:
            c = 2.0
        elif u[i] > 1:
            c = 0.5
    return u * c, c


def _where_it_costs(u):
    c = 1.0
    if u[0] > 0:
        for _ in range(100):
            c = c + 2
    return u * c, c


def _truth_or_number(u):
    return u * (u[0] > 0 and 2.0)


def _one_or_other(u):
    return u * ((0 if u[0] > 0 else 3) or 5)


def _element_or_number(u):
    c = u[1]
    if u[0] > 0:
        c = 2
    return u * c


def _not_taken(u):
    c = 2.5
    if u[0] > 50:
        c = u.max()  # it costs, so that it runs where it is taken
    return c * 2.0


def _largest(u):
    return u * max(1.0 if u[0] > 0 else 2.0, 1.5)


def _by_lax(u):
    def more(_, c):
        return c + 1.0

    def many(c):
        return lax.fori_loop(0, 100, more, c)

    two = lax.cond(u[0] > 0, lambda: 2.0, lambda: 1.0)
    return u * two, u * lax.cond(u[0] > 0, lambda: many(1.0), lambda: 1.0)


def _added_to(u):
    c = 0
    if u[0] > 0:
        c += 1
    return u * c, u - 2 * c, u * (c * c + 1), u * abs(c), c * 2, c - 1, c // 2


def _counted(u):
    above = below = 0
    for i in range(len(u)):
        if u[i] > 0:
            above += 1
        else:
            below += 1
    return u * above, u + below, u * (above - 4) if u.dtype.kind != "u" else u, above


def _counted_within(u):
    c = 1
    for i in range(len(u)):
        for k in range(len(u)):
            if u[i] > u[k]:
                c += 2
    return u * c, c


def _place_of_largest(u):
    best = 0
    for i in range(len(u)):
        if u[i] > u[best]:
            best = i
    return u * best, best


def _while_it_is_large(u):
    c, rest = 0, u.sum() * 1.0
    while rest > 1:
        rest = rest * 0.5
        c += 1
    return u * c, c


def _to_a_power(u):
    c = 1
    if u[0] > 0:
        c += 1
    return (u + u) ** c


def _returned_early(u):
    c = 0
    for i in range(len(u)):
        if u[i] > 0:
            c += 1
    if u[0] > 100:
        return u * c
    return u + u


ALL = (
    *(_by_statement, _whole, _truth, _by_expression, _in_turns, _where_it_costs),
    *(_one_or_other, _largest, _by_lax, _added_to, _counted, _counted_within),
    *(_place_of_largest, _while_it_is_large, _opposites),
)
INTEGERS = (_added_to, _counted, _counted_within, _place_of_largest)


def _shown(found: Any) -> Any:
    if isinstance(found, tuple):
        return [_shown(x) for x in found]
    return type(found), getattr(found, "dtype", None), np.asarray(found).tolist()


@pytest.mark.parametrize("first", [1, 0])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "?"])
@pytest.mark.parametrize("function", ALL)
def test_it_meets_arrays_as_in_numpy(
    function: Callable[..., Any], dtype: str, first: int
) -> None:
    u = np.array([first, 2, 0], dtype)
    assert _shown(nfuser.fuse(function)(u)) == _shown(function(u))


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i4", "u8", "f4"])
@pytest.mark.parametrize("function", [_to_a_power, _returned_early, *INTEGERS[1:]])
def test_narrow_integers_stay_what_they_are(
    function: Callable[..., Any], dtype: str
) -> None:
    for values in ([1, 2, 0], [0, 2, 1]):
        u = np.array(values, dtype)
        assert _shown(nfuser.fuse(function)(u)) == _shown(function(u))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8"])
def test_beside_one_of_an_array_it_holds_both(dtype: str) -> None:
    u = np.array([1, 2, 0], dtype)
    for function in (_truth_or_number, _element_or_number):
        assert _shown(nfuser.fuse(function)(u)) == _shown(function(u))
    assert nfuser.fuse(_not_taken)(u) == _not_taken(u) == 5.0


def test_one_that_the_dtype_lacks_raises() -> None:
    def scaled(u):
        return u * (200 if u[0] > 0 else 1)

    fused = nfuser.fuse(scaled)
    with pytest.raises(OverflowError, match="200 out of bounds for int8"):
        fused(np.ones(3, np.int8))
    found = fused(np.zeros(3, np.int8))
    assert _shown(found) == _shown(np.zeros(3, np.int8))


def _halved(u):
    c, rest = 0, u.sum() * 1.0
    while rest > 1:
        rest = rest - 1
        c += 1
    return u * c


def _many(u):
    c = 0
    for i in range(len(u)):
        if u[i] > 0:
            c += 1
    return u * c


def _in_a_branch(u):
    c = 0
    for i in range(len(u)):
        if u[i] > 0:
            c += 1
    return u * c if u[0] > 0 else -u


def _in_each_turn(u):
    y = u.copy()
    for i in range(len(u)):
        y[i] = u[i] * i
    return y


@pytest.mark.parametrize("function", [_halved, _many, _in_a_branch, _in_each_turn])
def test_one_that_is_counted_beyond_the_dtype_raises(
    function: Callable[..., Any],
) -> None:
    fused = nfuser.fuse(function)
    for dtype, count in ((np.int8, 100), (np.int8, 200), (np.int16, 200)):
        u = np.ones(count, dtype)
        if count > np.iinfo(dtype).max:
            with pytest.raises(OverflowError, match="out of bounds for int8"):
                function(u)
            with pytest.raises(OverflowError, match="out of bounds for int8"):
                fused(u)
        else:
            assert _shown(fused(u)) == _shown(function(u))


def test_what_turns_count_needs_no_look_where_their_number_fits() -> None:
    def for_each(x, n):
        c, y = 0, np.zeros_like(x)
        for k in range(n):
            if x[k] > 0:
                c += 1
            y[k] = x[k] * k + c
        return y

    def while_there_are(x, n):
        k = c = 0
        y = np.zeros_like(x)
        while k < n and x[k] < 9:
            if x[k] > 0:
                c += 2
            y[k] = x[k] * k + c
            k += 1
        return y

    def of_parts(x, n):
        y = np.zeros_like(x)
        for k in range(n):
            y[k] = x[k] + k // 2 + k % 5 + (k & 7) + (k >> 1) - k * k % 50
        return y

    for function in (for_each, while_there_are, of_parts):
        fused = nfuser.fuse(function)
        for dtype in (np.int16, np.int32):
            x = np.arange(400, dtype=dtype) % 7
            assert _shown(fused(x, 300)) == _shown(function(x, 300))
            assert "arithmetic" not in str(fused.explain(x, 300))
        x = np.arange(100, dtype=np.int8) % 2
        assert _shown(fused(x, 50)) == _shown(function(x, 50))


def test_one_in_a_branch_that_is_not_taken_raises_nothing() -> None:
    u = np.append(np.int8(0), np.ones(200, np.int8))
    assert _shown(nfuser.fuse(_in_a_branch)(u)) == _shown(_in_a_branch(u))


def test_an_element_or_a_number_that_its_dtype_lacks_is_refused() -> None:
    def scaled(u):
        return u * (300 if u[0] > 0 else u[1])

    with pytest.raises(OverflowError, match="300 out of bounds for int8"):
        nfuser.fuse(scaled)(np.ones(3, np.int8))


def test_what_is_none_of_both_is_as_wide_as_both() -> None:
    def scaled(u):
        return u * (u[1] if u[0] > 0 else 0.5)

    found = nfuser.fuse(scaled)(np.array([1, 3], np.int8))
    np.testing.assert_array_equal(found, [3.0, 9.0])
    assert found.dtype == np.float64  # as in NumPy where 0.5 is chosen


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_counters_are_compared_by_value(dtype: Any) -> None:
    def found(u, n):
        count, below = 0, 0
        for i in range(n):
            if u[0] == i:
                count += 1
            if i > u[1]:
                below += 1
        return count, below

    u = np.array([1, 2], dtype)
    assert nfuser.fuse(found)(u, 1000) == found(u, 1000) == (1, 997)


def test_what_is_computed_of_chosen_integers_does_not_wrap() -> None:
    def chosen(u: Any) -> Any:
        c = 1
        if u[0] > 0:
            c = 2
        return u * (c + 300)

    def negated(u: Any) -> Any:
        c = 1
        if u[0] > 0:
            c = 2
        return u * -c

    def counted(u: Any) -> Any:
        c = 0
        for _ in range(300):
            if u[0] > 0:
                c += 1
        return u * c

    u = np.array([1, 2, 100], np.uint8)
    for function in (chosen, negated, counted):
        fused = nfuser.fuse(function, backend="interpret")
        for dtype in (np.uint8, np.int16, np.float32):
            given = u.astype(dtype)
            if dtype is np.uint8:
                with pytest.raises(OverflowError, match="out of bounds for uint8"):
                    function(given)
                with pytest.raises(OverflowError, match="out of bounds for uint8"):
                    fused(given)
            else:
                assert _shown(fused(given)) == _shown(function(given))


def test_and_of_values_of_two_dtypes_is_one_that_holds_both() -> None:
    def asked(u: Any, k: Any) -> Any:
        ok = (u[0] > 0) and u[1]
        other = u[0] and k[0]
        return (u * 2 if ok else u * 3), (u if other else -u)

    def given(u: Any, k: Any) -> Any:
        return u * ((u.sum() > 0 and u.max()) or 1.0) + k[0]

    k = np.array([3, 4], np.int32)
    for values in ([1.5, 0.0], [1.0, 2.0], [-1.0, 0.5], [0.0, 0.0]):
        u = np.array(values)
        for function in (asked, given):
            found = nfuser.fuse(function, backend="interpret")(u, k)
            np.testing.assert_array_equal(found, function(u, k))


def test_choices_of_choices_hold_each_number_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lines(u: Any, p: Any) -> Any:
        a, b = 1, 2
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        a, b = (a if u[0] > p else b), (b if u[1] > p else a)
        return u * a + b

    looked_at: list[int] = []
    check = builder.check_fits

    def counted(number: int, *rest: Any) -> None:
        looked_at.append(number)
        check(number, *rest)

    monkeypatch.setattr(builder, "check_fits", counted)
    u = np.array([3.0, 1.0])
    found = nfuser.fuse(lines, backend="interpret")(u, np.float64(2))
    np.testing.assert_array_equal(found, lines(u, np.float64(2)))
    assert 0 < len(looked_at) < 100
