# SPDX-License-Identifier: Apache-2.0
"""Segmentation works in proportion to the program, not to its square."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.schedule.registry import find_scheduler
from nfuser.compiler.segment import segment
from nfuser.compiler.segment.asked_once import asked_once
from nfuser.compiler.segment.segmented import text
from tests.hand_built import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.segment import ShouldMerge

X, Y = np.ones((4, 5), np.float32), np.ones((4, 5), np.float32)


def _cut_last(count: int) -> Callable[[Any, Any], Any]:
    def chain(x: Any, y: Any) -> Any:
        for k in range(count // 2):
            x = np.maximum(x * (1 + k), y)
        return x.sum(axis=0), x.sum(axis=1)

    return chain


def _cut_often(count: int) -> Callable[[Any, Any], Any]:
    def chain(x: Any, y: Any) -> Any:
        for k in range(count // 10):
            for _ in range(4):
                x = np.maximum(x * (1 + k), y)
            x = x - x.sum(axis=k % 2, keepdims=True)
        return x

    return chain


def _always(first: Sequence[Expr], second: Sequence[Expr]) -> bool:
    return bool(first and second)


@pytest.mark.parametrize("should_merge", [None, _always])
@pytest.mark.parametrize("chain", [_cut_last, _cut_often])
def test_four_times_the_program_is_four_times_the_work(
    chain: Callable[[int], Callable[[Any, Any], Any]],
    should_merge: ShouldMerge | None,
) -> None:
    small, large = (_calls(chain(count), should_merge) for count in (100, 400))
    assert large < 5 * small


def _calls(function: Callable[..., Any], should_merge: ShouldMerge | None) -> int:
    """Return how many functions segmentation calls: time that no clock blurs."""
    fusion = settled(function, X, Y)
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        segmented = segment(fusion, find_scheduler, should_merge)
    finally:
        sys.setprofile(before)
    assert len(segmented.segments) > 1
    return calls


def test_steps_that_say_the_same_are_asked_of_schedulers_once() -> None:
    def steps(count: int) -> Callable[..., Any]:
        def run(u: Any) -> Any:
            for _ in range(count):
                u = u + np.roll(u, 1) - np.roll(u, -1)
            return u

        return run

    def asked(count: int) -> int:
        calls: list[object] = []

        def find(fusion: Fusion) -> Any:
            calls.append(fusion)
            return find_scheduler(fusion)

        segment(settled(steps(count), X), find)
        return len(calls)

    # What is new with each step: the whole, and what is left beside its last pieces.
    assert asked(32) <= asked(16) + 8


def test_a_new_concretization_asks_of_what_it_changes_alone() -> None:
    calls: list[object] = []

    @asked_once
    def find(fusion: Fusion) -> Any:
        calls.append(fusion)
        return find_scheduler(fusion)

    def function(x: Any, y: Any) -> Any:
        for k in range(10):
            x = np.maximum(x * (1 + k), 0.5)
            x = x - x.sum(axis=k % 2, keepdims=True)
        return x + y

    segment(settled(function, X, Y), find)
    before = len(calls)
    changed = settled(function, X, Y[:1])
    found = segment(changed, find)
    assert len(calls) - before < before / 5
    alone = segment(changed, find_scheduler)
    assert text(found) == text(alone)
