# SPDX-License-Identifier: Apache-2.0
"""Check programs, and say what is wrong with one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from tests.fuzz.check import Outcome, check
from tests.fuzz.generate import generate
from tests.fuzz.program import Program, script
from tests.fuzz.shape_programs import generate_shapes
from tests.fuzz.shrink import shrink, shrink_crash

LIMITS = {"interpret": 4_000}
SHAPE_LIMITS = {"interpret": 1_200}
TALL = {"interpret": 4_000}
"""How many elements arrays have that are long along one axis."""


@dataclass(frozen=True)
class Task:
    """The programs ``start`` up to ``stop`` of a seed, on a backend."""

    seed: int
    backend: str
    start: int
    stop: int
    shapes: bool = False

    def program(self, index: int) -> Program:
        """Return one of the programs."""
        if self.shapes:
            limit = SHAPE_LIMITS.get(self.backend, 4_000)
            return generate_shapes(self.seed, index, limit)
        limit = LIMITS.get(self.backend, 20_000)
        return generate(self.seed, index, limit, TALL.get(self.backend, 150_000))

    def part(self, start: int, stop: int) -> Task:
        """Return the task of some of the programs."""
        return replace(self, start=start, stop=stop)

    def command(self) -> list[str]:
        """Return what to give Python for a worker."""
        spelled = f"{self.start}:{self.stop}"
        command = ["-m", "tests.fuzz", "--seed", str(self.seed)]
        command += ["--backend", self.backend, "--worker", spelled]
        return command + ["--shapes"] * self.shapes

    def parsed(self, line: str) -> Result:
        """Return what a worker printed."""
        return Result(**json.loads(line))

    def crashed(self, index: int, how: str) -> Result:
        """Describe a program at which the process ended."""
        program = self.program(index)
        if "code -" in how:
            program = shrink_crash(program, self.backend)
        lines = [
            f"--- seed {self.seed}, program {index}, backend {self.backend}",
            f"wrong: {how}",
            again_with(self, index),
            script(program, self.backend),
        ]
        return Result(index, report="\n".join(lines))


@dataclass(frozen=True)
class Result:
    """What became of one program; ``report`` is for people to read."""

    index: int
    skipped: int = 0
    elements: int = 0
    report: str | None = None


def run_one(task: Task, index: int) -> Result:
    """Check a program; if it is wrong, shrink it and describe it."""
    program = task.program(index)
    outcome = check(program, task.backend)
    if outcome.problem is None:
        return Result(index, outcome.skipped, outcome.elements)
    small = shrink(program, task.backend)
    report = describe(task, index, outcome, small)
    return Result(index, outcome.skipped, outcome.elements, report)


def describe(task: Task, index: int, outcome: Outcome, small: Program) -> str:
    """Say what was wrong and how to see it again."""
    again = check(small, task.backend).problem or "(it no longer fails when run again)"
    lines = [
        f"--- seed {task.seed}, program {index}, backend {task.backend}",
        f"wrong: {outcome.problem}",
        f"shrunk: {again}",
        again_with(task, index),
        script(small, task.backend),
    ]
    return "\n".join(lines)


def again_with(task: Task, index: int) -> str:
    """Return the command that checks one program again."""
    which = f"--seed {task.seed} --only {index} --backend {task.backend}"
    which += " --shapes" * task.shapes
    return f"python -m tests.fuzz {which}"
