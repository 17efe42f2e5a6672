# SPDX-License-Identifier: Apache-2.0
"""Gradients of many random programs: ``python -m tests.differentiate --programs 3000``.

Each program is called in f64, f32, bf16 and complex numbers, twice in each; a tenth is
differentiated twice, and a third forwards.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tests.differentiate.calls import check
from tests.differentiate.programs import random_program
from tests.workers import run_all, write

if TYPE_CHECKING:
    from collections.abc import Iterable

_CHUNK = 20  # programs a process
COUNTS = ("calls", "unjudged", "leaked", "points", "apart")
_BACKENDS = ("cpu", "interpret", "cuda")


@dataclass(frozen=True)
class Result:
    """What became of one program; ``report`` is for people to read."""

    index: int
    calls: int = 0
    unjudged: int = 0
    leaked: int = 0
    points: int = 0
    apart: int = 0
    report: str | None = None
    is_late: bool = False


@dataclass(frozen=True)
class Task:
    """The programs of the seeds ``start`` up to ``stop``, until a time."""

    start: int
    stop: int
    backend: str
    until: float

    def part(self, start: int, stop: int) -> Task:
        """Return the task of some of the programs."""
        return replace(self, start=start, stop=stop)

    def command(self) -> list[str]:
        """Return what to give Python for a worker."""
        return ["-m", "tests.differentiate", "--worker", json.dumps(asdict(self))]

    def parsed(self, line: str) -> Result:
        """Return what a worker printed."""
        return Result(**json.loads(line))

    def crashed(self, index: int, how: str) -> Result:
        """Describe a program at which the process ended."""
        return Result(index, report=_report(index, [how]))


def _report(seed: int, problems: Iterable[str]) -> str:
    program = random_program(seed, 4 + seed % 9)
    return "\n".join([f"--- {program}", *(f"wrong: {text}" for text in problems)])


def _run_one(task: Task, seed: int) -> Result:
    """Check the program of a seed, unless it is late."""
    if time.time() > task.until:
        return Result(seed, is_late=True)
    try:
        tally = check(seed, task.backend)
    except Exception as error:  # noqa: BLE001 (whatever it raised is the finding)
        return Result(seed, report=_report(seed, [f"{type(error).__name__}: {error}"]))
    report = _report(seed, tally.problems) if tally.problems else None
    counts = {name: getattr(tally, name) for name in COUNTS}
    return Result(seed, **counts, report=report)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differentiate", description=__doc__
    )
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin none later")
    parser.add_argument("--backend", choices=_BACKENDS, default="cpu")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the programs asked for; return the exit code."""
    given = _parsed()
    if given.worker:
        task = Task(**json.loads(given.worker))
        write(_run_one(task, seed) for seed in range(task.start, task.stop))
        return 0
    until = time.time() + given.seconds
    task = Task(given.seed, given.seed + given.programs, given.backend, until)
    programs = wrong = 0
    counts = dict.fromkeys(COUNTS, 0)
    for result in run_all(task, given.jobs, _CHUNK):
        programs += not result.is_late
        for name in COUNTS:
            counts[name] += getattr(result, name)
        if result.report is not None:
            wrong += 1
            _say(result.report)
        if programs % 100 == 0 and not result.is_late:
            _say(
                f"{programs} programs, {counts['calls']} calls, {wrong} programs wrong"
            )
    _say(
        f"gradients: {programs} programs, {counts['calls']} calls, {wrong} programs "
        f"wrong, {counts['unjudged']} gradients not judged, {counts['leaked']} are no "
        f"number in JAX alone; JAX and PyTorch differ in {counts['apart']} of "
        f"{counts['points']} elements"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
