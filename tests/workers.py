# SPDX-License-Identifier: Apache-2.0
"""Check many programs in worker processes, so that a crash is one more finding."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK = 100  # programs a process
PATIENCE = 300.0  # seconds without a result: the program hangs


class Numbered(Protocol):
    """What became of program ``index``."""

    @property
    def index(self) -> int: ...


R = TypeVar("R", bound=Numbered, covariant=True)


class Task(Protocol[R]):
    """The programs ``start`` up to ``stop``."""

    @property
    def start(self) -> int: ...

    @property
    def stop(self) -> int: ...

    def part(self, start: int, stop: int) -> Self:
        """Return the task of some of the programs."""
        ...

    def command(self) -> list[str]:
        """Return what to give Python for a process that prints a line a program."""
        ...

    def parsed(self, line: str) -> R:
        """Return what such a line says."""
        ...

    def crashed(self, index: int, how: str) -> R:
        """Return the finding that the process ended at program ``index``."""
        ...


class Worker(Generic[R]):
    """A process that checks the programs of one task."""

    def __init__(self, task: Task[R]) -> None:
        self.task = task
        self.next = task.start
        self.heard = time.monotonic()
        command = [sys.executable, *task.command()]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.stdout: IO[str] = self.process.stdout

    def read(self) -> R | None:
        """Return the next result, or None at the end."""
        line = self.stdout.readline()
        if not line:
            return None
        self.heard = time.monotonic()
        result = self.task.parsed(line)
        self.next = result.index + 1
        return result

    def rest(self) -> tuple[R | None, Task[R] | None]:
        """Return the finding of an early end, and the task that is left."""
        code = self.process.wait()
        self.stdout.close()
        stop = self.task.stop
        if self.next >= stop:
            return None, None
        how = f"the process ended with code {code}"
        if time.monotonic() - self.heard > PATIENCE:
            how = f"no result within {PATIENCE:.0f} s"
        finding = self.task.crashed(self.next, how)
        left = self.next + 1
        return finding, self.task.part(left, stop) if left < stop else None


def write(results: Iterable[Any]) -> None:
    """Write a line of JSON for each of some dataclasses, as they come, in a worker."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else prints is not mistaken for a result
    for result in results:
        out.write(json.dumps(asdict(result)) + "\n")
        out.flush()


def run_all(task: Task[R], jobs: int, chunk: int = CHUNK) -> Iterator[R]:
    """Check the programs of ``task`` in ``jobs`` processes, ``chunk`` in each."""
    tasks = [
        task.part(start, min(start + chunk, task.stop))
        for start in range(task.start, task.stop, chunk)
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


def _end_hanging(workers: list[Worker[R]]) -> None:
    for worker in workers:
        if time.monotonic() - worker.heard > PATIENCE:
            worker.process.kill()
