# SPDX-License-Identifier: Apache-2.0
"""When the statements of a run were issued, and when a device ran them."""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import nfuser.execution.host.ir.statements as st

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.base.debug.timeline import Timeline
    from nfuser.execution.host.ir.statements import Statement
    from nfuser.execution.host.run.arrays import Arrays

_ON_DEVICE = (
    st.Launch,
    st.Set,
    st.UnaryOp,
    st.BinaryOp,
    st.ReductionOp,
    st.MatmulOp,
    st.Communicate,
)


class TimelineNotes:
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
