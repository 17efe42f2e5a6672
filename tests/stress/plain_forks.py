# SPDX-License-Identifier: Apache-2.0
"""Exceptions raised in threads that fork, with nothing but Python's library.

``python -m tests.stress.plain_forks`` says how many threads are stuck after a while:
in Python 3.11 and 3.12, all but one.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time

THREADS = 8
BALLAST = 400 << 20  # forks of large processes take long, and others wait to run
PATIENCE = 5.0


class Interrupt(BaseException):
    """What is raised in the threads."""


def _fork_on(stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)
            logging.getLogger("forks").debug("forked")
        except Interrupt:
            pass


def main(seconds: float = 10) -> int:
    """Return how many threads are stuck."""
    sys.unraisablehook = lambda _: None
    ballast = bytearray(BALLAST)
    ballast[::4096] = b"1" * len(ballast[::4096])
    stop = threading.Event()
    threads = [
        threading.Thread(target=_fork_on, args=(stop,), daemon=True)
        for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        time.sleep(0.002)
        number += 1
        ident = ctypes.c_ulong(threads[number % THREADS].ident or 0)
        kind = ctypes.py_object(Interrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, kind)
    stop.set()
    end = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    stuck = sum(thread.is_alive() for thread in threads)
    sys.stdout.write(f"{stuck} of {THREADS} threads are stuck\n")
    sys.stdout.flush()
    return stuck


if __name__ == "__main__":
    os._exit(bool(main()))
