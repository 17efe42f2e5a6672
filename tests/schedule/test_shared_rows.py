# SPDX-License-Identifier: Apache-2.0
"""Rows that several blocks keep: how often they meet, and what they tell each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.lower.build import lower
from nfuser.lower.kernel_ir import If, Post
from nfuser.lower.walk import every
from nfuser.schedule import reduction_cuda
from nfuser.schedule.scheduled import ReductionHeuristic
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.schedule.scheduled import Scheduled


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks keep little, so that short rows are shared by many."""
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 256)
    monkeypatch.setattr(reduction_cuda, "SHARE_KEPT", 8)
    monkeypatch.setattr(reduction_cuda, "MAX_THREADS", 64)
    monkeypatch.setattr(reduction_cuda, "STORED_BLOCKS", 0)
    monkeypatch.setattr(reduction_cuda, "CACHE_BYTES", 0)


def _layer_norm(x: Any) -> Any:
    variance = x.var(axis=-1, keepdims=True)
    return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + 1e-5)


def _channels(x: Any) -> Any:
    mean, variance = (f(axis=(0, 2), keepdims=True) for f in (x.mean, x.var))
    return (x - mean) / np.sqrt(variance + 1e-5), mean, variance


def _stored_distances(x: Any) -> Any:
    return x - x.mean(axis=-1, keepdims=True), x.var(axis=-1)


def _and_largest(x: Any) -> Any:
    return _layer_norm(x), x.max(axis=-1)


def _kept_distances(x: Any) -> Any:
    distance = x - x.mean(axis=-1, keepdims=True)
    return distance / np.sqrt((distance * distance).mean(axis=-1, keepdims=True))


def _cubes(x: Any) -> Any:
    distance = x - x.mean(axis=-1, keepdims=True)
    return x * (distance * distance * distance).mean(axis=-1, keepdims=True)


def _two_means(x: Any) -> Any:
    distance = x - x.mean(axis=-1, keepdims=True)
    spread = (distance * distance).mean(axis=-1, keepdims=True)
    return x * spread, (x - spread).max(axis=-1)


def _scaled(x: Any) -> Any:
    return x * x.var(axis=-1, keepdims=True), x.var(axis=-1)


def _random(*shape: int, offset: float = 0) -> Any:
    random = np.random.default_rng(3)
    return (random.standard_normal(shape) + offset).astype(np.float32)


def _scheduled(call: Call) -> Scheduled:
    scheduled = call.apply(call.heuristic())
    assert isinstance(scheduled.heuristic, ReductionHeuristic)
    assert scheduled.heuristic.is_shared
    return scheduled


def _meetings(scheduled: Scheduled) -> int:
    """Count the places where blocks send each other something."""
    statements = every(lower(scheduled).body)
    branches = [s for s in statements if isinstance(s, If)]
    return sum(any(isinstance(x, Post) for x in s.body) for s in branches)


@pytest.mark.parametrize(
    ("function", "shape", "meetings"),
    [
        (_layer_norm, (3, 9000), 1),
        (_layer_norm, (3, 9001), 1),
        (_channels, (5, 3, 2400), 1),
        (_stored_distances, (3, 9000), 2),
        (_and_largest, (3, 9000), 2),
        (_kept_distances, (3, 9000), 2),
        (_cubes, (3, 9000), 2),
        (_two_means, (3, 9000), 3),
    ],
)
def test_blocks_meet_as_seldom_as_they_can(
    function: Callable[..., Any], shape: tuple[int, ...], meetings: int
) -> None:
    call = Call(function, _random(*shape))
    scheduled = _scheduled(call)
    assert _meetings(scheduled) == meetings
    call.check(scheduled)


@pytest.mark.parametrize("offset", [0, 1000])
def test_squares_about_the_means_of_parts_are_as_exact(offset: float) -> None:
    # The means of parts differ: what lies between them counts too.
    x = _random(2, 9000, offset=offset) + np.linspace(-9, 9, 9000, dtype=np.float32)
    call = Call(_scaled, x)
    *_, found = call.run(_scheduled(call))
    np.testing.assert_allclose(found, x.astype(np.float64).var(axis=-1), rtol=1e-6)
