# SPDX-License-Identifier: Apache-2.0
"""Clocks: events on the GPU, its cache flushed or calls in a row; turns on the CPU."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from random import Random
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FLUSH_BYTES = 1 << 28  # several times the largest L2; also hides the host's own time
BUDGET = 0.06  # seconds of measured time for each call
COPIED_BYTES = 1 << 30
SLEEP_CYCLES = 1 << 25  # some 17 ms


def gpu_seconds(torch: Any, calls: Sequence[Callable[[], Any]], flush: Any) -> float:
    """Return the median device time of one of ``calls``, which take turns.

    ``flush`` is written before each of them. Without it they follow each other, and
    each finds in the cache what the one before it left; results, too, last for a round.
    """
    for call in calls:
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    calls[0]()
    end.record()
    end.synchronize()
    estimate = max(begin.elapsed_time(end) / 1e3, 1e-5)
    rounds = int(min(max(BUDGET / estimate, 10), 200))
    events: list[tuple[Any, Any]] = []
    made: deque[Any] = deque(maxlen=len(calls))
    if flush is None:
        torch.cuda._sleep(SLEEP_CYCLES)  # until the host is ahead
    for call in islice(cycle(calls), rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if flush is not None:
            flush.zero_()
        begin.record()
        result = call()
        end.record()
        if flush is None:
            made.append(result)
        events.append((begin, end))
    torch.cuda.synchronize()
    return median(b.elapsed_time(e) for b, e in events) / 1e3


def queued_seconds(
    calls: Sequence[Callable[[], Any]], wait: Callable[[Any], Any]
) -> float:
    """Return the time of one of many calls in a row, on a stream without events.

    Nothing is flushed: inputs and outputs are larger than the cache.
    """
    for call in calls:
        wait(call())
    begin = perf_counter()
    wait(calls[0]())
    estimate = max(perf_counter() - begin, 1e-5)
    queued = int(min(max(BUDGET / 4 / estimate, 5), 50))
    times: list[float] = []
    for _ in range(5):
        begin = perf_counter()
        for call in islice(cycle(calls), queued):
            made = call()
        wait(made)
        times.append((perf_counter() - begin) / queued)
    return median(times)


def gpu_copy_bandwidth(torch: Any, flush: Any) -> float:
    """Return the bytes a second that a copy within the device reads and writes."""
    source = torch.empty(COPIED_BYTES, dtype=torch.int8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    seconds = gpu_seconds(torch, [lambda: target.copy_(source)], flush)
    return 2 * COPIED_BYTES / seconds


def by_turns(
    calls: Mapping[str, Callable[[], Any]], seconds: float, least: int = 5
) -> dict[str, float]:
    """Return the median time of each call; every round makes each of them once.

    Each round has an order of its own: who comes before decides what is in the caches,
    and in the memory that an allocator hands out next.
    """
    if not calls:
        return {}
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, shuffle = list(calls.items()), Random(0).shuffle
    spent = 0.0
    while spent < seconds or len(next(iter(times.values()))) < least:
        shuffle(order)
        for name, call in order:
            begin = perf_counter()
            call()
            times[name].append(perf_counter() - begin)
            spent += times[name][-1]
    return {name: median(found) for name, found in times.items()}


def cpu_copy_bandwidth(size: int = COPIED_BYTES // 8) -> float:
    """Return the bytes a second that a copy by all cores reads and writes."""
    workers = len(os.sched_getaffinity(0))
    source, target = np.ones(size, "i1"), np.ones(size, "i1")
    parts = list(
        zip(
            np.array_split(target, workers),
            np.array_split(source, workers),
            strict=True,
        )
    )
    with ThreadPoolExecutor(workers) as pool:

        def copy() -> None:
            list(pool.map(lambda part: np.copyto(*part), parts))

        seconds = by_turns({"copy": copy}, 0.5)["copy"]
    return 2 * size / seconds
