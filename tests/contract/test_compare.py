# SPDX-License-Identifier: Apache-2.0
"""The comparison with peers runs, checks what it times, and says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from asv_bench.compare.timing import gpu_seconds

ROOT = Path(__file__).parents[2]
ROWS = ("softmax f", "RoPE bf16", "cumsum", "Black", "a + b f32")


def test_a_tiny_table_is_right_and_complete(tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    command = [sys.executable, "-m", "asv_bench.compare", "--tiny", "--peers", "numpy"]
    run = subprocess.run(
        [*command, "--json", str(found), "--only", *ROWS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    rows = {row["name"]: row for row in json.loads(found.read_text())["rows"]}
    for prefix in ROWS:
        assert any(name.startswith(prefix) for name in rows)
    for name, row in rows.items():
        assert "NumPy" in row["errors"], name
        assert "nfuser" in row["errors"] or "nfuser" in row["notes"], name
        assert name in run.stdout


class _Event:
    """An event of a device that has nothing to do."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed_time(self, end: _Event) -> float:
        assert end is not self
        return 0.25


def _idle(*_: int) -> None: ...


def _no_device() -> Any:
    cuda = SimpleNamespace(Event=_Event, synchronize=_idle, _sleep=_idle)
    return SimpleNamespace(cuda=cuda)


def test_calls_in_a_row_take_turns_and_keep_a_round_of_results() -> None:
    made: list[int] = []
    kept: list[set[int]] = []

    class Result:
        alive: set[int] = set()

        def __init__(self, turn: int) -> None:
            made.append(turn)
            self.number = len(made)
            self.alive.add(self.number)
            kept.append(set(self.alive))

        def __del__(self) -> None:
            self.alive.discard(self.number)

    calls = [lambda turn=turn: Result(turn) for turn in range(3)]
    assert gpu_seconds(_no_device(), calls, None) == 0.25e-3
    timed = made[4:]
    assert timed[:4] == [0, 1, 2, 0]
    assert all(later == (turn + 1) % 3 for turn, later in pairwise(timed))
    assert len(kept[-1]) >= len(calls)


def test_a_flush_stands_before_each_call() -> None:
    order: list[str] = []
    flush = SimpleNamespace(zero_=lambda: order.append("flush"))
    gpu_seconds(_no_device(), [lambda: order.append("call")], flush)
    assert order[2:6] == ["flush", "call"] * 2
