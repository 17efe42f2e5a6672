# SPDX-License-Identifier: Apache-2.0
"""When the statements of a run were issued, and when a device ran them."""

from __future__ import annotations

from math import prod
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import nfuser.execution.host.ir.statements as st
from nfuser.base.debug import events
from nfuser.execution.host.call.program import AllocateSlot, CallPython, FreeSlot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.base.debug.timeline import Timeline
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.execution.host.ir.statements import Statement

_ON_DEVICE = (
    st.Launch,
    st.Set,
    st.UnaryOp,
    st.BinaryOp,
    st.ReductionOp,
    st.MatmulOp,
    st.Communicate,
)


class StatementNotes:
    """Tells what one run does, in a timeline, or else to all those who watch."""

    def __init__(
        self, timeline: Timeline | None, names: Mapping[Statement, str], library: Any
    ) -> None:
        self._timeline = timeline
        self._names = names
        self._library = library
        self._open: list[tuple[Any, Any]] = []  # of those that run: span, and mark
        self._marks: list[tuple[str, int, Any, Any]] = []
        self._made: dict[Slot, int] = {}  # bytes of what the run holds
        self._peak = 0
        self._origin = None if timeline is None else library.mark()
        if self._origin is not None:
            library.elapsed(self._origin, self._origin)
        self._begin = perf_counter_ns()

    def follow(self, program: CallProgram) -> None:
        """Note what a program holds that is run next."""
        for stmt in program.body:
            new: tuple[Slot, ...] = ()
            match stmt:
                case FreeSlot(slot):
                    self._made.pop(slot, None)
                case AllocateSlot(slot):
                    new = (slot,)
                case CallPython(results=results):
                    new = results
                case _:
                    continue
            sizes = ((s, prod(s.shape) * s.dtype.itemsize) for s in new)
            self._made |= dict(sizes)
            self._peak = max(self._peak, sum(self._made.values()))

    def begin(self, stmt: Statement) -> None:
        """Note that a statement begins."""
        if self._timeline is None:
            span = events.span(self._names[stmt], "statement")
            span.__enter__()
            self._open.append((span, None))
            return
        mark = self._library.mark() if isinstance(stmt, _ON_DEVICE) else None
        self._open.append((perf_counter_ns(), mark))

    def end(self, stmt: Statement) -> None:
        """Add a statement that ends."""
        (begin, first), name = self._open.pop(), self._names[stmt]
        if self._timeline is None:
            begin.__exit__(None, None, None)
            return
        if first is not None:
            stream = self._library.stream_number()
            self._marks.append((name, stream, first, self._library.mark()))
        self._timeline.add(name, begin, perf_counter_ns())

    def leave(self) -> None:
        """End the spans of statements that did not come to their end."""
        while self._open and self._timeline is None:
            self._open.pop()[0].__exit__(None, None, None)

    def finish(self) -> None:
        """Wait for the device, and add what it did."""
        if self._timeline is None:
            return
        self._timeline.peak_bytes = max(self._timeline.peak_bytes, self._peak)
        for name, stream, first, last in self._marks:
            elapsed = self._library.elapsed
            begin = self._begin / 1e3 + elapsed(self._origin, first)
            duration = elapsed(first, last)
            self._timeline.add_on_device(name, begin, duration, stream)
