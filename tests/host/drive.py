# SPDX-License-Identifier: Apache-2.0
"""Check random programs here, or in a worker process."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass, replace

from tests.host.loops import check_loops
from tests.host.programs import check
from tests.host.spread import TOLERANCE, random_case
from tests.host.spread_fusions import random_fused
from tests.host.updates import check_updates, where_more_can_go_wrong

CHUNK = 25  # programs a process: on the CPU one may take seconds to compile


@dataclass(frozen=True)
class Task:
    """The programs ``start`` up to ``stop`` on a backend, or on virtual ranks."""

    backend: str
    start: int
    stop: int
    ranks: bool = False

    def part(self, start: int, stop: int) -> Task:
        """Return the task of some of the programs."""
        return replace(self, start=start, stop=stop)

    def command(self) -> list[str]:
        """Return what to give Python for a worker."""
        spelled = f"{self.start}:{self.stop}"
        command = ["-m", "tests.host", "--backend", self.backend, "--worker", spelled]
        return command + ["--ranks"] * self.ranks

    def parsed(self, line: str) -> Result:
        """Return what a worker printed."""
        return Result(**json.loads(line))

    def crashed(self, index: int, how: str) -> Result:
        """Describe a program at which the process ended."""
        return Result(index, report=self.described(index, how))

    def described(self, index: int, what: str) -> str:
        """Say what is wrong with a program, and how to see it again."""
        again = f"--seed {index} --programs 1 --backend {self.backend}"
        again += " --ranks" * self.ranks
        return f"program {index} (python -m tests.host {again}):\n{what}"


@dataclass(frozen=True)
class Result:
    """What became of one program; ``report`` is for people to read."""

    index: int
    kernels: int = 0
    report: str | None = None


def run_one(task: Task, index: int) -> Result:
    """Check a program."""
    try:
        if task.ranks:
            random_case(index).check(TOLERANCE)
            random_fused(index).check(TOLERANCE)
            return Result(index)
        check_updates(index, where_more_can_go_wrong())
        check_loops(index, task.backend)
        return Result(index, check(index, task.backend))
    except Exception:  # noqa: BLE001 (any of them is a finding)
        return Result(index, report=task.described(index, traceback.format_exc()))
