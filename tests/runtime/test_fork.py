# SPDX-License-Identifier: Apache-2.0
"""Forks while other threads are at work leave processes that can do the same work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from nfuser.base.locks import ForkSafeLock
from nfuser.codegen.printers.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

CHILDREN = 4
PROGRAM = f"""
import os, threading, time
import numpy as np, nfuser

x = np.ones(9, "f4")
stop = False

def compile_on():
    n = 0
    while not stop:
        n += 1
        nfuser.fuse(eval(f"lambda x: x * {{n}}.5 + {{n}}"))(x)

def waited(child):
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False

shared = nfuser.fuse(lambda x, n: x * 2 if int(n) % 2 else x + n)
thread = threading.Thread(target=compile_on)
thread.start()
fine = True
for k in range({CHILDREN}):
    time.sleep(0.13)
    child = os.fork()
    if not child:
        found = nfuser.fuse(lambda x: np.sin(x) + k)(x)
        os._exit(not np.allclose(found, np.sin(x) + k) or shared(x, k).shape != (9,))
    fine &= waited(child)
stop = True
thread.join()
assert fine, "a child hung or failed"
"""

# What nfuser registers for forks is registered behind something that may raise there.
RAISED_IN = """
import ctypes, os, sys, threading, time
import logging, random, concurrent.futures.thread  # what registers for forks by itself
from functools import partial

class Interrupt(BaseException):
    pass

registered = os.register_at_fork
places = []  # the thread in which each of them raises

def register_at_fork(**hooks):
    for moment, hook in hooks.items():
        place = ctypes.c_ulong(0)
        places.append((moment, place))
        kind = ctypes.py_object(Interrupt)
        raising = partial(ctypes.pythonapi.PyThreadState_SetAsyncExc, place, kind)
        pair = [raising, hook]  # hooks of before are called in reverse order
        for called in reversed(pair) if moment == "before" else pair:
            registered(**{moment: called})

os.register_at_fork = register_at_fork
sys.unraisablehook = lambda _: None
import numba
import numpy as np
import nfuser

x = np.ones(3)
nfuser.fuse(lambda x: x * 2)(x)

def others_can(number):
    done = []

    def work():
        found = nfuser.fuse(lambda x: x * (number + 0.5))(x)
        numba.njit("f8(f8)")(lambda x: x + number)
        done.append(found[0] == number + 0.5)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    return bool(done) and done[0]

def forked(number, place):
    child, own = None, os.getpid()
    place.value = threading.get_ident()
    try:
        child = os.fork()
        sum(range(9))
    except Interrupt:
        pass
    place.value = 0
    if os.getpid() != own:
        os._exit(not others_can(number))
    end = time.monotonic() + 90
    while time.monotonic() < end:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    return False

bad = []
for number, (moment, place) in enumerate(places):
    fine = forked(number, place)
    if not (fine and others_can(number + 1000)):
        bad.append((moment, number))
print(len(places), "places,", bad, "bad")
os._exit(bool(bad) or len(places) < 8)
"""


def test_a_child_forked_while_a_thread_compiles_can_compile() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_an_exception_raised_anywhere_in_a_fork_leaves_no_lock_of_ours_taken() -> None:
    command = [sys.executable, "-W", "ignore", "-c", RAISED_IN]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=380, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no forks")
def test_a_child_prints_while_a_thread_of_its_parent_was_at_it() -> None:
    begun, leave = threading.Event(), threading.Event()

    class Slow:
        def __add__(self, other: str) -> str:
            begun.set()
            leave.wait(60)
            return other

    def printed(header: object) -> str:
        kernel: Any = SimpleNamespace(name="k")
        return Source(kernel, cast("str", header), "code", "", []).text

    thread = threading.Thread(target=printed, args=(Slow(),), daemon=True)
    thread.start()
    begun.wait(60)
    try:
        assert _in_a_child(lambda: printed("its ") == "its code")
    finally:
        leave.set()
        thread.join(60)


def _in_a_child(work: Callable[[], bool]) -> bool:
    """Tell what ``work`` gives in a forked child; one that is stuck is ended."""
    child = os.fork()
    if not child:
        is_fine = False
        try:
            is_fine = work()
        finally:
            os._exit(not is_fine)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def test_only_a_lock_that_another_thread_holds_is_renewed() -> None:
    lock, taken, leave = ForkSafeLock(), threading.Event(), threading.Event()

    def take_for_ever() -> None:
        lock.__enter__()
        taken.set()
        leave.wait(60)

    threading.Thread(target=take_for_ever, daemon=True).start()
    taken.wait(10)
    assert not _is_free(lock)
    lock.renew()
    assert _is_free(lock)
    leave.set()
    with lock:
        lock.renew()
        assert not _is_free(lock)


def _is_free(lock: ForkSafeLock) -> bool:
    """Tell whether yet another thread can take the lock at once."""
    done = threading.Event()

    def take() -> None:
        with lock:
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done.wait(0.2)
