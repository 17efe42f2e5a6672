# SPDX-License-Identifier: Apache-2.0
"""Arrays from outside of which no element is read are not read again for nothing."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nfuser

OWNER = SimpleNamespace()


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_an_equal_array_that_is_not_read_is_traced_once(library: str) -> None:
    made = pytest.importorskip(library)

    @nfuser.fuse
    def scaled(x: Any) -> Any:
        a, _ = OWNER.a, OWNER.b
        return x * a

    for number in range(4):
        OWNER.a, OWNER.b = np.full(3, float(number)), made.ones(3)
        assert scaled(np.ones(3)).tolist() == [number] * 3
    assert scaled.cache_info().traces == 1


def test_an_array_of_jax_beside_a_table_is_compared() -> None:
    made = pytest.importorskip("jax.numpy")

    @nfuser.fuse
    def windowed(x: Any) -> Any:
        return x * np.hanning(3) + nfuser.numpy.asarray(OWNER.b)

    for number, traces in ((1, 1), (1, 1), (2, 2), (2, 2), (1, 2)):
        OWNER.b = made.full(3, float(number))
        wanted = np.hanning(3) + number
        np.testing.assert_allclose(np.asarray(windowed(np.ones(3))), wanted)
        assert windowed.cache_info().traces == traces


def test_an_extent_of_an_array_is_no_element_of_it() -> None:
    @nfuser.fuse
    def scaled(x: Any) -> Any:
        return x @ OWNER.a / OWNER.a.shape[0]

    for number in range(4):
        OWNER.a = np.full(3, float(number))
        assert scaled(np.ones(3)) == number
    assert scaled.cache_info().traces == 1


def test_an_element_of_an_array_that_is_called_shape_is_one() -> None:
    @nfuser.fuse
    def scaled(x: Any) -> Any:
        x = x * OWNER.shape
        return x if OWNER.shape[0] > 1 else -x

    for number in range(4):
        OWNER.shape = np.full(3, number)
        sign = 1 if number > 1 else -1
        assert scaled(np.ones(3)).tolist() == [number * sign] * 3


@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_an_array_that_is_taken_off_is_no_longer_there(library: str) -> None:
    made = pytest.importorskip(library)

    @nfuser.fuse
    def chosen(x: Any) -> Any:
        return x + 1 if OWNER.a is None else x * 10

    OWNER.a = made.ones(3)
    assert chosen(np.ones(3)).tolist() == [10] * 3
    OWNER.a = None
    gc.collect()
    assert chosen(np.ones(3)).tolist() == [2] * 3
