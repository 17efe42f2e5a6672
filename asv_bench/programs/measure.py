# SPDX-License-Identifier: Apache-2.0
"""One program beside its peers: checked against NumPy, then timed by turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
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
_RTOL, _ATOL = 1e-6, 1e-9
_JUDGED = 1e-4  # where NumPy itself is further from itself, nothing is excused
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
    wanted = _outcome(theirs, returned, written)
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
        _check(program, given, wanted, mine, written)
        for _ in range(3):  # the calls after the first may take other ways
            runner.run(runner.prepared(given))
    except Exception as error:  # noqa: BLE001 (whatever stops a peer is told)
        lines = str(error).strip().splitlines() or [""]
        row.notes[name] = f"{type(error).__name__}: {lines[0][:200]}"
        return None
    return runner


def _outcome(arguments: Arguments, returned: Any, written: list[int]) -> list[Any]:
    """Return what a call of NumPy has written, and what it has returned."""
    return [np.asarray(x) for x in (*(arguments[k] for k in written), *returned)]


def _check(
    program: Program,
    given: Arguments,
    wanted: list[Any],
    found: list[Any],
    written: list[int],
) -> None:
    """Raise where a result is not that of NumPy.

    The orbits of many bodies that pass near each other double an error of rounding in
    each few steps. A result that is out of tolerance is therefore right only where
    NumPy's own is as far away, once the last bits of the arguments are others.
    """
    pairs = list(zip(wanted, found, strict=True))
    for one, other in pairs:
        assert np.shape(other) == one.shape, (np.shape(other), one.shape)
    close = partial(np.allclose, rtol=_RTOL, atol=_ATOL, equal_nan=True)
    if all(close(other, one) for one, other in pairs):
        return
    others = [_outcome(*_with_other_bits(program, given, k), written) for k in range(4)]
    for k, (one, other) in enumerate(pairs):
        spread = max(float(np.abs(o[k] - one).max()) for o in others)
        atol = 2 * spread if _ATOL < spread < _JUDGED else _ATOL
        np.testing.assert_allclose(other, one, rtol=_RTOL, atol=atol)


def _with_other_bits(
    program: Program, given: Arguments, seed: int
) -> tuple[Arguments, Any]:
    """Return the arguments after a call of NumPy, and what it returns.

    Before the call each element of an array is moved to a neighbour of its own.
    """
    rng = np.random.default_rng(seed)
    moved = tuple(
        np.nextafter(x, np.where(rng.random(x.shape) < 0.5, -np.inf, np.inf))
        if isinstance(x, np.ndarray) and x.dtype.kind == "f"
        else x
        for x in copied(given)
    )
    return moved, listed(program.plain(*moved))


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
