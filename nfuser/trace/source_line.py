# SPDX-License-Identifier: Apache-2.0
"""Find the user's line: the innermost frame outside nfuser and the array libraries."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nfuser.ir.tensor import SourceLine

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_ROOMS = ("ops", "trace", "runtime", "frontend")  # the demo is a user, too
_LIBRARIES = ("scipy", "torch", "array_api_compat")


def _folders() -> tuple[str, ...]:
    package = Path(__file__).parents[1]
    own = [f"{package / name}/" for name in _ROOMS]
    numpy = Path(np.__file__).parent
    beside = [f"{numpy.parent / name}/" for name in _LIBRARIES]
    return (*own, str(package / "numpy.py"), f"{numpy}/", *beside)


_SKIPPED = _folders()


@lru_cache(4096)
def _is_users(file: str) -> bool:
    return not file.startswith((*_SKIPPED, "<__array_function__"))


@lru_cache(4096)
def _line(file: str, number: int) -> SourceLine:
    return SourceLine(file, number, linecache.getline(file, number).strip())


def current_line() -> SourceLine | None:
    """Return the line of the user's that is running."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            return _line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def line_of(traceback: TracebackType | None) -> SourceLine | None:
    """Return the innermost line of the user's in ``traceback``."""
    found: SourceLine | None = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if _is_users(file):
            found = _line(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
