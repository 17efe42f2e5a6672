# SPDX-License-Identifier: Apache-2.0
"""What a launch waits for in a CUDA graph: launches whose data it touches, no others.

A stream that records puts one launch behind another. Launches that share no memory that
one of them writes may as well run beside each other. So each gets the nodes that it
depends on by its data. Between two of them the stream depends on all that it recorded,
as it would anyway: what others record is behind that, and what follows is behind it.
"""

from __future__ import annotations

import ctypes
from array import array
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from nfuser.compiler.ir.base import value
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.native.owned import for_ever

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from contextlib import AbstractContextManager

Handles = tuple[int, ...]
LANES = 3
"""Launches that may run beside each other."""


class Bytes(NamedTuple):
    """Memory that a launch touches, from the address in one of its parameters."""

    parameter: int
    low: int
    high: int
    is_written: bool

    def at(self, address: int) -> Bytes:
        """Return the same with addresses for bounds."""
        return self._replace(low=address + self.low, high=address + self.high)

    def collides(self, other: Bytes) -> bool:
        """Tell whether the order of two launches matters; the bounds are addresses."""
        is_changed = self.is_written or other.is_written
        return is_changed and self.low < other.high and other.low < self.high


@value
class Footprint:
    """All that a launch touches.

    Launches that each need every multiprocessor must not run concurrently, either.
    """

    touched: tuple[Bytes, ...]
    is_cooperative: bool = False


class _Launched(NamedTuple):
    nodes: Handles
    footprint: Footprint
    behind: int  # a bit for each launch that came before it in the graph, and its own

    def collides(self, other: Footprint) -> bool:
        if self.footprint.is_cooperative and other.is_cooperative:
            return True
        return any(a.collides(b) for a in self.footprint.touched for b in other.touched)


class StreamOrder:
    """The launches that a stream recorded since something else was recorded there."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._launched: list[_Launched] = []
        self._base: Handles | None = None  # what all of them are behind, where known
        self._last = 0  # a bit for each that nothing is behind
        self._next: tuple[Footprint, int, Handles] | None = None

    @contextmanager
    def launch(self, footprint: Footprint, addresses: Sequence[int]) -> Generator[None]:
        """Put what is launched inside a ``with`` statement where it belongs."""
        self.begin(footprint, addresses)
        try:
            yield
        finally:
            self.end()

    def begin(self, footprint: Footprint, addresses: Sequence[int]) -> None:
        """Let the next launch wait for those alone that it has to wait for.

        ``addresses`` are the values of its parameters.
        """
        self._next = None
        found = driver.recorded_last(self._stream)
        if found is None:
            self._forget(None)
            return
        if self._base is None or {*found} != {*self._tips()}:
            self._forget(found)
        touched = tuple(b.at(addresses[b.parameter]) for b in footprint.touched)
        here = Footprint(touched, footprint.is_cooperative)
        awaited, behind = self._awaited(here)
        tips = self._tips_beside(behind)
        if len(tips) >= LANES:
            shortest = min(tips, key=lambda k: self._launched[k].behind.bit_count())
            further = self._launched[shortest].behind
            awaited = [shortest, *(k for k in awaited if not further >> k & 1)]
            behind |= further
        nodes = tuple(n for k in awaited for n in self._launched[k].nodes)
        before = nodes or self._base or ()
        driver.record_behind(self._stream, before)
        self._next = here, behind, before

    def end(self) -> None:
        """Note what was launched, if it was; the stream depends on everything again."""
        if self._next is None:
            return
        footprint, behind, before = self._next
        self._next = None
        found = driver.recorded_last(self._stream)
        if found is None:
            self._forget(None)
            return
        if {*found} != {*before}:
            own = 1 << len(self._launched)
            self._launched.append(_Launched(found, footprint, behind | own))
            self._last = self._last & ~behind | own
        driver.record_behind(self._stream, self._tips())

    def _awaited(self, footprint: Footprint) -> tuple[list[int], int]:
        """Return the launches to wait for, and a bit for each that comes before."""
        awaited: list[int] = []
        behind = 0
        left = (1 << len(self._launched)) - 1
        while left:
            last = left.bit_length() - 1
            left ^= 1 << last
            if self._launched[last].collides(footprint):
                awaited.append(last)
                behind |= self._launched[last].behind
                left &= ~behind
        return awaited, behind

    def _tips(self) -> Handles:
        last = self._tips_beside(0)
        nodes = tuple(n for k in last for n in self._launched[k].nodes)
        return nodes or self._base or ()

    def _tips_beside(self, behind: int) -> list[int]:
        """Return the launches that nothing is behind, but for those in ``behind``."""
        last = self._last & ~behind
        return [k for k in range(last.bit_length()) if last >> k & 1]

    def _forget(self, base: Handles | None) -> None:
        self._launched.clear()
        self._base, self._last = base, 0


# -- streams that record -----------------------------------------------------

_orders: dict[int, StreamOrder] = {}
HOOK = array("q", (0,))
"""The address of a function for native code, or 0.

The function takes a footprint and where three words lie: the address of the launch's
parameters, the stream, and whether the launch comes yet or was made.
"""
_lock = Lock()
_NOTHING = nullcontext()


@contextmanager
def by_data(stream: int) -> Generator[None]:
    """Order what is launched on ``stream``, which records, by what it touches."""
    with _lock:
        _orders[stream] = StreamOrder(stream)
        HOOK[0] = _TELL
    try:
        yield
    finally:
        with _lock:
            del _orders[stream]
            HOOK[0] = _TELL if _orders else 0


def placed(
    stream: int, footprint: Footprint, addresses: Sequence[int]
) -> AbstractContextManager[None]:
    """Put a launch inside a ``with`` statement where it belongs in a graph, if any."""
    order = _orders.get(stream) if _orders else None
    return _NOTHING if order is None else order.launch(footprint, addresses)


def _tell(footprint: Footprint, words: int) -> None:
    values, stream, begins = (ctypes.c_int64 * 3).from_address(words)
    order = _orders.get(stream)
    if order is None:
        return
    if begins:
        count = 1 + max((b.parameter for b in footprint.touched), default=-1)
        order.begin(footprint, [*(ctypes.c_int64 * count).from_address(values)])
    else:
        order.end()


_TELL = for_ever(_tell)
