# SPDX-License-Identifier: Apache-2.0
"""Long rows are read once for the sum of their exponentials, with NumPy's result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

LENGTH = 70_003
INF, NAN, LOWEST = np.inf, np.nan, np.finfo(np.float32).min


def log_sum_exp(x: Any) -> Any:
    """A row's only result, and its terms relative to the largest of them."""
    largest = x.max(axis=-1, keepdims=True)
    total = np.exp(x - largest).sum(axis=-1)
    return np.log(total) + largest[..., 0], total


def log_sum_exp_of_columns(x: Any) -> Any:
    """The same across memory."""
    return log_sum_exp(x.T)


def softmax(x: Any) -> Any:
    """Shares of the same sum."""
    power = np.exp(x - x.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("place", "number"),
    [
        (slice(0), 0),
        (77, NAN),
        (999, INF),
        ([5, 40_000], INF),
        (slice(4_444), -INF),
        (slice(None), -INF),
        (slice(None), LOWEST),
        (slice(None), 3e38),
    ],
)
def test_special_rows_are_numpys(place: Any, number: float) -> None:
    x = np.random.default_rng(0).normal(0, 5, (2, LENGTH)).astype(np.float32)
    x[0, place] = number
    fused = nfuser.fuse(log_sum_exp, backend="interpret")
    with np.errstate(all="ignore"):
        expected = log_sum_exp(x.astype(np.float64))
    for found, wanted in zip(fused(x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=3e-7)
    (kernel,) = fused.kernels(x)
    assert "sum_of_exponentials" in kernel.source
    assert kernel.source.count("load_packet") <= 2  # imported, and read in one place


@pytest.mark.parametrize("distance", [0.5, 1.39, 3.4, 10, 100])
def test_exponentials_that_are_all_alike_are_added_exactly_enough(
    distance: float,
) -> None:
    """What rounds the exponent of one rounds those of all in the same direction."""
    x = np.full((2, LENGTH + 1), -distance, np.float32)
    x[:, ::32] = 0
    fused = nfuser.fuse(log_sum_exp, backend="interpret")
    wanted = log_sum_exp(x.astype(np.float64))
    np.testing.assert_allclose(fused(x)[1], wanted[1], rtol=3e-7)
    (kernel,) = fused.kernels(x)
    body = kernel.source.split("def log_sum_exp", 1)[1].split("if fold < 32", 1)[0]
    # One for all packets that are loaded together, and one for what went before.
    assert body.count("exp2_near(") == 1
    assert body.count("(exp(") == 1


def test_columns_are_numpys_too() -> None:
    x = np.random.default_rng(0).normal(0, 5, (LENGTH // 2, 3)).astype(np.float32)
    fused = nfuser.fuse(log_sum_exp_of_columns, backend="interpret")
    for found, wanted in zip(
        fused(x), log_sum_exp(x.T.astype(np.float64)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=3e-7)


def test_rows_too_long_to_share_are_read_twice_for_softmax() -> None:
    x = np.random.default_rng(0).normal(0, 5, (1, 5_000_000)).astype(np.float32)
    fused = nfuser.fuse(softmax, backend="interpret")
    (kernel,) = fused.kernels(x)
    assert "looped" in kernel.source
    assert "sum_of_exponentials" in kernel.source
    # The distance from the largest is itself rounded: to 1e-6 where it is 20.
    np.testing.assert_allclose(fused(x), softmax(x.astype(np.float64)), rtol=5e-6)
