# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.host --programs 2000 --jobs 2``."""

from __future__ import annotations

import argparse
import sys

from tests.host.drive import CHUNK, Task, run_one
from tests.workers import run_all, write


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.host", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    choices = ["interpret", "cpu"]
    parser.add_argument("--backend", choices=choices, default="interpret")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--ranks", action="store_true", help="programs over meshes")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Check the programs asked for; return whether any is wrong."""
    given = _parsed()
    if given.worker:
        start, stop = map(int, given.worker.split(":"))
        task = Task(given.backend, start, stop, given.ranks)
        write(run_one(task, index) for index in range(start, stop))
        return 0
    stop = given.seed + given.programs
    task = Task(given.backend, given.seed, stop, given.ranks)
    if given.programs == 1:
        results = iter([run_one(task, given.seed)])
    else:
        results = run_all(task, given.jobs, CHUNK)
    count = wrong = kernels = 0
    for result in results:
        count += 1
        kernels += result.kernels
        if result.report is not None:
            wrong += 1
            _say(result.report)
    _say(f"host: {count} programs, {kernels} kernels, {wrong} wrong")
    return int(wrong > 0 or count != given.programs)


if __name__ == "__main__":
    sys.exit(main())
