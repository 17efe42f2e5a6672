# SPDX-License-Identifier: Apache-2.0
"""Find the user's line: the innermost frame outside nfuser and the array libraries."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from dis import opname
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.tensor import SourceLine
from nfuser.compiler.trace.loops.rewriting.originals import originals

if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType

_PACKAGE = Path(__file__).parents[2]
_DEMO = str(_PACKAGE / "frontend/commands/demo.py")  # a user like any other
_LIBRARIES = ("scipy", "torch", "array_api_compat")


def _folders() -> tuple[str, ...]:
    numpy = Path(np.__file__).parent
    beside = [f"{numpy.parent / name}/" for name in _LIBRARIES]
    return (f"{_PACKAGE}/", f"{numpy}/", *beside)


_SKIPPED = _folders()


class _Users(dict[str, bool]):
    """Tells of each file whether it is the user's; a call takes longer to ask."""

    def __missing__(self, file: str) -> bool:
        if len(self) >= _MOST_FILES:
            self.clear()
        skipped = (*_SKIPPED, "<__array_function__")
        self[file] = found = file == _DEMO or not file.startswith(skipped)
        return found


_MOST_FILES = 4096
_users = _Users()


def is_users(file: str) -> bool:
    """Tell whether ``file`` is neither ours nor an array library's."""
    return _users[file]


@lru_cache(4096)
def _line(file: str, number: int) -> SourceLine:
    return SourceLine(file, number, linecache.getline(file, number).strip())


def users_frame() -> FrameType | None:
    """Return the innermost frame of the user's."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and not _users[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def line_at(frame: FrameType, number: int | None = None) -> SourceLine:
    """Return the line that ``frame`` runs, or another one of its file."""
    return _line(frame.f_code.co_filename, number or frame.f_lineno)


def current_line() -> SourceLine | None:
    """Return the line of the user's that is running."""
    frame = users_frame()
    return None if frame is None else line_at(frame)


def line_of(traceback: TracebackType | None, function: Any) -> SourceLine | None:
    """Return the innermost line in ``traceback`` that ``function`` led to.

    Where the function had returned already, that is the line of its definition, and
    none if that is ours.
    """
    code = getattr(function, "__code__", None)
    begun = getattr(inspect.unwrap(function), "__code__", None)
    found = None
    if begun is not None and is_users(begun.co_filename):
        found = _line(begun.co_filename, begun.co_firstlineno)
    while traceback is not None and _written(traceback.tb_frame.f_code) is not code:
        traceback = traceback.tb_next
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if is_users(file):
            found = _line(file, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def _written(code: CodeType) -> CodeType | None:
    return originals.get(code, code)


_COPIED = ("COPY", "COPY")


@value
class Running:
    """What the user's line is doing: its instruction, and the text of that."""

    instruction: str
    text: str
    before: tuple[str, ...] = ()
    """The two instructions in front."""

    @property
    def called(self) -> str | None:
        """The function that is called, as it is written."""
        try:
            found = ast.parse(self.text, mode="eval").body
        except SyntaxError:
            return None
        return ast.unparse(found.func) if isinstance(found, ast.Call) else None

    @property
    def update(self) -> ast.AugAssign | None:
        """The statement, if it is one like ``y += x``."""
        try:
            found = ast.parse(self.text).body
        except SyntaxError:
            return None
        update = found[0] if len(found) == 1 else None
        return update if isinstance(update, ast.AugAssign) else None

    @property
    def assigned(self) -> str | None:
        """The part of an array that is assigned to, as it is written.

        An update (``x[i] += 1``) reads it first, of copies of the array and the key.
        """
        is_read = self.instruction == "BINARY_SUBSCR" and self.before == _COPIED
        is_assigned = is_read or self.instruction.startswith("STORE_S")
        return self.text if is_assigned else None


def running() -> Running | None:
    """Return what the user's line is doing."""
    frame = users_frame()
    if frame is None:
        return None
    code, at = frame.f_code, frame.f_lasti
    place = next(islice(code.co_positions(), at // 2, None), (None,) * 4)
    line, last, start, end = place
    text = ""
    if line is not None and line == last:
        # Positions count bytes.
        written = linecache.getline(code.co_filename, line).encode()
        text = written[start:end].decode(errors="replace")
    before = tuple(opname[x] for x in code.co_code[max(at - 4, 0) : at : 2])
    return Running(opname[code.co_code[at]], text, before)


def library_function() -> str | None:
    """Return the name of the library function that the user's line called, if any."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    name = None
    while frame is not None and not is_users(frame.f_code.co_filename):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in _LIBRARIES:
            public = [part for part in module.split(".") if not part.startswith("_")]
            name = ".".join((*public, frame.f_code.co_name))
        frame = frame.f_back
    return name
