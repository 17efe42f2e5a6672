# SPDX-License-Identifier: Apache-2.0
"""What Python runs between two steps of a function, and the function knows nothing of.

The garbage collector's callbacks and the finalizers that it calls, and the handlers of
signals, run on top of whatever function is running. They may read clocks.
"""

from __future__ import annotations

import gc
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_collecting_in: list[int] = []  # the thread that the collector works in


def watch() -> None:
    """Hear of the collector's work from now on."""
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)


def _note(phase: str, info: dict[str, int]) -> None:
    del info
    _collecting_in[:] = [get_ident()] if phase == "start" else []


def is_one(frame: FrameType) -> bool:
    """Tell whether no function called the one that begins to run in ``frame``."""
    code = frame.f_code
    if get_ident() in _collecting_in:
        return True
    if any(_code_of(callback) is code for callback in gc.callbacks):
        return True
    # A handler is given a signal and the frame that was interrupted.
    if code.co_argcount not in (2, 3) or frame.f_back is None:
        return False
    return frame.f_locals.get(code.co_varnames[code.co_argcount - 1]) is frame.f_back


def _code_of(function: Any) -> Any:
    if hasattr(function, "__code__"):
        return function.__code__
    return getattr(type(function).__call__, "__code__", None)
