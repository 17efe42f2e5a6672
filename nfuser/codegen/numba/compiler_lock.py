# SPDX-License-Identifier: Apache-2.0
"""One compile at a time, no fork in the middle of one, and nobody to disturb it.

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
import sys
import threading
from contextvars import copy_context
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from nfuser.codegen.numba.collector import no_collection
from nfuser.locks import at_fork, holding_all, waited_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")
COMPILER = threading.RLock()
_NUMBA = ("numba.core.compiler_lock", "numba.cuda.core.compiler_lock")
_LONGEST_WAIT = 60  # seconds at exit
_held: list[object] = []


def undisturbed(work: Callable[[], T]) -> T:
    """Return what ``work`` gives, done under the lock by a thread that nobody knows.

    An exception that arrives meanwhile is raised here, and the work is done all the
    same: Ctrl-C at once, one of another thread when the work is done.
    """
    if _is_ours():
        return work()
    answers: list[tuple[Any, BaseException | None]] = []
    done = _thread.allocate_lock()
    done.acquire()
    steps = _steps(partial(copy_context().run, work), answers, done.release)
    next(steps)
    try:
        _thread.start_new_thread(next, (steps, None))
    except RuntimeError:  # there are too many threads, or the process ends
        with COMPILER:
            return work()
    done.acquire()
    found, error = answers.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error  # which holds this frame
    return found


def _steps(
    work: Callable[[], T],
    answers: list[tuple[T | None, BaseException | None]],
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
        with COMPILER, no_collection():
            answers.append((work(), meant_for_the_caller))
    except BaseException as error:  # noqa: BLE001 (it is raised where it was asked)
        answers.append((None, error))
    finally:
        end()


def imported(name: str) -> Any:
    """Return a module; where it is not there yet, nobody disturbs its import."""
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    return undisturbed(partial(import_module, name))


def _is_ours() -> bool:
    return COMPILER._is_owned()  # pyright: ignore[reportAttributeAccessIssue]


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
# A process does not end in the middle of a compile that somebody stopped waiting for.
atexit.register(COMPILER.acquire, True, _LONGEST_WAIT)
