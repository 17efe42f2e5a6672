# SPDX-License-Identifier: Apache-2.0
"""Find the user's line: the innermost frame outside nfuser and the array libraries."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.ir.tensor import SourceLine

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_DEMO = str(Path(__file__).parents[1] / "demo.py")  # a user like any other
_LIBRARIES = ("scipy", "torch", "array_api_compat")


def _folders() -> tuple[str, ...]:
    package = Path(__file__).parents[1]
    numpy = Path(np.__file__).parent
    beside = [f"{numpy.parent / name}/" for name in _LIBRARIES]
    return (f"{package}/", f"{numpy}/", *beside)


_SKIPPED = _folders()


@lru_cache(4096)
def is_users(file: str) -> bool:
    """Tell whether ``file`` is neither ours nor an array library's."""
    return file == _DEMO or not file.startswith((*_SKIPPED, "<__array_function__"))


@lru_cache(4096)
def _line(file: str, number: int) -> SourceLine:
    return SourceLine(file, number, linecache.getline(file, number).strip())


def current_line() -> SourceLine | None:
    """Return the line of the user's that is running."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            return _line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def line_of(traceback: TracebackType | None, function: Any) -> SourceLine | None:
    """Return the innermost line in ``traceback`` that ``function`` led to.

    Where the function had returned already, that is the line of its definition.
    """
    code = getattr(function, "__code__", None)
    found = None if code is None else _line(code.co_filename, code.co_firstlineno)
    while traceback is not None and traceback.tb_frame.f_code is not code:
        traceback = traceback.tb_next
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_users(file):
            found = _line(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def library_function() -> str | None:
    """Return the name of the scipy function that the user's line called, if any."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    name = None
    while frame is not None and not is_users(frame.f_code.co_filename):
        if "/scipy/" in frame.f_code.co_filename:
            name = frame.f_code.co_name
        frame = frame.f_back
    return name
