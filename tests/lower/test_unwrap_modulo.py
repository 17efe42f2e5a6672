# SPDX-License-Identifier: Apache-2.0
"""What is tiled or wrapped is read without remainders, whatever the period."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = (
    (2, 1),
    (3, 2),
    (1, 7),
    (5, 100),
    (2, 4096),
    (3, 8191),
    (2, 8193),
    (1, 20_000),
)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tile": lambda x: np.tile(x, (2, 3)) * 2,
    "flat tile": lambda x: np.tile(x.reshape(-1), 3),
    "wrap": lambda x: np.pad(x, ((1, 0), (1, 1)), mode="wrap") + 1,
    "rows flattened": lambda x: (x[:, 1:] * 2).reshape(-1) + 1,
    "sum of tiles": lambda x: np.tile(x, (1, 3)).sum(axis=1),
    "softmax of tiles": lambda x: np.exp(np.tile(x, (1, 2)) - np.tile(x, (1, 2)).max()),
    "scan": lambda x: np.tile(x, (1, 2)).cumsum(axis=1),
    "columns": lambda x: np.tile(x.T, (2, 2)).max(axis=0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_periods_of_any_length_are_numpys(name: str) -> None:
    function = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    for shape in SHAPES:
        x = np.random.default_rng(1).standard_normal(shape)
        np.testing.assert_allclose(fused(x), function(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["tile", "flat tile", "wrap", "rows flattened"])
def test_the_innermost_loops_divide_nothing(name: str) -> None:
    (kernel,) = nfuser.fuse(FUNCTIONS[name]).kernels(np.ones((50, 700)))
    for loop in kernel.source.split("for i")[1:]:
        if "load(" in loop and "range(" in loop:
            body = loop.split("load(", 1)[1]
            assert "rem(" not in body.split("store(")[0]


@pytest.mark.parametrize("name", ["tile", "flat tile", "rows flattened", "scan"])
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_nothing_repeats_as_nothing(name: str, shape: tuple[int, int]) -> None:
    function, x = FUNCTIONS[name], np.ones(shape)
    assert nfuser.fuse(function)(x).shape == function(x).shape
