# SPDX-License-Identifier: Apache-2.0
"""What nfuser does with the text of a function is not watched as its values are."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.compiler.trace.watch.observer import Observer
from tests.hand_built import settled

if TYPE_CHECKING:
    from types import FrameType

    import pytest


def _steps(u: Any) -> Any:
    for _ in (0, 1):
        u = u + np.sin(u)
    return u


def test_a_function_is_written_anew_out_of_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    see = Observer.see

    def counted(self: Observer, frame: FrameType, event: str, item: Any) -> None:
        seen.append(frame.f_code.co_filename)
        see(self, frame, event, item)

    monkeypatch.setattr(Observer, "see", counted)
    x = np.ones(3)
    np.testing.assert_array_equal(nfuser.fuse(_steps)(x), _steps(x))
    assert __file__ in seen
    assert not any(file.endswith("ast.py") for file in seen)


def _sums(u: Any, turns: int) -> Any:
    for _ in range(turns):
        u = u + u
    return u


def test_of_a_verb_three_events_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins, stops the watch, and ends: an event costs a tenth of a verb."""
    seen: Counter[str] = Counter()
    see = Observer.see

    def counted(self: Observer, frame: FrameType, event: str, item: Any) -> None:
        seen[frame.f_code.co_name] += 1
        see(self, frame, event, item)

    monkeypatch.setattr(Observer, "see", counted)

    def function(u: Any) -> Any:
        return _sums(u, 20)

    assert nfuser.fuse(function)(np.ones(3))[0] == 2.0**20
    assert seen["quiet"] == 60


def _turned(u: Any) -> Any:
    for _ in (0, 1, 2, 3, 4):
        u = np.roll(u, 1)
    return u


def test_of_a_function_of_numpy_only_begin_and_end_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: Counter[str] = Counter()
    see = Observer.see

    def counted(self: Observer, frame: FrameType, event: str, item: Any) -> None:
        seen[frame.f_code.co_name] += 1
        see(self, frame, event, item)

    nfuser.fuse(lambda u: np.roll(u, 2))(np.ones(3))  # its name is looked up once
    monkeypatch.setattr(Observer, "see", counted)
    x = np.arange(3.0)
    np.testing.assert_array_equal(nfuser.fuse(_turned)(x), _turned(x))
    assert seen["__array_function__"] == 10


def test_a_profiler_of_the_function_goes_on_through_verbs() -> None:
    seen: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        seen[frame.f_code.co_name] += event == "call"

    def function(u: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            return _sums(u, 5)
        finally:
            sys.setprofile(before)

    settled(function, np.ones(3))
    assert seen["operate"] == 5
