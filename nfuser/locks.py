# SPDX-License-Identifier: Apache-2.0
"""Locks that survive a fork: the child has one thread, and nobody else to release them.

Two kinds. A ``ForkSafeLock`` guards tables that are whole at every moment: a fork does
not wait, and the child gets a new lock where another thread held the old one. Where
data is inconsistent while a lock is held (Numba's compiler, LLVM), ``waited_for`` makes
the fork wait until the holder is done.
"""

from __future__ import annotations

# ``logging``, too, holds a lock during a fork, and who compiles may log. Hooks run in
# reverse order: imported first, it is asked when the compiler's lock is ours already.
import logging  # pyright: ignore[reportUnusedImport]  # noqa: F401
import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

_all: WeakSet[ForkSafeLock] = WeakSet()
_sources: list[Callable[[], Iterable[AbstractContextManager[object]]]] = []
_forking = threading.RLock()  # one fork at a time, or they mix up what they hold
_held: list[AbstractContextManager[object]] = []


class ForkSafeLock:
    """A reentrant lock that is free in a forked child, unless the child holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Replace the lock if a thread that is gone holds it."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


def waited_for(
    source: Callable[[], Iterable[AbstractContextManager[object]]],
) -> None:
    """Make every fork hold the locks that ``source`` names at that moment.

    Who calls last is asked first: locks of upper layers are taken before those of the
    layers that they call.
    """
    _sources.insert(0, source)


def _before_fork() -> None:
    _forking.acquire()
    for source in _sources:
        for lock in source():
            lock.__enter__()
            _held.append(lock)


def _after_fork() -> None:
    while _held:
        _held.pop().__exit__(None, None, None)
    _forking.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for lock in list(_all):
        lock.renew()


def at_fork(**what: Callable[[], None]) -> None:
    """Register what forks do, by ``os.register_at_fork``; Windows has no forks."""
    register: Callable[..., None] | None = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**what)


at_fork(
    before=_before_fork,
    after_in_parent=_after_fork,
    after_in_child=_after_fork_in_child,
)
