# SPDX-License-Identifier: Apache-2.0
"""Counting is part of the product: what a cache did, and why it last did something."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakSet


class CacheInfo(NamedTuple):
    """Counts since the function was made or its cache cleared.

    They are of what its own calls caused: what an equal function built before it finds,
    and counts it neither as ``concretizations`` nor as ``runtimes`` or ``compiled``.
    ``copied`` are arrays that no kernel can read where they lie.
    """

    calls: int
    hits: int
    traces: int
    concretizations: int
    runtimes: int
    compiled: int
    reused: int
    loaded: int
    copied: int


class Counters:
    """The counts of one fused function, and the reason for its last compile.

    Functions share what is built; each counts what its own calls caused.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(CacheInfo._fields, 0)
        self.reason = "it has not been called"
        self._met: WeakSet[object] = WeakSet()

    def add(self, name: str, amount: int = 1) -> None:
        """Count ``amount`` more of ``name``."""
        self.counts[name] += amount

    def made(self) -> int:
        """Return how often something was made, or found, that calls had not met."""
        names = ("traces", "concretizations", "runtimes", "compiled", "reused")
        return sum(map(self.counts.__getitem__, names))

    def info(self) -> CacheInfo:
        """Return the counts."""
        return CacheInfo(**self.counts)

    def meet(self, thing: object) -> bool:
        """Note that a call used ``thing``; tell whether it was the first to do so."""
        is_first = thing not in self._met
        self._met.add(thing)
        return is_first

    def has_met(self, thing: object) -> bool:
        """Tell whether a call used ``thing``."""
        return thing in self._met
