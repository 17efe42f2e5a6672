# SPDX-License-Identifier: Apache-2.0
"""What leaves a fused function as an error: it names a line, and shows the user's own.

Errors that nfuser raises on purpose pass a dozen of its frames, which say nothing to
the user: tracebacks keep the frames of the user's code. An exception that the user's
own code raised while tracing is treated alike; a fault inside nfuser stays as it is.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import nfuser.config as config
from nfuser.errors import (
    BackendError,
    CompileError,
    HostError,
    NfuserError,
    VerifyError,
)
from nfuser.frontend.call.first_use import FirstUse

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from nfuser.compiler.trace import source_line
else:
    source_line = FirstUse("nfuser.compiler.trace.source_line")

P = ParamSpec("P")
R = TypeVar("R")

# Their frames and causes are what one has to see.
_OURS = (BackendError, CompileError, HostError, VerifyError)


def telling(method: Callable[P, R]) -> Callable[P, R]:
    """Return ``method``, whose errors leave it as ``told`` has them."""

    @functools.wraps(method)
    def tell(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (all are raised again)
            __tracebackhide__ = True  # in IPython and pytest
            raise told(error)  # NFUSER_TRACEBACK=full shows what lies between

    return tell


def told(error: Exception) -> Exception:
    """Return ``error`` as the user is to see it; ``raise`` that."""
    if isinstance(error, NfuserError):
        name_call(error)
    if config.current().full_tracebacks or isinstance(error, _OURS):
        return error
    own = _users(error.__traceback__)
    if not isinstance(error, NfuserError) and own is None:
        return error
    if isinstance(error, NfuserError) or _is_raised_by_user(error.__traceback__):
        error.__traceback__ = own
        _forget_ours(error)
    return error


def name_call(error: NfuserError) -> None:
    """Put the calling line into a message that names no line yet."""
    text = str(error.args[0]) if error.args else ""
    line = source_line.current_line()
    if line is not None and "\n  at " not in text:
        error.args = (text + line.note, *error.args[1:])


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Return ``trace`` with the frames of the user's code alone."""
    frames: list[TracebackType] = []
    while trace is not None:
        if source_line.is_users(trace.tb_frame.f_code.co_filename):
            frames.append(trace)
        trace = trace.tb_next
    kept = None
    for frame in reversed(frames):
        frame.tb_next = kept
        kept = frame
    return kept


def _is_raised_by_user(trace: TracebackType | None) -> bool:
    """Tell whether the innermost frame is one of the user's code."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and source_line.is_users(trace.tb_frame.f_code.co_filename)


def _forget_ours(error: BaseException) -> None:
    """Drop what nfuser handled inside from what is printed before ``error``."""
    if isinstance(error, NfuserError):
        error.__cause__, error.__suppress_context__ = None, True
