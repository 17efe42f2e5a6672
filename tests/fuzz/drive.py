# SPDX-License-Identifier: Apache-2.0
"""Run many programs in worker processes, so that a crash is one more finding."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import IO, TYPE_CHECKING

from tests.fuzz.check import Outcome, check
from tests.fuzz.generate import generate
from tests.fuzz.program import Program, script
from tests.fuzz.shape_programs import generate_shapes
from tests.fuzz.shrink import shrink, shrink_crash

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 100
PATIENCE = 300.0  # seconds without a result: the program hangs
LIMITS = {"interpret": 4_000}
SHAPE_LIMITS = {"interpret": 1_200}


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
        return generate(self.seed, index, LIMITS.get(self.backend, 20_000))


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


def work(task: Task) -> None:
    """Check the programs of a task, and write a line of JSON for each."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints is not mistaken for a result
    for index in range(task.start, task.stop):
        out.write(json.dumps(asdict(run_one(task, index))) + "\n")
        out.flush()


def _crashed(task: Task, index: int, how: str) -> Result:
    program = task.program(index)
    if "code -" in how:
        program = shrink_crash(program, task.backend)
    lines = [
        f"--- seed {task.seed}, program {index}, backend {task.backend}",
        f"wrong: {how}",
        again_with(task, index),
        script(program, task.backend),
    ]
    return Result(index, report="\n".join(lines))


class Worker:
    """A process that checks the programs of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.next = task.start
        self.heard = time.monotonic()
        spelled = f"{task.start}:{task.stop}"
        command = [sys.executable, "-m", "tests.fuzz", "--seed", str(task.seed)]
        command += ["--backend", task.backend, "--worker", spelled]
        command += ["--shapes"] * task.shapes
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.stdout: IO[str] = self.process.stdout

    def read(self) -> Result | None:
        """Return the next result, or None at the end."""
        line = self.stdout.readline()
        if not line:
            return None
        self.heard = time.monotonic()
        result = Result(**json.loads(line))
        self.next = result.index + 1
        return result

    def rest(self) -> tuple[Result | None, Task | None]:
        """Return the finding of an early end, and the task that is left."""
        code = self.process.wait()
        self.stdout.close()
        if self.next >= self.task.stop:
            return None, None
        how = f"the process ended with code {code}"
        if time.monotonic() - self.heard > PATIENCE:
            how = f"no result within {PATIENCE:.0f} s"
        left = replace(self.task, start=self.next + 1)
        finding = _crashed(self.task, self.next, how)
        return finding, left if left.start < left.stop else None


def run_all(task: Task, jobs: int) -> Iterator[Result]:
    """Check the programs of ``task`` in ``jobs`` processes."""
    tasks = [
        replace(task, start=start, stop=min(start + CHUNK, task.stop))
        for start in range(task.start, task.stop, CHUNK)
    ][::-1]
    with selectors.DefaultSelector() as ready:
        workers = 0
        while tasks or workers:
            while tasks and workers < jobs:
                worker = Worker(tasks.pop())
                ready.register(worker.stdout, selectors.EVENT_READ, worker)
                workers += 1
            for key, _ in ready.select(timeout=5):
                worker = key.data
                if (result := worker.read()) is not None:
                    yield result
                    continue
                ready.unregister(worker.stdout)
                workers -= 1
                finding, left = worker.rest()
                if finding is not None:
                    yield finding
                if left is not None:
                    tasks.append(left)
            _end_hanging([key.data for key in ready.get_map().values()])


def _end_hanging(workers: list[Worker]) -> None:
    for worker in workers:
        if time.monotonic() - worker.heard > PATIENCE:
            worker.process.kill()
