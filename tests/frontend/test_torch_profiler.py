# SPDX-License-Identifier: Apache-2.0
"""Torch's profiler shows the launches of fused functions, and calls pay nothing."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.base.debug import events

if TYPE_CHECKING:
    from collections.abc import Generator

torch: Any = pytest.importorskip("torch")
RANGES = ["halves:halves_kernel"]


@pytest.fixture(autouse=True)
def _quiet() -> Generator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own, where there is no GPU
        yield


def _halves() -> Any:
    @nfuser.fuse
    def halves(x: Any) -> Any:
        return np.exp(x) / 2

    return halves


def _ranges(profile: Any) -> list[str]:
    return [e.name for e in profile.events() if ":" in e.name and "_kernel" in e.name]


def _profiled(call: Any) -> list[str]:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU]
    ) as profile:
        call()
    return _ranges(profile)


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_each_launch_is_a_range(library: str) -> None:
    halves = _halves()
    given = torch.rand(4, 8)
    given = given if library == "torch" else given.numpy()
    for _ in range(4):
        halves(given)
    before = halves.native_calls
    assert _profiled(lambda: halves(given)) == RANGES
    assert halves.native_calls == before
    halves(given)
    assert halves.native_calls > before or before == 0
    assert not events.watched()
    assert not config.is_left_to_python()
    assert _profiled(lambda: [halves(given), halves(given)]) == RANGES * 2


def test_what_is_compiled_under_the_profiler_is_a_range_too() -> None:
    halves, given = _halves(), torch.rand(3, 5)
    with torch.profiler.profile() as profile:
        halves(given)
    names = {e.name for e in profile.events()}
    assert {"nfuser trace: trace halves", "nfuser call: halves"} <= names


def test_the_profiler_is_met_where_it_runs_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from nfuser.base.debug import ranges

    profiler = torch.autograd.profiler
    monkeypatch.setattr(ranges, "_followed", [])
    for name in ("_run_on_profiler_start", "_run_on_profiler_stop"):
        monkeypatch.setattr(profiler, name, _original(getattr(profiler, name)))
    halves, given = _halves(), torch.rand(3, 7)
    assert _profiled(lambda: halves(given)) == RANGES
    assert not events.watched()


def _original(function: Any) -> Any:
    """Return what torch had there before nfuser came."""
    while function.__closure__:
        function = function.__closure__[0].cell_contents
    return function
