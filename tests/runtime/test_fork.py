# SPDX-License-Identifier: Apache-2.0
"""A fork while another thread compiles leaves a child that can compile, too."""

from __future__ import annotations

import subprocess
import sys
import threading

from nfuser.locks import ForkSafeLock

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


def test_a_child_forked_while_a_thread_compiles_can_compile() -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr


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
