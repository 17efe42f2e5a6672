# SPDX-License-Identifier: Apache-2.0
"""Loops of the program of a call: no Python between kernels, and signals are heard."""

# Carried values have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import signal
import sys
import threading
import time
from statistics import median
from typing import Any, NoReturn

import numpy as np
import pytest

import nfuser
from nfuser import lax
from nfuser.execution.host.call.program import AllocateSlot, Repeat
from nfuser.execution.host.call.program import text as program_text
from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
from tests.hand_built import traced

X = np.linspace(0.0, 1.0, 50)


def step(s: Any) -> Any:
    return s * 0.5 + np.roll(s, 1) * 0.25


def steps(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda _, s: step(s), x)


def test_a_loop_allocates_nothing_and_swaps_what_it_carries() -> None:
    cache = FusionExecutorCache(traced(steps, X, 3))
    program = cache.program_for([X, 3])
    (loop,) = (s for s in program.body if isinstance(s, Repeat))
    assert not any(isinstance(s, AllocateSlot) for s in loop.body)
    assert len(loop.swaps) == 1
    assert "repeat 3 times, swapping t" in program_text(program)


def wave(x: Any, y: Any, n: Any) -> Any:
    def advance(_: Any, state: Any) -> Any:
        now, before = state
        return 1.5 * now - before + np.roll(now, 1, 0) * 0.25, now

    return lax.fori_loop(0, n, advance, (x, y))


def test_what_is_handed_on_as_it_was_is_not_copied() -> None:
    x = np.arange(12.0).reshape(3, 4)
    cache = FusionExecutorCache(traced(wave, x, x, 3))
    program = cache.program_for([x, x, 3])
    (loop,) = (s for s in program.body if isinstance(s, Repeat))
    assert len(loop.body) == 1
    assert len(loop.swaps) == 2


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_memory_goes_round_whatever_its_order_was(backend: str) -> None:
    def turn(i: Any, s: Any) -> Any:
        a, b, c, d, e = s
        return b, c, a, d, e + a * i

    def function(x: Any, y: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, turn, (x, y, x * 2, y + 1, x - y))

    x = np.arange(12.0).reshape(3, 4)
    y = np.asfortranarray(x * 10)
    for waves in (function, wave):
        fused = nfuser.fuse(waves, backend=backend)
        for n in range(6):
            found, wanted = fused(x, y, n), waves(x, y, n)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b)


def test_ten_and_a_hundred_thousand_steps_compile_alike() -> None:
    fused = nfuser.fuse(steps)
    fused(X, 10)
    before = fused.cache_info()
    fused(X, 100_000)
    after = fused.cache_info()
    assert (after.traces, after.runtimes, after.compiled + after.loaded) == (
        before.traces,
        before.runtimes,
        before.compiled + before.loaded,
    )


def test_a_step_costs_less_than_three_bound_calls_of_its_kernel() -> None:
    fused, alone = nfuser.fuse(steps), nfuser.fuse(step)
    bound = alone.bind(X, out=np.empty_like(X))
    count = 2000
    ratios: list[float] = []
    for _ in range(8):  # the first ones are not native yet
        begun = time.perf_counter()
        fused(X, count)
        middle = time.perf_counter()
        for _ in range(count):
            bound()
        ratios.append((middle - begun) / (time.perf_counter() - middle))
    assert median(ratios[3:]) < 3


class StoppedError(Exception):
    pass


@pytest.mark.skipif(sys.platform == "win32", reason="no signals of one's own")
def test_a_signal_ends_a_loop_without_end_and_other_threads_run_meanwhile() -> None:
    fused = nfuser.fuse(
        lambda x, stop: lax.while_loop(lambda s: s[0] < stop, lambda s: s + 1, x)
    )
    for _ in range(4):
        np.testing.assert_array_equal(fused(X * 0, 5.0), np.full(50, 5.0))

    def stop(*_: object) -> NoReturn:
        raise StoppedError

    turns = 0

    def count() -> None:  # it needs the interpreter's lock
        nonlocal turns
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            turns += 1
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    other = threading.Thread(target=count)
    try:
        other.start()
        with pytest.raises(StoppedError):
            fused(X * 0, np.inf)
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
    assert turns > 1000
    np.testing.assert_array_equal(fused(X * 0, 5.0), np.full(50, 5.0))
