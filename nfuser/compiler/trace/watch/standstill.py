# SPDX-License-Identifier: Apache-2.0
"""Python 3.11 stands still in a profiled call while an exception waits in any thread.

Where a function begins, Python looks whether an exception of another thread's waits
(``PyThreadState_SetAsyncExc``). Under a profiler version 3.11 then begins the function
anew, and looks again, as long as one waits for any thread: for ever, if that thread
waits for a lock that the profiled one holds. So beside each trace a thread makes Python
forget, now and then, that exceptions wait; who has to take one says so when it runs.
"""

from __future__ import annotations

import _thread
import sys
import time
from contextlib import suppress
from threading import get_ident
from typing import TYPE_CHECKING
from weakref import ref

from nfuser.base.locks import forget_waiting, raise_in

if TYPE_CHECKING:
    from collections.abc import Generator

IS_NEEDED = sys.version_info < (3, 12)
_RHYTHM = 0.01  # seconds between two looks: as long a trace may stand


class Token:
    """What is alive as long as a trace is watched."""


def watched() -> Token:
    """Return what keeps this thread from standing still; drop it at the end."""
    token = Token()
    if IS_NEEDED:
        steps = _steps(ref(token), get_ident())
        next(steps)
        with suppress(RuntimeError):  # there are too many threads, or the process ends
            _thread.start_new_thread(next, (steps, None))
    return token


def _steps(token: ref[Token], starter: int) -> Generator[None]:
    """Wait inside ``try``, then work until the token is gone.

    Until a thread runs, Python takes it for the one that started it, and an exception
    for that one may be raised where its first Python code begins.
    """
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001 (it is raised where it was meant)
        raise_in(starter, type(error))
    time.sleep(_RHYTHM)
    while token() is not None:
        forget_waiting()
        time.sleep(_RHYTHM)
