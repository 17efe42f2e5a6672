# SPDX-License-Identifier: Apache-2.0
"""One program beside its peers: checked against NumPy, then timed by turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from asv_bench.programs.peers.runners import RUNNERS, Runner
from asv_bench.programs.program import copied, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asv_bench.programs.program import Arguments, Program

OURS, PLAIN = "nfuser", "numpy"
PEERS = tuple(RUNNERS)
_SHORT = 0.02  # seconds; shorter calls are repeated until they take as long


@dataclass
class Row:
    """Seconds of a call by who runs it, or why it did not run."""

    name: str
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    first_call: float = 0.0
    notes: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def ratio(self) -> float | None:
        """How many times the time of nfuser the best of the others takes."""
        others = [s for name, s in self.seconds.items() if name != OURS]
        return min(others) / self.seconds[OURS] if OURS in self.seconds else None


def measured(
    program: Program, sizes: Arguments, peers: Iterable[str], turns: int = 5
) -> Row:
    """Return the medians of ``turns`` calls each, which take turns."""
    row = Row(program.module)
    given = program.given(sizes)
    theirs = copied(given)
    returned = listed(program.plain(*theirs))
    written = [k for k, x in enumerate(given) if not np.array_equal(x, theirs[k])]
    wanted = [np.asarray(x) for x in (*(theirs[k] for k in written), *returned)]
    runners = {PLAIN: Runner(program.plain)}
    for name in (OURS, *peers):
        runner = _entered(row, program, name, given, wanted, written)
        if runner is not None:
            runners[name] = runner
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(turns):
        for name, runner in runners.items():
            times[name].append(_seconds(runner, given))
    row.seconds = {name: median(found) for name, found in times.items()}
    return row


def _entered(
    row: Row,
    program: Program,
    name: str,
    given: Arguments,
    wanted: list[Any],
    written: list[int],
) -> Runner | None:
    """Return a contestant whose result is that of NumPy."""
    try:
        if name == OURS:
            runner = Runner(nfuser.fuse(program.plain))
        elif (function := program.peer(name)) is None:
            return None
        else:
            runner = RUNNERS[name](function)
        prepared = runner.prepared(given)
        begin = perf_counter()
        found = runner.run(prepared)
        if name == OURS:
            row.first_call = perf_counter() - begin
        mine = runner.outcome(prepared, found, written)
        for one, other in zip(wanted, mine, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)
        for _ in range(3):  # the calls after the first may take other ways
            runner.run(runner.prepared(given))
    except Exception as error:  # noqa: BLE001 (whatever stops a peer is told)
        lines = str(error).strip().splitlines() or [""]
        row.notes[name] = f"{type(error).__name__}: {lines[0][:200]}"
        return None
    return runner


def _seconds(runner: Runner, given: Arguments) -> float:
    """Return the seconds of one call with fresh arguments."""
    taken, calls = 0.0, 0
    while taken < _SHORT:
        prepared = runner.prepared(given)
        begin = perf_counter()
        runner.run(prepared)
        taken += perf_counter() - begin
        calls += 1
    return taken / calls
