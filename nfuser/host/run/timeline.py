# SPDX-License-Identifier: Apache-2.0
"""When the statements of a run were issued, and when a device ran them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import nfuser.host.ir.statements as st

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.host.ir.statements import Statement
    from nfuser.host.run.arrays import Arrays

_ON_DEVICE = (
    st.Launch,
    st.Set,
    st.Unary,
    st.Binary,
    st.Reduce,
    st.Matmul,
    st.Communicate,
)


class Timeline:
    """Collects the events of one or more runs; ``chrome://tracing`` shows them.

    A run that is timed on a device waits for it before the first statement, and after
    the last one.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.peak_bytes = 0
        self._streams: list[int] = []

    def add(self, name: str, begin: int, end: int) -> None:
        """Add what ran from ``begin`` to ``end`` (nanoseconds) on this thread."""
        self._event(name, begin / 1e3, (end - begin) / 1e3, get_ident())

    def add_on_device(
        self, name: str, begin: float, duration: float, stream: int
    ) -> None:
        """Add what a stream of a device did at ``begin`` (microseconds)."""
        if stream not in self._streams:
            self._streams.append(stream)
        self._event(name, begin, duration, self._streams.index(stream))

    def _event(self, name: str, begin: float, duration: float, row: int) -> None:
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "ts": begin,
                "dur": duration,
                "pid": os.getpid(),
                "tid": row,
            }
        )

    def save(self, path: str | Path) -> None:
        """Write the trace."""
        names: list[dict[str, Any]] = [
            {
                "name": "thread_name",
                "ph": "M",
                "pid": os.getpid(),
                "tid": row,
                "args": {"name": f"device stream {row}"},
            }
            for row in range(len(self._streams))
        ]
        Path(path).write_text(json.dumps({"traceEvents": [*self.events, *names]}))


class Tracer:
    """Notes in a timeline what one run does."""

    def __init__(
        self, timeline: Timeline, names: Mapping[Statement, str], library: Arrays
    ) -> None:
        self._timeline = timeline
        self._names = names
        self._library = library
        self._marks: list[tuple[str, int, Any, Any]] = []
        self._origin = library.mark()
        if self._origin is not None:
            library.elapsed(self._origin, self._origin)
        self._begin = perf_counter_ns()

    def run(self, stmt: Statement, step: Callable[[], None]) -> None:
        """Run the step of a statement between two marks."""
        name, first = self._names[stmt], None
        begin = perf_counter_ns()
        if isinstance(stmt, _ON_DEVICE):
            first = self._library.mark()
        step()
        if first is not None:
            stream = self._library.stream_number()
            self._marks.append((name, stream, first, self._library.mark()))
        self._timeline.add(name, begin, perf_counter_ns())

    def finish(self, peak_bytes: int) -> None:
        """Wait for the device, and add what it did."""
        self._timeline.peak_bytes = max(self._timeline.peak_bytes, peak_bytes)
        elapsed = self._library.elapsed
        for name, stream, first, last in self._marks:
            begin = self._begin / 1e3 + elapsed(self._origin, first)
            duration = elapsed(first, last)
            self._timeline.add_on_device(name, begin, duration, stream)
