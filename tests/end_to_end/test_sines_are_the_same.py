# SPDX-License-Identifier: Apache-2.0
"""A sine has the same bits wherever a kernel computes it, whatever is beside it."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(5)
SIZES = (1.0, 1e2, 5e3, 1e4, 1e6, 1e7, 3e7, 1e12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.sin, np.cos, np.tan])
def test_large_angles_change_nothing_of_small_ones(
    function: Callable[..., Any], dtype: str
) -> None:
    fused = nfuser.fuse(lambda x: function(x))
    small = (RNG.standard_normal((4, 40)) * 3).astype(dtype)
    for size in SIZES:
        large = (RNG.standard_normal(small.shape) * size).astype(dtype)
        mixed = np.where(RNG.random(small.shape) < 0.5, small, large)
        many = fused(mixed)
        alone = [fused(mixed[i, j : j + 1])[0] for i in range(4) for j in range(40)]
        np.testing.assert_array_equal(many.ravel(), np.array(alone))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("pick", [np.min, np.max])
def test_the_least_of_sines_is_found_among_them(
    pick: Callable[..., Any], dtype: str
) -> None:
    def loss(x: Any) -> Any:
        pairs = np.stack([np.log(abs(x) + 2), np.sin(np.log(abs(x) + 2))], axis=1)
        return pick(pairs, axis=1).sum()

    gradient = nfuser.grad(loss)
    for _ in range(40):
        x = RNG.uniform(0.1, 3, (1, 1)).astype(dtype)
        slope = 1 / (x + 2)
        slope = slope * (np.cos(np.log(x + 2)) if pick is np.min else 1)
        np.testing.assert_allclose(gradient(x), slope, 1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.sin, np.cos])
def test_so_is_that_of_angles_known_to_be_small(
    function: Callable[..., Any], dtype: str
) -> None:
    def loss(x: Any) -> Any:
        angle = np.tanh(x)
        return np.stack([angle * 3 + 2, function(angle)], axis=1).min(axis=1).sum()

    gradient = nfuser.grad(loss)
    for _ in range(60):
        x = RNG.uniform(0.1, 1.5, (1, 1)).astype(dtype)
        angle = np.tanh(x.astype("f8"))
        slope = np.cos(angle) if function is np.sin else -np.sin(angle)
        np.testing.assert_allclose(gradient(x), slope * (1 - angle * angle), 1e-4)
