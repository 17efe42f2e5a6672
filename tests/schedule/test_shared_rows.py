# SPDX-License-Identifier: Apache-2.0
"""Rows that several blocks keep: what they do while they wait for each other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.codegen.printers.cuda import print_cuda
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from tests.schedule.run_schedule import Call
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.schedule.scheduled import Scheduled


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let blocks keep little, so that short rows are shared by many."""
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 64)
    monkeypatch.setattr(reduction_cuda, "SHARE_KEPT", 20)
    use_smaller_gpu(monkeypatch, most_threads=64)
    monkeypatch.setattr(reduction_cuda, "STORED", ())


def _root_mean_square(x: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True))


def _channels(x: Any) -> Any:
    mean, variance = (f(axis=(0, 2), keepdims=True) for f in (x.mean, x.var))
    return (x - mean) / np.sqrt(variance + 1e-5)


SHAPES = {
    _root_mean_square: (20, 11_000),
    _channels: (11, 20, 1000),
}


def _call(function: Callable[..., Any]) -> Call:
    rng = np.random.default_rng(0)
    return Call(function, rng.standard_normal(SHAPES[function]).astype(np.float32))


def _scheduled(call: Call) -> Scheduled:
    heuristic = call.heuristic()
    assert isinstance(heuristic, CudaReduction)
    assert heuristic.is_shared
    assert heuristic.steps == 4
    assert heuristic.geometry.rounds == 2
    return call.apply(heuristic)


def _order(scheduled: Scheduled) -> list[str]:
    """Return when a turn sends, receives, and copies how many steps of the next."""
    turn = print_cuda(lower(scheduled)).code.partition("while ")[2]
    copies = r"range\((\d+)\):\n.*\n *copy_packet"
    found = re.finditer(rf"(post|receive)\(|{copies}", turn)
    return [m[1] or m[2] for m in found]


@pytest.mark.parametrize(
    ("function", "order"),
    [
        (_root_mean_square, ["post", "1", "receive", "3"]),
        (_channels, ["post", "1", "receive"] * 2 + ["2"]),
    ],
)
def test_copies_of_the_next_row_begin_while_blocks_wait(
    function: Callable[..., Any], order: list[str]
) -> None:
    call = _call(function)
    scheduled = _scheduled(call)
    assert _order(scheduled) == order
    call.check(scheduled)


def test_blocks_that_fall_out_of_step_copy_after_they_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reduction_cuda, "ROUNDS_IN_STEP", 1)
    scheduled = _scheduled(_call(_channels))
    assert _order(scheduled) == ["post", "receive"] * 2 + ["4"]
