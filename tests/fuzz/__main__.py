# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.fuzz --programs 3000 --seed 1 --backend cpu``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tests.fuzz.backends import BACKENDS
from tests.fuzz.drive import Result, Task, run_one
from tests.workers import run_all, write

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_SKIPPED = 0.01


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="cpu")
    parser.add_argument("--only", type=int, help="the number of one program")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--shapes", action="store_true", help="chains of movements")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the programs asked for; return the exit code."""
    given = _parsed()
    if given.worker:
        start, stop = map(int, given.worker.split(":"))
        task = Task(given.seed, given.backend, start, stop, given.shapes)
        write(run_one(task, index) for index in range(start, stop))
        return 0
    if given.only is not None:
        start, stop = given.only, given.only + 1
        task = Task(given.seed, given.backend, start, stop, given.shapes)
        _say(task.program(given.only).source())
        return _summed([run_one(task, given.only)])
    task = Task(given.seed, given.backend, 0, given.programs, given.shapes)
    return _summed(run_all(task, given.jobs))


def _summed(results: Iterable[Result]) -> int:
    count = wrong = skipped = elements = 0
    for result in results:
        count += 1
        skipped += result.skipped
        elements += result.elements
        if result.report is not None:
            wrong += 1
            _say(result.report)
    _say(
        f"fuzz: {count} programs, {wrong} wrong, "
        f"{skipped} of {elements} elements skipped"
    )
    return int(wrong > 0 or skipped > _MOST_SKIPPED * elements)


if __name__ == "__main__":
    sys.exit(main())
