# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfuser import config
from nfuser.errors import BackendError
from nfuser.execution.device.cpu import affinity, threads
from nfuser.execution.device.cpu.affinity import (
    BETWEEN,
    as_one_of_many,
    share_of_threads,
)
from nfuser.execution.device.cpu.threads import chunk_size, run_range
from tests.device.native import interrupting_kernel, python_kernel, scale_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = 1 << 30


@pytest.fixture(autouse=True)
def _no_tasks_before() -> None:
    affinity.forget_tasks()


def ranges_of(total: int, grain: int, cost: int) -> list[tuple[int, int]]:
    """Return the ranges that a kernel is called with, in order."""
    seen: list[tuple[int, int]] = []

    def record(start: int, stop: int) -> int:
        seen.append((start, stop))
        return 0

    run_range(python_kernel(record), (), total, grain, cost)
    return sorted(seen)


def threads_that_run(total: int) -> set[int]:
    """Run ``total`` chunks that take some time; return the threads they ran in."""
    found: set[int] = set()

    def record(start: int, stop: int) -> int:
        found.add(threading.get_ident())
        time.sleep(0.002)
        return 0

    run_range(python_kernel(record), (), total, 1, LARGE)
    return found


@given(
    st.integers(1, 3000),
    st.sampled_from([1, 7, 64]),
    st.integers(0, 1 << 24),
    st.integers(1, 4),
)
def test_a_range_is_covered_once_and_cut_at_grains(
    total: int, grain: int, cost: int, workers: int
) -> None:
    with config.override(num_threads=workers):
        ranges = ranges_of(total, grain, cost)
    assert [start for start, _ in ranges[1:]] == [stop for _, stop in ranges[:-1]]
    assert (ranges[0][0], ranges[-1][1]) == (0, total)
    assert all(start % grain == 0 for start, _ in ranges)


@given(st.integers(1, 10**9), st.integers(1, 1024), st.integers(0, 10**12))
def test_chunks_are_few_and_multiples_of_the_grain(
    total: int, grain: int, cost: int
) -> None:
    size = chunk_size(total, grain, cost)
    assert size % grain == 0
    assert 1 <= -(-total // size) <= threads.MOST_CHUNKS


def test_cuts_do_not_depend_on_the_number_of_threads() -> None:
    cuts: list[list[list[tuple[int, int]]]] = []
    for workers in (2, 3, 5):
        with config.override(num_threads=workers):
            cuts.append(sorted(ranges_of(1000, 8, LARGE) for _ in range(2)))
    assert cuts[0] == cuts[1] == cuts[2]
    assert len(cuts[0][0]) > 1


@given(
    st.integers(1, 10**6), st.integers(1, 999), st.integers(1, 200), st.integers(1, 64)
)
def test_lanes_are_equal_parts_with_large_chunks_first(
    total: int, least: int, cores: int, grain: int
) -> None:
    found = threads.cuts(total, least * grain, cores, grain)
    assert 1 <= found.lanes <= cores
    assert found.chunks == found.lanes * found.each
    sizes = np.diff(found.places)
    assert sizes.sum() == total
    assert sizes.min() >= min(least * grain, total)
    for lane in sizes.reshape(found.lanes, found.each):
        assert (np.diff(lane[:-1]) <= 0).all()
        assert abs(lane.sum() - total / found.lanes) <= grain
        assert (np.cumsum(lane[:-1]) % grain == 0).all()
    places = np.array(found.there).reshape(found.lanes, found.each, 2)
    backs = np.array(found.back).reshape(found.lanes, found.each, 2)
    for lane, back in zip(places, backs, strict=True):
        assert (back[0, 1], back[-1, 0]) == (lane[-1, 1], lane[0, 0])
        assert (back[1:, 1] == back[:-1, 0]).all()
        assert (back[:, 0] < back[:, 1]).all()
        assert (back[:, 0] % grain == 0).all()
        assert (abs(np.diff(back) - np.diff(lane))[:-1] < grain).all()


def test_a_thread_has_the_same_part_of_each_kernel_there_and_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "available_threads", lambda: 2)

    def begun() -> list[int]:
        """Return where the calling thread begins, and where the one that helps."""
        first: dict[int, int] = {}

        def record(start: int, stop: int) -> int:
            first.setdefault(threading.get_ident(), start if start % 32 == 0 else stop)
            time.sleep(0.005)
            return 0

        run_range(python_kernel(record), (), 64, 1, LARGE)
        return [first.pop(threading.get_ident()), *first.values()]

    def check() -> bool:
        with config.override(num_threads=2):
            found = [begun() for _ in range(6)]
        return found in ([[0, 32], [32, 64]] * 3, [[32, 64], [0, 32]] * 3)

    assert in_child(check) == 0


def test_little_work_stays_in_the_calling_thread() -> None:
    threads: list[int] = []

    def record(start: int, stop: int) -> int:
        threads.append(threading.get_ident())
        return 0

    with config.override(num_threads=4):
        run_range(python_kernel(record), (), 1000)
    assert threads == [threading.get_ident()]


def test_much_work_reaches_other_threads() -> None:
    with config.override(num_threads=3):
        found = threads_that_run(64)
    assert 1 < len(found) <= 3
    assert threading.get_ident() in found


def test_tasks_that_keep_all_threads_busy_ask_for_no_help() -> None:
    inside, done = threading.Event(), threading.Event()

    def task() -> None:
        with as_one_of_many():
            inside.set()
            done.wait(10)

    other = threading.Thread(target=task)
    other.start()
    assert inside.wait(10)
    with config.override(num_threads=2), as_one_of_many():
        beside = threads_that_run(64)
        done.set()
        other.join()
        time.sleep(2 * BETWEEN)
        alone = share_of_threads()
    assert beside == {threading.get_ident()}
    assert alone == 2


def test_threads_that_are_busy_between_tasks_are_not_pushed_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = {"monotonic": 100.0, "process_time": 10.0}
    for clock in now:
        monkeypatch.setattr(affinity, clock, lambda clock=clock: now[clock])

    def share_after(passed: float, busy: float) -> int:
        with as_one_of_many():
            pass
        now["monotonic"] += passed
        now["process_time"] += busy * passed
        with as_one_of_many():
            return share_of_threads()

    with config.override(num_threads=4):
        assert share_after(0.1, 1.0) == 4  # by the thread that runs the task
        assert share_after(0.1, 3.1) == 2
        assert share_after(0.1, 9.0) == 1
        assert share_after(BETWEEN / 2, 9.0) == 4  # too short to tell
        assert share_after(10.0, 0.0) == 4


def scaled(x: np.ndarray[Any, np.dtype[np.float64]], workers: int) -> Any:
    out = np.full_like(x, np.nan)
    arguments = (x.ctypes.data, out.ctypes.data, 3.0)
    with config.override(num_threads=workers):
        run_range(scale_kernel(), arguments, x.size, 64, LARGE)
    return out


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 63, 64, 1000, 1_000_003])
def test_native_code_computes_the_same_on_any_number(workers: int, size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size)
    np.testing.assert_array_equal(scaled(x, workers), x * 3.0 + 1.0)


def test_several_callers_at_once() -> None:
    inputs = [np.full(200_000, float(k)) for k in range(6)]
    results: dict[int, list[bool]] = {}

    def caller(k: int) -> None:
        results[k] = [
            bool((scaled(inputs[k], 3) == k * 3 + 1).all()) for _ in range(20)
        ]

    # The setting belongs to the process, so it is made once around all callers.
    callers = [threading.Thread(target=caller, args=(k,)) for k in range(6)]
    with config.override(num_threads=3):
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
    assert results == {k: [True] * 20 for k in range(6)}


def test_a_kernel_may_run_a_range_itself() -> None:
    def inner(start: int, stop: int) -> int:
        run_range(scale_kernel(), arguments, x.size, 64, LARGE)
        return 0

    x = np.ones(10_000)
    out = np.zeros_like(x)
    arguments = (x.ctypes.data, out.ctypes.data, 1.0)
    with config.override(num_threads=3):
        run_range(python_kernel(inner), (), 8, 1, LARGE)
    assert (out == 2).all()


def test_the_first_failure_is_raised_after_everybody_stopped() -> None:
    running: list[int] = []

    def fail(start: int, stop: int) -> int:
        running.append(1)
        time.sleep(0.001)
        running.pop()
        return start + 1 if start in (8, 40) else 0

    with (
        config.override(num_threads=3),
        pytest.raises(BackendError, match="status 9"),
    ):
        run_range(python_kernel(fail), (), 64, 8, LARGE)
    assert not running


def test_a_wrong_argument_is_refused() -> None:
    for workers in (1, 3):
        with (
            config.override(num_threads=workers),
            pytest.raises(ctypes.ArgumentError),
        ):
            run_range(scale_kernel(), (1.5, 0, 1.0), 640, 64, LARGE)


def test_an_interrupt_comes_when_all_is_done() -> None:
    assert threading.current_thread() is threading.main_thread()
    done = np.zeros(1, np.int64)
    # What runs in the background of a shell is told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with config.override(num_threads=3), pytest.raises(KeyboardInterrupt):
            run_range(interrupting_kernel(), (done.ctypes.data,), 12, 1, LARGE)
    finally:
        signal.signal(signal.SIGINT, before)
    assert done[0] == 12


def test_cuts_live_as_long_as_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    make = threads.cut_words

    def watched(cuts: threads.Cuts) -> Any:
        words = make.__wrapped__(cuts)  # as if the cache had dropped them at once
        kept.append(weakref.ref(words))
        return words

    alive: list[bool] = []

    def look(start: int, stop: int) -> int:
        alive.append(kept[0]() is not None)
        return 0

    monkeypatch.setattr(threads, "cut_words", watched)
    with config.override(num_threads=2):
        run_range(python_kernel(look), (), 16, 1, LARGE)
    assert all(alive)
    assert len(alive) > 1


def test_first_calls_at_once_start_no_more_helpers_than_wanted() -> None:
    def tasks() -> int:
        return len(os.listdir("/proc/self/task"))

    def check() -> bool:
        before = tasks()
        callers = [
            threading.Thread(target=scaled, args=(np.ones(300_000), 4))
            for _ in range(8)
        ]
        with config.override(num_threads=4):
            for thread in callers:
                thread.start()
            for thread in callers:
                thread.join()
        until = time.monotonic() + 5  # threads that were joined take a moment to end
        while tasks() != before + 3 and time.monotonic() < until:
            time.sleep(0.01)
        return tasks() == before + 3

    scaled(np.ones(100_000), 2)
    assert in_child(check) == 0


def test_a_thread_that_the_system_refuses_is_done_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def refuse(*_: Any) -> int:
        asked.append(1)
        return 11  # EAGAIN

    def check() -> bool:
        monkeypatch.setattr(ctypes.pythonapi, "pthread_create", refuse)
        right = all((scaled(np.ones(300_000), 3) == 4).all() for _ in range(3))
        return right and len(asked) == 2

    assert in_child(check) == 0


def in_child(check: Callable[[], bool]) -> int:
    """Fork, run ``check`` and return the child's exit code: 0 where it holds."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_process_starts_threads_of_its_own() -> None:
    def check() -> bool:
        with config.override(num_threads=2):
            found = threads_that_run(32)
        return len(found) == 2 and bool((scaled(np.ones(100_000), 2) == 4).all())

    scaled(np.ones(100_000), 2)
    assert in_child(check) == 0
    assert check()


def test_a_child_forked_while_others_compute_starts_afresh() -> None:
    is_over = threading.Event()

    def compute() -> None:
        while not is_over.is_set():
            scaled(np.ones(300_000), 3)

    others = [threading.Thread(target=compute) for _ in range(3)]
    for thread in others:
        thread.start()
    try:
        codes = [
            in_child(lambda: bool((scaled(np.ones(300_000), 3) == 4).all()))
            for _ in range(20)
        ]
    finally:
        is_over.set()
        for thread in others:
            thread.join()
    assert codes == [0] * 20


def test_helpers_do_not_hold_up_the_end_of_the_process() -> None:
    code = """
import numpy as np, nfuser, os, time
from nfuser import config
f = nfuser.fuse(lambda x: np.exp(x) * 2 + x)
f(np.zeros(8, np.float32))
time.sleep(0.3)  # what compiled has gone
before = len(os.listdir("/proc/self/task"))
with config.override(num_threads=3):
    y = f(np.zeros(1 << 22, np.float32))
assert (y == 2).all()
def beside():
    return len(os.listdir("/proc/self/task")) - before
for _ in range(50):  # what watched a call that took long, on a busy machine, goes
    if beside() == 2:
        break
    time.sleep(0.1)
print(beside())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) == 2
