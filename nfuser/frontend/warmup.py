# SPDX-License-Identifier: Apache-2.0
"""Compile for calls that are still to come, and show how far it is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_WIDTH = 30


def warm_up(
    name: str, steps: Sequence[Callable[[], object]], *, progress: bool
) -> None:
    """Do all ``steps``, of which each prepares one call of the function ``name``."""
    stream = sys.stderr if progress and sys.stderr.isatty() else None
    begin = time.perf_counter()
    for done, step in enumerate(steps):
        _draw(stream, name, done, len(steps), begin)
        step()
    _draw(stream, name, len(steps), len(steps), begin)
    if stream is not None:
        stream.write("\n")


def _draw(
    stream: TextIO | None, name: str, done: int, count: int, begin: float
) -> None:
    if stream is None:
        return
    filled = _WIDTH * done // max(count, 1)
    bar = "#" * filled + "." * (_WIDTH - filled)
    seconds = time.perf_counter() - begin
    stream.write(f"\rwarming up {name} [{bar}] {done}/{count} {seconds:.1f} s")
    stream.flush()
