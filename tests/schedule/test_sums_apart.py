# SPDX-License-Identifier: Apache-2.0
"""Sums that wait for others are found in the same pass, and are right."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override
from nfuser.schedule.reduction import reduction
from nfuser.schedule.reduction.sums_apart import take_sums_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.ir.fusion import Fusion

ROWS, N = 300, 24
RNG = np.random.default_rng(5)
X = (RNG.standard_normal((ROWS, N)) + 3).astype(np.float32)
T = RNG.standard_normal((ROWS, N)).astype(np.float32)
W = RNG.standard_normal(N).astype(np.float32) + 2


def centred_gradient(x: Any, t: Any, w: Any) -> Any:
    """Return the gradient of a batch norm, as it is written by hand."""
    c = x - x.sum(0) / ROWS
    s = w + 1
    slope = (t * w * c / s).sum(0) / s / ROWS
    g = t * w / s - slope * c
    return g - g.sum(0) / ROWS, (t * c / s).sum(0), t.sum(0)


def of_differences(x: Any, t: Any, w: Any) -> Any:
    total = (x * t).sum(0)
    return ((x - total * 1e-3) * (t + w) - total).sum(0), total


def with_a_constant(x: Any, t: Any, w: Any) -> Any:
    total = x.sum(0, keepdims=True)
    return (-(x / (total + 1)) + total / w).sum(0), t.sum(0)


def of_a_function(x: Any, t: Any, w: Any) -> Any:
    return (np.exp(x - x.sum(0) / ROWS) * t * w).sum(0)


def of_a_power(x: Any, t: Any, w: Any) -> Any:
    c = x - x.sum(0) / ROWS
    return (c * c * c * w).sum(0)


def of_a_quotient(x: Any, t: Any, w: Any) -> Any:
    return (t / (x * x + x.sum(0) ** 2) * w).sum(0)


PASSES: dict[Callable[..., Any], int] = {
    centred_gradient: 1,
    of_differences: 1,
    with_a_constant: 1,
    of_a_function: 2,
    of_a_power: 2,
    of_a_quotient: 2,
}


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list that the passes of each scheduled reduction are added to."""
    found: list[int] = []

    def noted(fusion: Fusion) -> Fusion:
        made = take_sums_apart(fusion)
        found.append(1 + max(reduction.space_of(made).levels.values()))
        return made

    monkeypatch.setattr(reduction, "take_sums_apart", noted)
    return found


@pytest.mark.parametrize("function", PASSES)
def test_it_is_right_in_few_passes(
    function: Callable[..., Any], passes: list[int]
) -> None:
    wanted = function(*(a.astype(np.float64) for a in (X, T, W)))
    with override(disable=frozenset({"disk_cache"})):
        found = nfuser.fuse(function)(X, T, W)
    for got, want in zip(_items(found), _items(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * abs(want).max())
    assert max(passes) == PASSES[function]


def _items(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_digits_are_left_beside_a_large_mean() -> None:
    x = X + np.float32(4096)
    wanted = centred_gradient(*(a.astype(np.float64) for a in (x, T, W)))
    for got, want in zip(nfuser.fuse(centred_gradient)(x, T, W), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-3 * abs(want).max())


def test_what_is_scaled_against_overflow_stays_in_range() -> None:
    def length(x: Any) -> Any:
        largest = np.abs(x).max(0)
        return largest * np.sqrt(((x / largest) ** 2).sum(0)), (x / largest).sum(0)

    for scale in (1e-30, 1e30):
        x = X * np.float32(scale)
        wanted = length(x.astype(np.float64))
        for got, want in zip(nfuser.fuse(length)(x), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_what_is_not_a_number_spreads_as_far_as_before() -> None:
    x = X.copy()
    x[3, 4], x[7, 9] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        wanted = centred_gradient(x, T, W)
        found = nfuser.fuse(centred_gradient)(x, T, W)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
