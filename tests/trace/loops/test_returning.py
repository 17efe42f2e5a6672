# SPDX-License-Identifier: Apache-2.0
"""Loops that return from within what they write into."""

# Traced functions are given what has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable


def _itself(x):
    for i in range(len(x)):
        x[i] = x[i] * 2
        if x[i] > 5:
            return x
    return x


def _beside_a_number(x):
    for i in range(len(x)):
        x[i] = x[i] * 2
        if x[i] > 5:
            return x, i
    return x, -1


def _part_of_it(x):
    for i in range(len(x)):
        if x[i] > 5:
            return x[1:]
        x[i] = x[i] * 2
        if x[i] > 50:
            return x[1:] * i
    return x[1:]


def _within_two(x):
    for i in range(len(x)):
        for j in range(i, len(x)):
            x[j] += 1
            if x[i] + x[j] > 9:
                return x, j
        if x[i] == 6:
            return x, i
    return x, -1


def _without_end(x):
    while True:
        x[0] += 1
        if x[0] > 20:
            return x
        if x[0] + x[1] > 10:
            return x + 1


def _own_of_each_turn(x):
    for i in range(len(x)):
        y = x * i
        y[0] += i
        if y.sum() > 8:
            return y
    return x * 0


def _before_the_rest(x):
    for i in range(len(x)):
        x[i] = 0
        if x.sum() < 4:
            return x
    else:
        x[0] = 9
    return x


def _counted_rounds(x):
    n = 0
    while True:
        n += 1
        for i in range(len(x)):
            x[i] += 1
            if x[i] > 7:
                return [n, x]


ALL = (
    *(_itself, _beside_a_number, _part_of_it, _within_two, _without_end),
    *(_own_of_each_turn, _before_the_rest, _counted_rounds),
)
STARTS = ([1, 2, 3, 4], [1, 9, 1, 1], [0, 0, 0, 0], [7, 1, 1, 1], [-1, 5, 0, 2])


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", ALL)
def test_what_it_writes_into_may_be_returned(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for start in STARTS:
        given, own = (np.array(start, float) for _ in range(2))
        wanted, found = function(given), fused(own)
        np.testing.assert_array_equal(own, given)
        pairs = zip(_parts(wanted), _parts(found), strict=True)
        for one, other in pairs:
            np.testing.assert_array_equal(other, one)
            assert (one is given) == (other is own)
    assert fused.cache_info().traces == 1


def _parts(found: Any) -> list[Any]:
    return [*found] if isinstance(found, tuple | list) else [found]


def _same(function: Callable[[Any], Any], *given: list[float]) -> None:
    for values in given:
        x = np.array(values)
        found = nfuser.fuse(function, backend="interpret")(x)
        wanted = function(x)
        pairs = [(found, wanted)]
        if isinstance(wanted, tuple):
            pairs = list(zip(found, cast("tuple[Any, ...]", wanted), strict=True))
        for one, other in pairs:
            np.testing.assert_array_equal(one, other)
            assert np.asarray(one).dtype == np.asarray(other).dtype


def test_loops_within_each_other_end_under_flags_of_their_own() -> None:
    def both(x: Any) -> Any:
        for j in range(3):
            if x[j] > 100:
                return x * 0
            for i in range(3):
                if x[i] > 5:
                    return x + 1
        return x

    _same(both, [2.0, 7.0, 8.0], [1.0, 2.0, 3.0], [2.0, 200.0, 8.0])


def test_loops_within_each_other_keep_what_they_return_under_names_of_their_own() -> (
    None
):
    def pairs(x: Any) -> Any:
        for j in range(3):
            y = x[j] * 2
            for i in range(3):
                if x[i] > 5:
                    return y, x[i]
        return x[0], x[1]

    def places(x: Any) -> Any:
        for i in range(3):
            for j in range(3):
                if x[j] > 5:
                    return i, j, x[j]
            y = x[i]
            if y < 0:
                return i, 7, y
        return 0, 0, x[0]

    for function in (pairs, places):
        _same(function, [2.0, 7.0, 8.0], [1.0, -2.0, 3.0])


def test_several_returns_of_one_loop_keep_integers_apart_from_floats() -> None:
    def counted(x: Any) -> Any:
        for i in range(3):
            if x[i] > 7:
                return i, x[i]
            if x[i] > 5:
                return i, x[i] * 2
        return 0, x[1]

    def starred(x: Any) -> Any:
        for i in range(3):
            t = (x[i], i)
            if x[i] > 5:
                return (*t, 1)
        return x[0], 0, 1

    for function in (counted, starred):
        _same(function, [2.0, 6.0, 8.0], [2.0, 8.0, 6.0], [1.0, 2.0, 3.0])
