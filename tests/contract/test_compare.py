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

import pytest

from asv_bench.compare.__main__ import joined
from asv_bench.compare.contest import Row
from asv_bench.compare.table import print_table
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


def _run(command: str, day: str, *names: str) -> dict[str, Any]:
    head = {"commit": "c", "machine": "m", "versions": "v"}
    rows = [{"name": name} for name in names]
    return {"command": command, "date": day, **head, "copy": 2.0, "rows": rows}


def test_runs_of_one_command_are_joined_and_others_are_refused(tmp_path: Path) -> None:
    asked = "python -m asv_bench.compare --backend cpu"
    runs = [
        _run(f"{asked} --only 'a + b' c", "d", "a + b", "c"),
        _run(f"{asked} --only d", "d", "d"),
        _run(f"{asked} --odd --only e", "d", "e"),
    ]
    files = [str(tmp_path / f"{k}.json") for k in range(len(runs))]
    for file, run in zip(files, runs, strict=True):
        Path(file).write_text(json.dumps(run))
    found = joined(files[:2])
    assert found["command"] == asked
    assert found["note"] == "In 2 runs of some rows each (`--only`), joined."
    assert [row["name"] for row in found["rows"]] == ["a + b", "c", "d"]
    with pytest.raises(SystemExit, match="of one command"):
        joined(files)


def test_rows_that_do_not_count_are_marked() -> None:
    seconds, first = {"nfuser": 1.0, "NumPy": 2.0}, {"nfuser": 1.0}
    rows = [
        Row(name, is_headline, fresh=seconds, first_call=first)
        for name, is_headline in (("a * b", True), ("c", False))
    ]
    lines: list[str] = []
    print_table(rows, 1.0, ["NumPy"], "cpu", lines.append)
    text = "\n".join(lines)
    assert "| a \\* b |" in text
    assert "| *c* |" in text
    assert "Rows in italics do not count" in text
    lines.clear()
    print_table(rows[:1], 1.0, ["NumPy"], "cpu", lines.append)
    assert "italics" not in "\n".join(lines)
