# SPDX-License-Identifier: Apache-2.0
"""Forks of threads that are raised in, and the children that they leave.

No exception is raised in a thread between the beginning and the end of its ``os.fork``.
What modules do there (``os.register_at_fork``) is Python code in part, and what is
raised in it is printed and ignored: up to Python 3.12 ``logging`` then keeps its lock
for ever, and every later fork waits for it. ``python -m tests.stress.plain_forks``
shows that this needs no nfuser; what nfuser does in a fork has a test of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
import traceback
from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 90.0  # seconds that a child may take
_MOST = 4  # children at a time

# The thread that an exception for each thread is raised in: 0, none, while it forks.
places: dict[int, ctypes.c_ulong] = {}
_children: dict[int, float] = {}


def forked(work: Callable[[], str]) -> None:
    """Do ``work`` in a child, which is awaited elsewhere."""
    while len(_children) >= _MOST:
        time.sleep(0.01)
    own = places.setdefault(get_ident(), ctypes.c_ulong(0))
    try:
        own.value = 0
        _take()
        child = os.fork()
        if not child:
            _exit_after(work)
        _children[child] = time.monotonic()
    finally:
        own.value = get_ident()


def _take() -> None:
    """Take an exception that was raised before; none follows."""


def _exit_after(work: Callable[[], str]) -> None:
    status = 1
    try:
        if wrong := work():
            os.write(2, f"in a child: {wrong}\n".encode())
        else:
            status = 0
    except BaseException:  # noqa: BLE001 (whatever it is, nobody else will say it)
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def ended() -> list[str]:
    """Tell what was wrong with children that have ended since, or had to be ended."""
    found = [_awaited(child, begun) for child, begun in list(_children.items())]
    return [problem for problem in found if problem]


def remain() -> bool:
    """Tell whether there are children yet."""
    return bool(_children)


def _awaited(child: int, begun: float) -> str:
    done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        if time.monotonic() < begun + PATIENCE:
            return ""
        os.kill(child, signal.SIGABRT)  # it says where it is
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    del _children[child]
    code = os.waitstatus_to_exitcode(status)
    if not done:
        return "stuck: a child"
    if code < 0:
        return f"crash: a child, by signal {-code}"
    return f"wrong: a child ended with {code}" if code else ""
