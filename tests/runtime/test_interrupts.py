# SPDX-License-Identifier: Apache-2.0
"""Exceptions that another thread raises leave no lock taken and nothing half done."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nfuser
from nfuser.base.locks import ForkSafeLock
from nfuser.codegen.numba.compiler_lock import COMPILER, undisturbed
from nfuser.execution.runtime.caches.shared_cache import forget_all
from nfuser.frontend.call.first_use import FirstUse
from tests.interrupts import Interrupt, raise_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _raised_in(work: Callable[[], object], ready: Callable[[], None]) -> bool:
    """Raise in a thread that does ``work``, when ``ready`` returns; tell if it came."""
    came: list[bool] = []

    def run() -> None:
        try:
            work()
        except Interrupt:
            came.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready()
    assert thread.ident is not None
    raise_in(thread.ident)
    thread.join(60)
    assert not thread.is_alive()
    return bool(came)


def _is_free(lock: ForkSafeLock | threading.RLock) -> bool:
    done = threading.Event()

    def take() -> None:
        with lock:
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done.wait(5)


def test_a_lock_that_was_waited_for_is_not_lost() -> None:
    lock, taken, begun = ForkSafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            begun.wait(60)
            time.sleep(0.2)

    def wait() -> None:
        begun.set()
        with lock:
            pass

    threading.Thread(target=hold, daemon=True).start()
    taken.wait(60)

    def ready() -> None:
        begun.wait(60)
        time.sleep(0.05)

    assert _raised_in(wait, ready)
    assert _is_free(lock)


def test_a_compile_goes_on_where_its_caller_is_interrupted() -> None:
    begun, done = threading.Event(), threading.Event()
    seen: list[int] = []

    def work() -> None:
        seen.append(threading.get_ident())
        begun.set()
        for _ in range(200):
            time.sleep(0.001)
        done.set()

    def ready() -> None:
        begun.wait(60)

    assert _raised_in(lambda: undisturbed(work), ready)
    assert done.wait(60)
    assert _is_free(COMPILER)
    assert seen[0] not in {thread.ident for thread in threading.enumerate()}


def test_work_that_fails_undisturbed_fails_where_it_was_asked_for() -> None:
    def fail() -> None:
        raise KeyError("this")

    with contextlib.suppress(KeyError):
        undisturbed(fail)
        raise AssertionError
    assert undisturbed(lambda: undisturbed(lambda: 7)) == 7
    assert _is_free(COMPILER)


def test_what_is_first_used_is_imported_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "import time", "for _ in range(40):", "    time.sleep(0.005)", "end = True"
    (tmp_path / "first_used.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    first_used = FirstUse("first_used")

    def use() -> None:
        with contextlib.suppress(Interrupt):
            assert first_used.end

    thread = threading.Thread(target=use)
    thread.start()
    while "first_used" not in sys.modules:
        time.sleep(0.001)
    raise_in(thread.ident or 0)
    thread.join()
    assert sys.modules.pop("first_used").end


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.filterwarnings("ignore:.* was traced 8 times:RuntimeWarning")
def test_calls_go_on_after_exceptions_at_any_moment() -> None:
    forget_all()
    x = np.arange(6.0)
    fused = nfuser.fuse(lambda x, n: x * 2 + int(n))  # pyright: ignore[reportUnknownLambdaType]
    stop = threading.Event()
    wrong: list[object] = []
    interval = sys.getswitchinterval()

    at_work = [ctypes.c_ulong(0) for _ in range(4)]

    def call(own: ctypes.c_ulong) -> None:
        n = 0
        while not stop.is_set():
            with contextlib.suppress(Interrupt):
                own.value = threading.get_ident()
                n = (n + 1) % 7
                found = fused(x, n)
                if not np.array_equal(found, x * 2 + n):
                    wrong.append(found)
                if n == 6:
                    fused.cache_clear()
                own.value = 0
                for _ in range(100):
                    pass  # what was raised before arrives here, and not outside

    threads = [
        threading.Thread(target=call, args=(own,), daemon=True) for own in at_work
    ]
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for k in range(300):
            time.sleep(0.002)
            raise_in(at_work[k % 4])
            at_work[k % 4].value = 0  # a second one would arrive outside
    finally:
        sys.setswitchinterval(interval)
        stop.set()
    time.sleep(0.1)
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []
    np.testing.assert_array_equal(fused(x, 3), x * 2 + 3)
