# SPDX-License-Identifier: Apache-2.0
"""One compile at a time, no fork in the middle of one, and nobody to disturb it.

While LLVM finishes some kernels, Numba may be at work on the next: the one lets go of
Python's lock, and the other has no use for LLVM.

Numba's compiler is not safe under threads. LLVM below it has locks of its own, which
nobody could release in a forked child: so a fork waits until a compile is done. So it
does for modules that are imported late: one half imported would stay so in the child.

An exception that another thread raises in the middle (a timeout, a debugger, Ctrl-C)
would leave those locks taken, and modules half imported: so both are done in a thread
of their own, which nobody knows. Who waits for it can be interrupted; it cannot.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nfuser.base.collector import no_collection
from nfuser.base.locks import at_fork, holding_all, waited_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")
COMPILER = threading.RLock()
FINISHERS = tuple(threading.RLock() for _ in range(min(os.cpu_count() or 1, 4)))
"""One of them is taken by who has LLVM finish a kernel: Numba begins with no more in
the time that four take."""

_NUMBA = ("numba.core.compiler_lock", "numba.cuda.core.compiler_lock")
_LONGEST_WAIT = 60  # seconds at exit
_TURN = 0.0005  # seconds that a thread has Python's lock while LLVM's waits for it
_held: list[object] = []
_free: SimpleQueue[threading.RLock]
_at_work: list[None] = []  # finishers
_usual: list[float] = []  # the turn of Python's lock when none was


def undisturbed(work: Callable[[], T]) -> T:
    """Return what ``work`` gives, done under the lock by a thread that nobody knows.

    An exception that arrives meanwhile is raised here, and the work is done all the
    same: Ctrl-C at once, one of another thread when the work is done.
    """
    return work() if _is_ours() else Later(work, COMPILER).wait()


class Later(Generic[T]):
    """What a thread that nobody knows is at work on, or will be once it has a lock.

    That is one of ``FINISHERS``, where none is given. It is done all the same where who
    waits for it is gone.
    """

    def __init__(
        self, work: Callable[[], T], lock: threading.RLock | None = None
    ) -> None:
        self._lock = lock or FINISHERS[0]  # of a child, in which there are no others
        self._left: list[Callable[[], T]] = [partial(copy_context().run, work)]
        self._answers: list[tuple[Any, BaseException | None]] = []
        self._process = os.getpid()
        self._done = _thread.allocate_lock()
        self._done.acquire()
        steps = _steps(self._left, self._answers, lock, self._done.release)
        next(steps)
        try:
            _thread.start_new_thread(next, (steps, None))
        except RuntimeError:  # there are too many threads, or the process ends
            self._process = 0

    @classmethod
    def known(cls, found: T) -> Later[T]:
        """Return what ``found`` has come of already."""
        made: Later[T] = cls.__new__(cls)
        made._process, made._answers = 0, []
        made._answers.append((found, None))
        return made

    @property
    def is_done(self) -> bool:
        """Whether it was done, whatever came of it."""
        return bool(self._answers)

    @property
    def has_failed(self) -> bool:
        """Whether it was done, and came to an error."""
        return bool(self._answers) and self._answers[0][1] is not None

    def wait(self) -> T:
        """Return what came of it, or raise; what a fork left undone is done here."""
        if self._process == os.getpid():
            with self._done:
                pass
        elif not self._answers:
            with self._lock:
                if not self._answers:
                    _work_off(self._left, self._answers)
        found, error = self._answers[0]
        if error is not None:
            try:
                raise error
            finally:
                del error  # which holds this frame
        return found


def _work_off(
    left: list[Callable[[], T]],
    answers: list[tuple[T | None, BaseException | None]],
    meant_for_the_caller: BaseException | None = None,
) -> None:
    """Do what is left, and hold it no longer."""
    try:
        answers.append((left.pop()(), meant_for_the_caller))
    except BaseException as error:  # noqa: BLE001 (it is raised where it was asked)
        answers.append((None, error))


def _steps(
    left: list[Callable[[], T]],
    answers: list[tuple[T | None, BaseException | None]],
    lock: threading.RLock | None,
    end: Callable[[], None],
) -> Generator[None]:
    """Wait inside ``try``, then work, then say what came of it, and that it did.

    Until a thread runs, Python takes it for the one that started it, and an exception
    for that one may be raised where its first Python code begins.
    """
    meant_for_the_caller: BaseException | None = None
    try:
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 (it is raised there)
            meant_for_the_caller = error
        holding = _one_finisher() if lock is None else lock
        with holding, no_collection():
            _work_off(left, answers, meant_for_the_caller)
    except BaseException as error:  # noqa: BLE001 (it is raised where it was asked)
        answers.append((None, error))
    finally:
        end()


@contextmanager
def _one_finisher() -> Generator[None]:
    """Hold whichever of ``FINISHERS`` is free, or the first that is again."""
    lock = _free.get()
    try:
        with lock, _short_turns():
            yield
    finally:
        _free.put(lock)


@contextmanager
def _short_turns() -> Generator[None]:
    """Have Python's lock soon, each of the hundred times that LLVM is asked something.

    A thread that wants it waits for 5 ms else, as long as another has work in Python:
    LLVM stood still for a third of the time.
    """
    try:
        _at_work.append(None)
        before = sys.getswitchinterval()
        if before > _TURN:
            _usual[:] = [before]
            sys.setswitchinterval(_TURN)
        yield
    finally:
        _at_work.pop()
        if not _at_work and _usual:
            before = _usual.pop()
            if sys.getswitchinterval() == _TURN:  # nobody has set another since
                sys.setswitchinterval(before)


def _free_again() -> None:
    """Give all finishers to a child: a fork waits until none of them is held."""
    global _free
    _free = SimpleQueue[threading.RLock]()
    for lock in FINISHERS:
        _free.put(lock)


def imported(name: str) -> Any:
    """Return a module; where it is not there yet, nobody disturbs its import."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    return undisturbed(partial(import_module, name))


def _is_ours() -> bool:
    return COMPILER._is_owned()  # pyright: ignore[reportAttributeAccessIssue]


def holds_compiler() -> bool:
    """Tell whether nobody else gets on with a compile as long as this thread waits.

    So it is where a process ends, and in what others do before a fork.
    """
    finishers: Any = FINISHERS
    return _is_ours() or any(lock._is_owned() for lock in finishers)


def _foreign_locks() -> Iterator[Any]:
    """Give the locks that a compile takes; free ones for libraries not yet loaded."""
    for name in _NUMBA:
        module = sys.modules.get(name)
        yield _bare(getattr(module, "global_compiler_lock", None))
    llvm = sys.modules.get("llvmlite.binding.ffi")
    yield _bare(llvm and llvm.lib._lock)


def _bare(lock: Any) -> Any:
    """Return what is inside a lock in Python code: one with methods in C."""
    if lock is None:
        return threading.RLock()
    inner = getattr(lock, "_cuda_lock", None) or getattr(lock, "_lock", None)
    return lock if inner is None else _bare(inner)


def _hold_foreign() -> None:
    holding = holding_all(*_foreign_locks())
    next(holding)
    _held.append(holding)


# Before a fork, what is registered last comes first: these are taken under ours. What
# holds them is dropped by code in C: an exception that arrives there comes later.
at_fork(
    before=_hold_foreign,
    after_in_parent=_held.clear,
    after_in_child=_held.clear,
)
waited_for(COMPILER)
for _lock in FINISHERS:
    waited_for(_lock)  # whose holder may ask for the other
_free_again()
at_fork(after_in_child=_free_again)
# A process does not end in the middle of a compile that somebody stopped waiting for.
for _lock in (COMPILER, *FINISHERS):
    atexit.register(_lock.acquire, True, _LONGEST_WAIT)
