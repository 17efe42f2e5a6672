# SPDX-License-Identifier: Apache-2.0
"""Loops that a trace unrolls: each turn records its operations anew.

A loop of a few turns is meant so. One of hundreds takes minutes to compile where its
body, fused by itself, is compiled once: it is named while the trace still runs.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nfuser.compiler.trace.loops.rewriting.sources import parsed
from nfuser.compiler.trace.source_line import line_at, users_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from nfuser.compiler.ir.tensor import SourceLine

MANY_TIMES = 300
MOST_UNROLLED = 64  # turns of a constant range that are written down one by one
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_warned: set[SourceLine] = set()


@dataclass(slots=True)
class _Place:
    """An instruction, and how often a trace came there."""

    code: CodeType
    line: SourceLine
    count: int = 0


class TurnCounts:
    """Counts how often a trace came to each of the user's instructions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.ask: Callable[[], None] | None = None  # for a trace of loops
        self.are_counted = True  # not within what a library makes of one instruction
        # By the identity of code, which each holds: to hash code takes longer.
        self._places: dict[tuple[int, int], _Place] = {}
        # Lines whose loop was looked for.
        self._told: set[tuple[CodeType, SourceLine]] = set()

    def line(self) -> SourceLine | None:
        """Return the user's line that is running; count that it does."""
        frame = users_frame()
        if frame is None:
            return None
        if not self.are_counted:
            return line_at(frame)
        key = id(frame.f_code), frame.f_lasti
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place(frame.f_code, line_at(frame))
        place.count += 1
        if place.count > MOST_UNROLLED and self.ask is not None:
            self.ask()
        if place.count == MANY_TIMES and (place.code, place.line) not in self._told:
            self._told.add((place.code, place.line))
            _warn(self._name, frame)
        return place.line


def _warn(name: str, frame: FrameType) -> None:
    while (found := _loop(frame)) is None:
        caller = frame.f_back
        # Loops of who calls the fused function are not unrolled.
        if caller is None or caller.f_globals.get("__name__", "").startswith("nfuser."):
            return
        frame = caller
    line, first, last = found
    if line in _warned:
        return
    _warned.add(line)
    body = f"line {first}" if first == last else f"lines {first} to {last}"
    message = (
        f"fuse the body of this loop, {body}, as a function of its own, and call that "
        f"from a plain loop, or write it with nfuser.lax.fori_loop: {name} unrolls the "
        f"loop, has traced more than {MANY_TIMES} turns by now, and compiles each of "
        f"them{line.note}"
    )
    warnings.warn_explicit(message, RuntimeWarning, line.file, line.line)


def _loop(frame: FrameType) -> tuple[SourceLine, int, int] | None:
    """Return the innermost loop around what ``frame`` runs, and its body's lines."""
    code = frame.f_code
    source = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    tree, at = parsed(source, code.co_filename), frame.f_lineno
    around = [
        node
        for statement in (tree.body if tree else ())
        if statement.lineno <= at <= (statement.end_lineno or 0)
        for node in ast.walk(statement)
        if isinstance(node, _LOOPS)
        and code.co_firstlineno <= node.lineno <= at <= (node.end_lineno or 0)
    ]
    if not around:
        return None
    loop = max(around, key=lambda node: (node.lineno, node.col_offset))
    first, last = loop.lineno, loop.end_lineno or loop.lineno
    if isinstance(loop, (ast.For, ast.While)):
        first, last = loop.body[0].lineno, loop.body[-1].end_lineno or loop.lineno
    return line_at(frame, loop.lineno), first, last
