# SPDX-License-Identifier: Apache-2.0
"""Small whole and half powers are products and roots, near and of every sign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
EXPONENTS = (2, 3, 4, 0.5, -0.5, 1.5, -1.5, -1, 5, -2, -3, 2.5, -2.5)
MOST_ULPS = 2.1
FOUR_ROUNDINGS = {5: 3.0, -2.5: 2.8}


def _raised(y: float) -> Callable[[Array], Array]:
    return lambda x: x**y


def _numbers(dtype: type) -> Array:
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 20000, dtype=np.uint64)
    if dtype is np.float32:
        drawn = bits.astype(np.uint32).view(np.float32)
    else:
        drawn = (bits << np.uint64(32) | bits[::-1]).view(np.float64)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1]
    near = random.random(20000) * 4
    return np.concatenate([drawn, near.astype(dtype), np.array(ends, dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", EXPONENTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_power_is_right_to_two_units_in_the_last_place(y: float, dtype: type) -> None:
    x = _numbers(dtype)
    wide = np.float64 if dtype is np.float32 else np.longdouble
    exact = x.astype(wide) ** wide(y)
    wanted = np.sqrt(x) if y == 0.5 else exact.astype(dtype)
    found = nfuser.fuse(_raised(y))(x)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(
        np.signbit(found[numbers]), np.signbit(wanted[numbers])
    )
    finite = np.isfinite(wanted)
    error = np.abs(found[finite].astype(wide) - exact[finite])
    ulps = error / np.spacing(np.abs(wanted[finite])).astype(wide)
    assert ulps.max() < FOUR_ROUNDINGS.get(y, MOST_ULPS)


@pytest.mark.parametrize("y", EXPONENTS)
def test_no_general_power_is_left(y: float) -> None:
    fused = nfuser.fuse(_raised(y))
    (kernel,) = fused.kernels(np.ones(4))
    assert "power(" not in str(kernel.source)


def test_powers_of_integers_wrap_as_numpys() -> None:
    x = np.arange(-130, 130, dtype=np.int16)
    for y in (3, 4, 5):
        np.testing.assert_array_equal(nfuser.fuse(_raised(y))(x), x**y)
