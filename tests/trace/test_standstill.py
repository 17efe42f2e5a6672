# SPDX-License-Identifier: Apache-2.0
"""Traces go on while exceptions wait for threads that do not come to take them."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.interrupts import Interrupt, raise_in

if TYPE_CHECKING:
    from collections.abc import Generator

PATIENCE = 20.0


@contextmanager
def _one_waits(taken: list[str] | None = None) -> Generator[None]:
    """Have an exception wait for a thread that waits for a lock."""
    lock, is_there = threading.Lock(), threading.Event()

    def wait() -> None:
        try:
            is_there.set()
            with lock:
                time.sleep(0)
        except Interrupt:
            if taken is not None:
                taken.append("taken")

    thread = threading.Thread(target=wait)
    with lock:
        thread.start()
        is_there.wait()
        time.sleep(0.05)
        raise_in(thread.ident or 0)
        yield
    thread.join()


def _traced() -> Any:
    def doubled(x: Any) -> Any:
        return x * 2 + 1

    return nfuser.fuse(doubled)(np.arange(4.0))


def test_a_trace_goes_on_while_an_exception_waits_for_another_thread() -> None:
    found: list[Any] = []
    taken: list[str] = []
    _traced()  # what is imported late
    with _one_waits(taken):
        thread = threading.Thread(target=lambda: found.append(_traced()), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        came_back = not thread.is_alive()
    thread.join(PATIENCE)
    assert came_back
    np.testing.assert_array_equal(found[0], [1, 3, 5, 7])
    assert taken == ["taken"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_traces_though_an_exception_waited_for_a_lost_thread() -> None:
    _traced()
    with _one_waits():
        child = os.fork()
        if not child:
            status = 1
            try:
                status = int(_traced()[3] != 7)
            finally:
                os._exit(status)
        end, done, status = time.monotonic() + PATIENCE, 0, 0
        while not done and time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            time.sleep(0.01)
        if not done:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert done
    assert status == 0
