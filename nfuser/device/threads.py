# SPDX-License-Identifier: Apache-2.0
"""Run a CPU kernel over a range, on as many threads as are worth waking.

Python threads are enough: a kernel runs without the GIL. A range is cut into chunks at
multiples of its grain, large ones first; threads take the next chunk when they are done
with one. So which thread computes what is chance, but what is computed for an index is
not, nor where cuts are: results cannot depend on the number of threads.

The calling thread takes chunks too and never waits for a thread to wake: a helper that
comes late finds nothing to do. Calls from several threads share the helpers.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import lru_cache
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from nfuser.device.affinity import available_threads, num_threads
from nfuser.device.cpu_kernel import EXCEPTION, RESULT, CpuKernel, kernel_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SERIAL_COST = 1 << 19
"""Cost below which the work (40 us) is done before helpers are awake (20 to 50 us)."""

CHUNK_COST = 1 << 16
"""Cost below which a chunk (4 us) is not worth fetching (1 us, or more)."""

MOST_CHUNKS = 256
"""What a range is as long as, in the smallest chunks: they even out unequal threads."""

TURNS = 3
"""How many chunks for each core the rest of a range would make: each fetch costs 2 us
where several threads want the GIL, and begins with cold loads."""


def run_range(
    kernel: CpuKernel,
    arguments: Sequence[Any],
    total: int,
    grain: int = 1,
    cost: int | None = None,
) -> None:
    """Run ``kernel`` over ``range(total)``; return when all of it is done.

    ``cost`` is the number of elements the whole range touches, by default ``total``;
    where an element takes longer than a few additions, more.
    What a kernel computes for an index must not depend on where the range is cut, cuts
    being multiples of ``grain``.
    """
    work = total if cost is None else cost
    if work <= SERIAL_COST or total <= grain or (threads := num_threads()) == 1:
        status = kernel.entry(RESULT, EXCEPTION, 0, total, *arguments)
        if status:
            raise kernel_failure(status)
        return
    least = chunk_size(total, grain, work)
    job = Job(kernel, arguments, cuts(total, least, available_threads()))
    _pool.help_with(job, threads - 1)
    job.finish()


def chunk_size(total: int, grain: int, cost: int) -> int:
    """Return the indices of the smallest chunk: a multiple of ``grain``.

    >>> chunk_size(1_000_000, 64, 1_000_000)
    66688
    >>> chunk_size(10, 1, 10_000_000)
    1
    """
    chunks = max(1, min(MOST_CHUNKS, cost // CHUNK_COST))
    grains = -(-total // grain)
    return -(-grains // chunks) * grain


@lru_cache(maxsize=1024)
def cuts(total: int, least: int, cores: int) -> tuple[int, ...]:
    """Return where chunks begin and end: a part of the rest each, but ``least``.

    ``cores`` are those there are, whatever the threads of a call.

    >>> cuts(100, 4, 2)
    (0, 16, 28, 40, 48, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96, 100)
    """
    found = [0]
    while (left := total - found[-1]) > 0:
        size = max(left // (TURNS * cores * least), 1) * least
        found.append(min(found[-1] + size, total))
    return tuple(found)


class Job:
    """One range being worked on, by its caller and by the helpers that joined in time.

    ``count`` hands out numbers atomically under the GIL. The caller closes the job when
    no chunk is left and then waits for the helpers inside; who comes later stays out.
    """

    __slots__ = (
        "_busy",
        "_closed",
        "_gate",
        "_lock",
        "_next",
        "arguments",
        "chunks",
        "cuts",
        "entry",
        "failed",
    )

    def __init__(
        self, kernel: CpuKernel, arguments: Sequence[Any], cuts: Sequence[int]
    ) -> None:
        self.entry = kernel.entry
        self.arguments = arguments
        self.cuts = cuts
        self.chunks = len(cuts) - 1
        self.failed: dict[int, BaseException] = {}
        self._next = count()
        self._busy = 0
        self._closed = False
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        self._gate.acquire()

    def help(self) -> None:
        """Work along in another thread, unless the job is closed."""
        with self._lock:
            if self._closed:
                return
            self._busy += 1
        self._work()
        with self._lock:
            self._busy -= 1
            if self._closed and not self._busy:
                self._gate.release()

    def finish(self) -> None:
        """Work in the calling thread, wait for the helpers, raise the first failure."""
        interrupt = _interruption(self._work)
        while (again := _interruption(self._close)) is not None:
            interrupt = again
        if interrupt is not None:
            raise interrupt
        if self.failed:
            raise self.failed[min(self.failed)]

    def _work(self) -> None:
        entry, arguments, cuts = self.entry, self.arguments, self.cuts
        while not self._closed and (number := next(self._next)) < self.chunks:
            start, stop = cuts[number], cuts[number + 1]
            try:
                status = entry(RESULT, EXCEPTION, start, stop, *arguments)
            except (TypeError, ctypes.ArgumentError) as error:
                self.failed[number] = error
                continue
            if status:
                self.failed[number] = kernel_failure(status)

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            must_wait = self._busy > 0
        if must_wait:
            self._gate.acquire()


def _interruption(step: Callable[[], None]) -> BaseException | None:
    """Return what interrupted ``step``: nobody may leave while helpers still write."""
    try:
        step()
    except BaseException as error:  # noqa: BLE001 (raised again by finish)
        return error
    return None


class Pool:
    """Helper threads that sleep on one queue of jobs."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._size = 0

    def help_with(self, job: Job, helpers: int) -> None:
        """Wake up to ``helpers`` threads for a job, starting those that are missing."""
        wanted = min(helpers, job.chunks - 1)
        if self._size < wanted:
            self._grow(wanted)
        for _ in range(wanted):
            self._queue.put(job)

    def _grow(self, size: int) -> None:
        with self._lock:
            while self._size < size:
                name = f"nfuser-{self._size}"
                threading.Thread(target=self._help, name=name, daemon=True).start()
                self._size += 1

    def _help(self) -> None:
        while True:
            job = self._queue.get()
            job.help()
            # A sleeping thread must not keep the arrays of its last job alive.
            del job


_pool = Pool()


def _after_fork() -> None:
    """Forget threads that a child process does not have."""
    global _pool
    _pool = Pool()
    available_threads.cache_clear()


os.register_at_fork(after_in_child=_after_fork)
