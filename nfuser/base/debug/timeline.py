# SPDX-License-Identifier: Apache-2.0
"""What nfuser did when, as a trace that Perfetto and ``chrome://tracing`` show."""

from __future__ import annotations

import atexit
import json
import os
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.base.debug import dump, events
from nfuser.base.debug.ranges import NvtxRanges

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


class Timeline:
    """Collects events, each with a name, a kind, a thread or stream, and a time.

    A host program that is run with one and timed on a device waits for the device
    before the first statement, and after the last one.
    """

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.peak_bytes = 0
        self._streams: list[int] = []
        self._threads: dict[int, str] = {}

    # -- spans, as those who watch are told of them ------------------------------

    def begin(self, name: str, kind: str) -> tuple[str, str, int]:
        """Note that a span begins."""
        return name, kind, perf_counter_ns()

    def end(self, begun: tuple[str, str, int], told: Mapping[str, object]) -> None:
        """Add the span."""
        name, kind, begin = begun
        self.add(name, begin, perf_counter_ns(), kind, told)

    def add(
        self,
        name: str,
        begin: int,
        end: int,
        kind: str = "statement",
        told: Mapping[str, object] | None = None,
    ) -> None:
        """Add what ran from ``begin`` to ``end`` (nanoseconds) on this thread."""
        row = threading.get_native_id()
        self._threads.setdefault(row, threading.current_thread().name)
        self._event(name, kind, begin / 1e3, (end - begin) / 1e3, row, told or {})

    def add_on_device(
        self, name: str, begin: float, duration: float, stream: int
    ) -> None:
        """Add what a stream of a device did at ``begin`` (microseconds)."""
        if stream not in self._streams:
            self._streams.append(stream)
        row = self._streams.index(stream)
        self._event(name, "device", begin, duration, row, {})

    def _event(
        self,
        name: str,
        kind: str,
        begin: float,
        duration: float,
        row: int,
        told: Mapping[str, object],
    ) -> None:
        self.events.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": begin,
                "dur": duration,
                "pid": os.getpid(),
                "tid": row,
                "args": dict(told),
            }
        )

    # -- what becomes of them ----------------------------------------------------

    def text(self) -> str:
        """Return the trace as JSON."""
        rows = {k: f"device stream {k}" for k in range(len(self._streams))}
        names = [_named(row, name) for row, name in (rows | self._threads).items()]
        return json.dumps({"traceEvents": [*self.events, *names]})

    def save(self, path: str | Path) -> Path:
        """Write the trace to ``path``, and return it."""
        path = Path(path)
        path.write_text(self.text(), encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"<nfuser.Timeline of {len(self.events)} events: save(path) writes it>"


def _named(row: int, name: str) -> dict[str, Any]:
    told = {"name": name}
    found = {"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": row}
    return {**found, "args": told}


@contextmanager
def timeline(
    path: str | Path | None = None, *, nvtx: bool = False
) -> Generator[Timeline]:
    """Note in a ``with`` statement what is traced, compiled and launched, and when.

    The trace is written to ``path`` at the end, for https://ui.perfetto.dev or
    ``chrome://tracing``. With ``nvtx`` the same spans are NVTX ranges, which Nsight
    Systems shows. All threads are watched. Calls go through Python meanwhile, so that
    short ones take longer.

    >>> import nfuser, numpy as np
    >>> halved = nfuser.fuse(lambda x: x / 2)
    >>> with nfuser.timeline() as seen:
    ...     _ = halved(np.ones(3))
    >>> [e["name"] for e in seen.events if e["cat"] == "launch"]
    ['lambda:lambda_kernel']
    """
    made = Timeline()
    with ExitStack() as stack:
        for watcher in (made, *((NvtxRanges(),) if nvtx else ())):
            events.watch(watcher)
            stack.callback(events.leave, watcher)
        yield made
    if path is not None:
        made.save(path)


def begin_process() -> None:
    """Do what ``NFUSER_DUMP=timeline,nvtx`` asks for, until the process ends."""
    wanted = config.at_start().dump
    if "nvtx" in wanted:
        events.watch(NvtxRanges())
    if "timeline" in wanted:
        made = Timeline()
        events.watch(made)
        atexit.register(_dump, made, os.getpid())


def _dump(made: Timeline, process: int) -> None:
    if os.getpid() == process:  # a fork has what its parent saw
        dump.dump("timeline", made.text(), f"process {process}")
