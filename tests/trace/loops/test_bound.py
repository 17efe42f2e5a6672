# SPDX-License-Identifier: Apache-2.0
"""Names that turns of a loop bind to arrays that were there, which are written then."""

# Carried values have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import MutationError


def bound(a, n):
    x, y = a * 1.0, a * 2.0
    for _ in range(n):
        y = x
    x += 1
    return x, y


def bound_to_a_view(a, n):
    x, y = a * 1.0, a[1:] * 2.0
    for _ in range(n):
        y = x[1:]
    x += 1
    return x, y


def bound_to_an_argument(a, n):
    y = a * 2.0
    for _ in range(n):
        y = a
    a += 1
    return a, y


def bound_by_way_of_another(a, n):
    x, y, z = a * 1.0, a * 2.0, a * 3.0
    for _ in range(n):
        y = z
        z = x
    x += 1
    return x, y


def bound_in_an_arm(a, n):
    x, y = a * 1.0, a * 2.0
    for i in range(n):
        if a[0] < i:
            y = x
    x += 1
    return x, y


def bound_to_one_of_two(a, n):
    x, y, z = a * 1.0, a * 2.0, a * 3.0
    for i in range(n):
        y = x if i % 2 else z
    z += 1
    return z, y


def written_in_the_next_turn(a, n):
    x, y, p = a * 1.0, a * 2.0, 0.0
    for i in range(n):
        x[0] = i
        p = p * 2 + y[0]
        y = x
    return x, y, p


def written_before_an_arm_binds(a, n):
    x, y, p = a * 1.0, a * 2.0, 0.0
    for i in range(n):
        x[0] = i
        p = p * 2 + y[0]
        if a[1] > i:
            y = x
    return x, y, p


def only_read(a, n):
    x, y = a * 1.0, a * 2.0
    for _ in range(n):
        y = x
    return x, x + y


def written_by_its_turn(a, n):
    x, y = a * 1.0, a * 2.0
    for i in range(n):
        y = x
        y[0] = i
    return x, y


_SERVED = (only_read, written_by_its_turn)


@pytest.mark.parametrize(
    "function",
    [
        *(bound, bound_to_a_view, bound_to_an_argument, bound_by_way_of_another),
        *(bound_in_an_arm, bound_to_one_of_two, written_in_the_next_turn),
        *(written_before_an_arm_binds, *_SERVED),
    ],
)
def test_a_name_is_what_numpy_makes_of_it_or_refused(function: Any) -> None:
    fused = nfuser.fuse(function)
    for turns in (0, 1, 2, 3):
        theirs, mine = np.arange(4.0), np.arange(4.0)
        wanted = function(theirs, turns)
        try:
            found = fused(mine, turns)
        except MutationError:
            assert function not in _SERVED
            assert turns
            continue
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(other, one)
        np.testing.assert_array_equal(mine, theirs)


def exchanged_with_itself(x: Any, n: Any) -> Any:
    y, z = x * 0.5, x + 1
    for i in range(n):
        z[0] += i
        y, z = z, z
    return y, z


def exchanged_after_a_read(x: Any, n: Any) -> Any:
    y, z = x * 0.5, x + 1
    for _ in range(n):
        y = z * 0.5
        z[:-1] += y[1:]
        z, y = z, z
    return y, z


@pytest.mark.parametrize("function", [exchanged_with_itself, exchanged_after_a_read])
def test_two_names_are_bound_to_the_array_of_one(function: Any) -> None:
    fused = nfuser.fuse(function)
    for turns in (0, 1, 2, 3):
        x = np.arange(4.0)
        for found, wanted in zip(fused(x, turns), function(x, turns), strict=True):
            np.testing.assert_array_equal(found, wanted)
