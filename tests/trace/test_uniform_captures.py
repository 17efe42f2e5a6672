# SPDX-License-Identifier: Apache-2.0
"""What plain NumPy computes of arrays from outside is not kept, be it of one value."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

OWNER = SimpleNamespace(a=np.ones(5))


def _product() -> Any:
    a = OWNER.a
    return a * 33, a


def _part() -> Any:
    a = OWNER.a
    return a[:2] * 33 + a[2:4]


def _mask(x: Any) -> Any:
    a = OWNER.a
    return np.where(a > 100, x, -x) + a


def _whole_numbers(x: Any) -> Any:
    a = OWNER.a
    return x[a.astype(int) * 0 + 1] * a


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [_product, _part, _mask, _whole_numbers])
def test_arrays_of_one_value_are_computed_anew(function: Callable[..., Any]) -> None:
    fused = nfuser.fuse(function)
    given = [np.arange(5.0)] * (function in (_mask, _whole_numbers))
    for number in (3.0, 3.0, 3.0, 4.0, 500.0, 4.0):
        OWNER.a = np.full(5, number)
        for found, wanted in zip(fused(*given), function(*given), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_zeros_beside_arrays_from_outside_are_traced_once() -> None:
    @nfuser.fuse
    def added(x: Any) -> Any:
        return x + np.zeros(5) + OWNER.a * x

    for number in (1.0, 2.0, 3.0):
        OWNER.a = np.full(5, number)
        added(np.ones(5))
    assert added.cache_info().traces == 1


def test_ranges_beside_arrays_from_outside_are_traced_once() -> None:
    @nfuser.fuse
    def added(x: Any) -> Any:
        return x * np.arange(1, 6) + np.ones(5) + OWNER.a * x

    for number in (1.0, 2.0, 3.0):
        OWNER.a = np.full(5, number)
        np.testing.assert_array_equal(added(np.ones(5)), np.arange(1, 6) + 1 + OWNER.a)
    assert added.cache_info().traces == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ranges_computed_of_arrays_from_outside_are_computed_anew() -> None:
    @nfuser.fuse
    def moved(x: Any) -> Any:
        places = OWNER.places
        return x * (places - 1), places

    for first in (1, 1, 2, 3, 1):
        OWNER.places = np.arange(first, first + 3)
        found, _ = moved(np.ones(3))
        np.testing.assert_array_equal(found, OWNER.places - 1.0)


def test_what_traced_arrays_cannot_do_is_done_with_arrays_that_are_compared() -> None:
    @nfuser.fuse
    def chosen(x: Any) -> Any:
        mask = np.ones(3, bool)
        return x + mask + OWNER.a, np.ctypeslib.as_ctypes(mask)[0]

    for number in (1.0, 2.0):
        OWNER.a = np.full(3, number)
        found, first = chosen(np.zeros(3))
        assert found.tolist() == [number + 1] * 3
        assert first is True
