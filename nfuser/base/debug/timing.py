# SPDX-License-Identifier: Apache-2.0
"""Seconds spent in each stage and pass, summed over the process."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import nfuser.base.debug.progress as progress
from nfuser.base.debug import events

if TYPE_CHECKING:
    from collections.abc import Generator

_seconds: defaultdict[str, float] = defaultdict(float)


def record(name: str, seconds: float) -> None:
    """Add ``seconds`` to the account called ``name``."""
    _seconds[name] += seconds


@contextmanager
def timed(name: str, what: str = "") -> Generator[None]:
    """Charge the body of the ``with`` statement to ``name``; it is done to ``what``."""
    begin = perf_counter()
    progress.stage(name)
    try:
        with events.span(f"{name} {what}".rstrip(), name):
            yield
    finally:
        record(name, perf_counter() - begin)


def table() -> dict[str, float]:
    """Return a copy of all accounts."""
    return dict(_seconds)


def clear() -> None:
    """Forget all accounts."""
    _seconds.clear()
