# SPDX-License-Identifier: Apache-2.0
"""Locks that survive a fork, and exceptions that other threads raise.

Two kinds. A ``ForkSafeLock`` guards tables that are whole at every moment: a fork does
not wait, and the child gets a new lock where another thread held the old one. Where
data is inconsistent while a lock is held (Numba's compiler, LLVM), ``waited_for`` makes
the fork wait until the holder is done.

An exception that another thread raises (``PyThreadState_SetAsyncExc``, as timeouts and
debuggers use it) arrives between two instructions of Python code. So entering and
leaving a lock is C code, here and in what a fork does: written in Python, the exception
could arrive when the lock was taken and nobody knew yet who has to release it.
"""

from __future__ import annotations

import ctypes

# ``logging``, too, holds a lock during a fork, and who compiles may log. Hooks run in
# reverse order: imported first, it is asked when the compiler's lock is ours already.
import logging  # pyright: ignore[reportUnusedImport]  # noqa: F401
import os
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload
from weakref import WeakSet

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    class _Reentrant:
        """What ``RLock`` makes, to a checker that takes its class for final."""

        def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
        def release(self) -> None: ...
        def __enter__(self) -> bool: ...
        def __exit__(self, *_: object) -> None: ...
        def _at_fork_reinit(self) -> None: ...
else:
    _Reentrant: Any = type(RLock())


class _Lock(Protocol):
    @property
    def acquire(self) -> Callable[[], object]: ...
    @property
    def release(self) -> Callable[[], object]: ...


class ForkSafeLock(_Reentrant):
    """A reentrant lock that is free in a forked child, unless the child holds it."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        _all.add(self)

    def renew(self) -> None:
        """Make the lock free if a thread that is gone holds it."""
        if self.acquire(blocking=False):
            self.release()
        else:
            self._at_fork_reinit()


_all: WeakSet[ForkSafeLock] = WeakSet()


def waited_for(lock: _Lock) -> None:
    """Make every fork hold ``lock``, which has methods in C.

    Who calls last is asked first: locks of upper layers are taken before those of the
    layers that they call.
    """
    held: list[object] = []  # of a fork that began before this was called: nothing

    def hold() -> None:
        holding = holding_all(lock)
        next(holding)
        held.append(holding)

    # What holds the lock is dropped by code in C: an exception that arrives there comes
    # later.
    at_fork(before=hold, after_in_parent=held.clear, after_in_child=held.clear)


INTERNING = RLock()
"""Held while a scalar is looked up or made; no fork happens meanwhile.

It is made here, before all locks of upper layers: kernels are printed, and modules
imported, under the compiler's lock, and both make scalars. A fork that took this one
first would wait for the compiler, which waits for this one.
"""


def holding_all(*locks: Any) -> Generator[None]:
    """Hold locks while it waits, and release them where it ends, however that is."""
    if not locks:
        yield
        return
    with locks[0]:
        yield from holding_all(*locks[1:])


def at_fork(**what: Callable[[], object]) -> None:
    """Register what forks do, by ``os.register_at_fork``; Windows has no forks."""
    register: Callable[..., None] | None = getattr(os, "register_at_fork", None)
    if register is not None:
        register(**what)


class cached_property(Generic[T]):  # noqa: N801 (like the one it stands for)
    """``functools.cached_property`` without a lock, and one value for all threads.

    Up to Python 3.11 that one has a lock for all objects of a class: a fork would leave
    it taken in the child, where another thread was at work on any of them. Here threads
    that come first may do the same work; what one of them made is kept.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn the name, under which the value is kept in each object."""
        self._name = name

    @overload
    def __get__(self, found: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, found: object, owner: type) -> T: ...
    def __get__(self, found: object, owner: type) -> cached_property[T] | T:
        """Return what is made; objects that have it are not asked again."""
        if found is None:
            return self
        return vars(found).setdefault(self._name, self._make(found))


class _Reminder(BaseException):
    """What a thread raises in itself."""


def forget_waiting() -> None:
    """Make Python forget that exceptions wait for threads; those threads know.

    Each thread is asked to look for its own as long as one waits for any, and only who
    takes one ends that: so this thread raises one in itself, and takes it. A thread
    for which one waits says so again when it comes to run.
    """
    try:
        raise_in(get_ident(), _Reminder)
        while True:  # it is raised at the next instruction that looks
            pass
    except _Reminder:
        pass


def raise_in(thread: int, kind: type[BaseException]) -> None:
    """Raise an exception in a thread, where it next runs Python code."""
    raising = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raising(ctypes.c_ulong(thread), ctypes.py_object(kind))


def _pass() -> None:
    """Take an exception that waits for the first Python code of a child."""


def _renew_all() -> None:
    for lock in list(_all):
        lock.renew()


waited_for(INTERNING)
at_fork(after_in_child=_pass)
# Some may wait for threads that the child does not have, and never take them.
at_fork(after_in_child=forget_waiting)
at_fork(after_in_child=_renew_all)
