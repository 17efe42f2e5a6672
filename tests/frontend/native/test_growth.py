# SPDX-License-Identifier: Apache-2.0
"""Native calls over and over: memory, threads, what fails in the middle."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import tracemalloc
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")


def _plain(x: Any, y: Any) -> Any:
    return x * 2 + y


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _call_forever(fused: Any, x: Any) -> None:
    while True:
        fused(x, x)


def _warm(arrays: list[Any]) -> Any:
    fused = nfuser.fuse(_plain)
    for _ in range(3):
        for x in arrays:
            fused(x, x)
    assert fused.native_calls >= len(arrays)
    return fused


@pytest.mark.slow
def test_a_million_calls_over_fifty_shapes_take_no_memory() -> None:
    arrays = [np.ones(n, np.float32) for n in range(10, 60)]
    fused = _warm(arrays)
    warm = fused.native_calls
    bound = fused.bind(arrays[0], arrays[0])
    for _ in range(400):
        for x in arrays:
            fused(x, x)
    gc.collect()
    before = _resident()
    for _ in range(20_000):
        for x in arrays:
            fused(x, x)
        bound()
    gc.collect()
    assert _resident() - before < 1 << 20
    assert fused.native_calls - warm == 1_000_000 + 400 * 50
    assert fused.cache_info().traces == 1


def test_no_object_is_left_by_any_way_through() -> None:
    arrays = [np.ones(n, np.float32) for n in range(1, 6)]
    fused = _warm(arrays)

    def all_ways() -> None:
        for x in arrays:
            fused(x, x)
            fused(x, y=x)
            fused(x, 2.5)
            for other in ([x], x.astype("f8")[::-1], 2**70, None, "text"):
                with suppress(TypeError, ValueError, OverflowError):
                    fused(x, other)

    tracemalloc.start()
    for _ in range(25):  # Python's own free lists are full then
        all_ways()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        all_ways()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    # A small object a call would be 200,000.
    assert grown < 100_000


def test_what_a_call_holds_goes_with_the_function() -> None:
    gone = threading.Event()

    def run(x: Any) -> Any:
        return x + 1

    fused = nfuser.fuse(run)
    for _ in range(3):
        fused(np.ones(3))
    weakref.finalize(fused, gone.set)
    del fused, run
    gc.collect()
    assert gone.is_set()


def test_threads_share_a_function() -> None:
    arrays = [np.full(n, n, np.float32) for n in range(1, 30)]
    fused = nfuser.fuse(_plain)
    failed: list[int] = []

    def work(k: int) -> None:
        for n in range(3000):
            x = arrays[(k * 7 + n) % len(arrays)]
            if n % 500 == 0:
                fused.cache_clear()
            if (fused(x, x) != 3 * x).any():
                failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_long_kernel_lets_other_threads_run() -> None:
    x = np.ones((600, 400), np.float32)
    fused = nfuser.fuse(lambda x: np.sin(x) * np.cos(x) + np.exp(x))
    for _ in range(3):
        fused(x)
    ticks: list[int] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(1)
            stop.wait(0.0005)

    # Threads that ask for their turn get none: it is given to them or never comes.
    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        deadline = time.monotonic() + 20
        while len(ticks) <= 5 and time.monotonic() < deadline:
            fused(x)
    finally:
        sys.setswitchinterval(before)
        stop.set()
        thread.join()
    assert len(ticks) > 5


def test_an_interrupt_arrives_between_calls() -> None:
    x = np.ones(1000, np.float32)
    fused = _warm([x])

    def interrupt(number: int, frame: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(InterruptedError):
            _call_forever(fused, x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_array_equal(fused(x, x), 3 * x)


def test_memory_that_runs_out_is_an_error_and_no_more() -> None:
    fused = nfuser.fuse(lambda x: x + np.float32(1))
    x = np.broadcast_to(np.float32(1), (1 << 24, 1 << 24))
    small = np.ones(3, np.float32)
    fused(small)
    for _ in range(3):
        with pytest.raises(MemoryError):
            fused(x)
        np.testing.assert_array_equal(fused(small), small + 1)


def test_a_forked_child_calls_on() -> None:
    x = np.ones(10, np.float32)
    fused = _warm([x])
    child = os.fork()
    if child == 0:
        right = (fused(x, x) == 3).all() and (fused(x[:5], x[:5]) == 3).all()
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
