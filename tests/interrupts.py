# SPDX-License-Identifier: Apache-2.0
"""Exceptions that arrive in the middle of something, as other threads raise them."""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Interrupt(BaseException):
    """What no code of nfuser's expects."""


def raise_in(thread: int | ctypes.c_ulong) -> None:
    """Raise an ``Interrupt`` in a thread, wherever it is; 0 is none.

    The value of a ``c_ulong`` is read in the moment in which it is raised.
    """
    ident = ctypes.c_ulong(thread) if isinstance(thread, int) else thread
    kind = ctypes.py_object(Interrupt)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, kind)


def interrupted(file: str, number: int, work: Callable[[], object]) -> bool:
    """Do ``work``, raising before line ``number`` that runs in ``file``.

    Tell whether so many lines ran.
    """
    left = number

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line" and frame.f_code.co_filename.endswith(file):
            left -= 1
            if left < 0:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False
