# SPDX-License-Identifier: Apache-2.0
"""Calls that fail half-way leave in arrays what NumPy leaves in them."""

from __future__ import annotations

import _thread
import contextlib
import gc
import signal
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.fuzz import failing_programs

if TYPE_CHECKING:
    from collections.abc import Callable

BEYOND = np.array([1, 2, 9])
G = np.zeros(6)


def fails_alike(function: Callable[..., Any], *more: Any, dtype: Any = float) -> None:
    """Call it three times, so that native code is seen, too."""
    fused = nfuser.fuse(function)
    for turn in range(3):
        theirs = [np.arange(6).astype(dtype) + turn, np.ones(6, dtype)]
        mine = [x.copy() for x in theirs]
        outside = G.copy()
        with pytest.raises((IndexError, ValueError, NameError)) as wanted:
            function(*theirs, *more)
        after = G.copy()
        G[...] = outside
        with pytest.raises(type(wanted.value)):
            fused(*mine, *more)
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(G, after)


def test_statements_on_both_sides_of_what_fails_stay_apart() -> None:
    def work(a: Any, b: Any, k: Any) -> None:
        a += 1
        b[k] = 1
        a *= 2

    fails_alike(work, BEYOND)


def test_arrays_that_are_written_by_way_of_copies_hold_what_came_before() -> None:
    def work(a: Any, k: Any) -> None:
        a += 1
        a[k] = 1
        a *= 2

    fused = nfuser.fuse(work)
    aligned = np.arange(6.0)
    held = np.zeros(aligned.nbytes + 1, "u1")[1:]
    for _ in range(3):
        x = held.view(float)
        x[...] = aligned
        with pytest.raises(IndexError):
            fused(x, BEYOND)
        np.testing.assert_array_equal(x, aligned + 1)


def test_what_is_written_later_waits_for_what_may_fail() -> None:
    def work(a: Any, b: Any, k: Any) -> None:
        later = a * 3
        b[k] = 2
        a[:] = later

    fails_alike(work, BEYOND)


@pytest.mark.parametrize("dtype", [float, np.float32, complex, int])
def test_a_loop_that_fails_leaves_what_its_turns_have_done(dtype: Any) -> None:
    def work(a: Any, b: Any, n: Any) -> None:
        for i in range(n):
            a += 1
            b[np.array([i]) + 2] = a[0]
            a *= 2
            b[0] = a[1]

    fails_alike(work, 80, dtype=dtype)


def test_an_inner_loop_that_fails_leaves_what_all_have_done() -> None:
    def work(a: Any, b: Any, n: Any) -> None:
        inside = np.zeros(6)
        for i in range(n):
            a[i % 2] += 1
            inside[1:] = inside[:-1] + a[1:]
            for j in range(n):
                b *= 1.5
                G[j % 3] += 1
                inside[np.array([i + j])] = 7
            a[:] = inside

    fails_alike(work, 70)


def test_a_function_of_the_library_fails_in_its_turn() -> None:
    def work(a: Any, b: Any, n: Any) -> None:
        x = a.copy()
        while x.sum() < 1e9:
            x = x * 1.5 + 1
            b += 1
            np.linalg.cholesky(np.eye(2) * (n - b[0]))
            if x.sum() > 1:
                b[1] += 2
        a[...] = x

    fails_alike(work, 5)


def test_torn_columns_are_no_state() -> None:
    def work(a: Any, b: Any, k: Any) -> None:
        for i in range(80):
            a[:-1], a[1:] = a[1:].copy(), a[:-1].copy()
            a[k * (i // 7)] = 5
            b[i % 6] = i

    fails_alike(work, BEYOND)


def test_an_interrupt_leaves_whole_turns() -> None:
    def work(a: Any, b: Any, n: Any) -> None:
        for _ in range(n):
            a += 1
            b[1:] = a[1:] * 2
            b[0] = a[0] * 2

    fused = nfuser.fuse(work)
    a, b = np.zeros(6), np.zeros(6)
    for _ in range(3):
        fused(a, b, 100)
    # What runs in the background of a shell is told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, _thread.interrupt_main).start()
        with pytest.raises(KeyboardInterrupt):
            fused(a, b, 1 << 40)
    finally:
        signal.signal(signal.SIGINT, before)
    assert a[0] > 300
    assert len(set(a)) == len(set(b)) == 1
    assert b[0] in (2 * a[0], 2 * a[0] - 2)


def test_a_copy_of_an_array_is_not_that_array() -> None:
    def work(a: Any, b: Any, n: Any) -> None:
        x = a.copy()
        for i in range(n):
            x[1:] += x[:-1]
            b[np.array([i])] = x[1]
        a[...] = x

    fails_alike(work, 70)


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # of ones
@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_random_programs_fail_as_in_numpy(backend: str) -> None:
    tally = failing_programs.Tally()
    for seed in range(6 if backend == "cpu" else 3):
        text, rank = failing_programs.generate(seed)
        failing_programs.compare(text, seed, rank, backend, tally)
    assert tally.in_between


def test_what_plain_python_raises_comes_after_the_statements_before() -> None:
    def other_shape(a: Any, b: Any, n: Any) -> None:
        a += n
        z = np.ones(a.shape)
        z[:3] = z[:2]
        b += 1

    def its_own(a: Any, b: Any, n: Any) -> None:
        b *= n
        if len(a) > 4:
            G[0] += 1
            message = "too long"
            raise IndexError(message)
        a += 1

    def after_a_loop(a: Any, b: Any, n: Any) -> None:
        for i in range(n + 80):
            a[i % 6] += b[0]
            b[0] *= 0.5
        np.linalg.cholesky(np.zeros((2, 2)))
        a += 1

    def unbound(a: Any, b: Any, n: Any) -> None:
        b[1:] = a[1:] * n
        for later in range(n, n):
            b[0] = later
        a += later  # pyright: ignore[reportPossiblyUnboundVariable]

    for work in (other_shape, its_own, after_a_loop, unbound):
        fails_alike(work, 3)


def test_what_fails_while_running_is_raised_before_what_fails_later() -> None:
    def work(a: Any, b: Any, k: Any) -> None:
        a += 1
        b[k] = 2
        np.linalg.inv(np.zeros((2, 2)))

    fails_alike(work, BEYOND)


def test_a_call_that_does_not_raise_is_traced_once() -> None:
    @nfuser.fuse
    def work(a: Any) -> None:
        a += 1
        if len(a) > 3:
            raise ValueError
        a *= 2

    short, long = np.zeros(3), np.zeros(4)
    for _ in range(4):
        work(short)
        with pytest.raises(ValueError, match=r"^$"):
            work(long)
    np.testing.assert_array_equal(short, 30.0)
    np.testing.assert_array_equal(long, 4.0)
    assert work.cache_info().traces == 5


def test_to_look_at_a_call_that_raises_writes_nothing() -> None:
    @nfuser.fuse
    def work(a: Any) -> None:
        a += 1
        raise ValueError

    a = np.zeros(3)
    for look in (work.explain, work.kernels, work.lower, work.bind):
        with pytest.raises(ValueError, match=r"^$"):
            look(a)
    np.testing.assert_array_equal(a, 0.0)


def test_an_array_that_reverses_itself_twice_is_what_it_was() -> None:
    def work(a: Any) -> None:
        a[::-1] = a
        a[0] += 1
        a[::-1] = a
        a[::-1] = a

    theirs, mine = np.arange(5.0), np.arange(5.0)
    work(theirs)
    nfuser.fuse(work)(mine)
    np.testing.assert_array_equal(mine, theirs)


def test_draws_before_what_raises_are_made() -> None:
    def work(rng: Any, a: Any) -> None:
        rng.normal(size=a.shape)
        raise ValueError

    fused = nfuser.fuse(work)
    theirs, mine = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(3):
        for function, rng in ((work, theirs), (fused, mine)):
            with pytest.raises(ValueError, match=r"^$"):
                function(rng, np.ones(4))
        assert theirs.random() == mine.random()


def test_what_raises_without_writing_may_change_what_it_reads() -> None:
    calls = {"made": 0}

    @nfuser.fuse
    def work(a: Any) -> None:
        calls["made"] += 1
        raise ValueError(calls["made"])

    for turn in (1, 2):
        with pytest.raises(ValueError, match=str(turn)):
            work(np.ones(2))


def test_arrays_of_a_call_that_raised_are_free_with_its_exception() -> None:
    def writes(a: Any) -> None:
        a += 1
        raise ValueError

    def reads(a: Any) -> None:
        raise ValueError(len(a))

    def counts(a: Any) -> None:
        for i in range(a.shape[0] + 400):  # is traced anew, as a loop
            a[i] += 1

    gc.collect()
    gc.disable()
    try:
        for fused in map(nfuser.fuse, (writes, reads, counts)):
            a = np.ones(3)
            alive = weakref.ref(a)
            with contextlib.suppress(ValueError, IndexError):
                fused(a)
            del a
            assert alive() is None
    finally:
        gc.enable()
