# SPDX-License-Identifier: Apache-2.0
"""Compile for calls that are still to come, and show how far it is."""

from __future__ import annotations

import sys
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from nfuser.execution.runtime.compile.ahead import compile_ahead, missing_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.frontend.fuse.stages import Lowered

_WIDTH = 30


def warm_up(name: str, lowered: Sequence[Lowered[..., Any]], *, progress: bool) -> None:
    """Compile all that was ``lowered`` of the function ``name``."""
    missing = missing_kernels(
        (source, one.backend) for one in lowered for source in one.sources
    )
    bar = _Bar(name, len(missing), progress=progress)
    compile_ahead(missing, bar.step)
    bar = _Bar(name, len(lowered), "calls", progress=progress)
    for one in lowered:
        one.compile()
        bar.step()
    bar.end()


class _Bar:
    """How far something is, drawn on standard error if that is a terminal."""

    def __init__(
        self, name: str, count: int, what: str = "kernels", *, progress: bool
    ) -> None:
        self._stream = sys.stderr if progress and sys.stderr.isatty() else None
        self._name = name
        self._count = count
        self._what = what
        self._done = 0
        self._begin = time.perf_counter()
        self._lock = Lock()
        self._draw()

    def step(self) -> None:
        """Note that one more is done."""
        with self._lock:
            self._done += 1
            self._draw()

    def end(self) -> None:
        """Leave the bar as it is."""
        if self._stream is not None:
            self._stream.write("\n")

    def _draw(self) -> None:
        if self._stream is None:
            return
        filled = _WIDTH * self._done // max(self._count, 1)
        bar = "#" * filled + "." * (_WIDTH - filled)
        seconds = time.perf_counter() - self._begin
        far = f"{self._done}/{self._count} {self._what} {seconds:.1f} s"
        self._stream.write(f"\rwarming up {self._name} [{bar}] {far} ")
        self._stream.flush()
