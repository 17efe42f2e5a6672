# SPDX-License-Identifier: Apache-2.0
"""Find accesses of one element by two threads with nothing between them.

Two accesses of an element conflict if one of them writes and the threads differ. In
one block a barrier must lie between them, in one warp a warp barrier will do; in two
blocks the writer must have published with a ticket that the reader took after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from nfuser.execution.interpret.wave import WARP, Wave

Vector: TypeAlias = np.ndarray[Any, Any]
NOBODY, SEVERAL = -1, -2


@dataclass(frozen=True, slots=True)
class Race:
    """One access that races: its number, and what the other thread did."""

    number: int
    verb: str
    lane: int

    def text(self, wave: Wave) -> str:
        """Say who did what."""
        who = wave.where(self.lane) if self.lane >= 0 else "several threads"
        return f"{self.verb} by {who}"


class Tracker:
    """The last accesses of each element of an array that the kernel writes."""

    def __init__(self, size: int, *, reads: bool) -> None:
        self.writer = np.full(size, NOBODY, np.int64)
        self.write_epoch = np.zeros(size, np.int32)
        self.write_warp_epoch = np.zeros(size, np.int32)
        self.reader = np.full(size if reads else 0, NOBODY, np.int64)
        self.read_block = self.reader.copy()
        self.read_warp = self.reader.copy()
        self.read_epoch = np.zeros(self.reader.size, np.int32)
        self.read_warp_epoch = np.zeros(self.reader.size, np.int32)
        self.reads = reads
        self.ticket_counts: Vector | None = None  # where blocks wait for each other

    def read(self, wave: Wave, at: Vector, positions: Vector) -> Race | None:
        """Note reads of elements ``at``; return one that races."""
        lanes, epochs = wave.lanes[positions], wave.epochs[positions]
        raced = self._after_write(wave, at, positions, lanes, epochs)
        if raced is None and self.reads:
            self._note_readers(wave, at, positions, lanes, epochs)
        return raced

    def write(self, wave: Wave, at: Vector, positions: Vector) -> Race | None:
        """Note writes of elements ``at``; return one that races."""
        lanes, epochs = wave.lanes[positions], wave.epochs[positions]
        raced = self._after_write(wave, at, positions, lanes, epochs)
        if raced is None and self.reads:
            raced = self._after_read(wave, at, positions, lanes, epochs)
        self.writer[at] = lanes
        self.write_epoch[at] = epochs
        self.write_warp_epoch[at] = wave.warp_epochs[positions]
        if wave.order is not None:
            wave.order.note_writes(self, at, lanes)
        twice = np.flatnonzero(self.writer[at] != lanes)
        if raced is None and twice.size:
            number = int(twice[0])
            raced = Race(number, "written", int(self.writer[at[number]]))
        return raced

    def written(self, at: Vector) -> Vector:
        """Return whether the kernel wrote each element of ``at``."""
        return self.writer[at] != NOBODY

    def _after_write(
        self, wave: Wave, at: Vector, positions: Vector, lanes: Vector, epochs: Vector
    ) -> Race | None:
        writer = self.writer[at]
        other = np.flatnonzero((writer != NOBODY) & (writer != lanes))
        if not other.size:
            return None
        who, here = writer[other], at[other]
        same_block = who // wave.threads == lanes[other] // wave.threads
        race = self.write_epoch[here] == epochs[other]
        same_warp = _warp(wave, who) == _warp(wave, lanes[other])
        warp_epoch = wave.warp_epochs[positions[other]]
        race &= ~(same_warp & (self.write_warp_epoch[here] != warp_epoch))
        race |= ~same_block
        if wave.order is not None:
            race &= ~wave.order.sees(self, here, who, lanes[other])
        found = np.flatnonzero(race)
        if not found.size:
            return None
        number = int(other[found[0]])
        return Race(number, "written", int(writer[number]))

    def _after_read(
        self, wave: Wave, at: Vector, positions: Vector, lanes: Vector, epochs: Vector
    ) -> Race | None:
        reader = self.reader[at]
        other = np.flatnonzero((reader != NOBODY) & (reader != lanes))
        if not other.size:
            return None
        here = at[other]
        race = self.read_epoch[here] == epochs[other]
        same_warp = self.read_warp[here] == _warp(wave, lanes[other])
        warp_epoch = wave.warp_epochs[positions[other]]
        race &= ~(same_warp & (self.read_warp_epoch[here] != warp_epoch))
        if wave.order is None:
            race |= self.read_block[here] != lanes[other] // wave.threads
        found = np.flatnonzero(race)
        if not found.size:
            return None
        number = int(other[found[0]])
        return Race(number, "read", int(reader[number]))

    def _note_readers(
        self, wave: Wave, at: Vector, positions: Vector, lanes: Vector, epochs: Vector
    ) -> None:
        block, warp = lanes // wave.threads, _warp(wave, lanes)
        fresh = self.read_epoch[at] != epochs
        _combine(self.read_block, at, block, None)
        _combine(self.reader, at, lanes, fresh)
        _combine(self.read_warp, at, warp, fresh)
        self.read_epoch[at] = epochs
        self.read_warp_epoch[at] = wave.warp_epochs[positions]


def _warp(wave: Wave, lanes: Vector) -> Vector:
    per_block = -(-wave.threads // WARP)
    return lanes // wave.threads * per_block + lanes % wave.threads // WARP


def _combine(noted: Vector, at: Vector, values: Vector, fresh: Vector | None) -> None:
    """Set ``noted[at]`` to ``values``, or SEVERAL where it holds another already."""
    before = noted[at]
    kept = before != NOBODY
    if fresh is not None:
        kept &= ~fresh
    clash = kept & (before != values)
    noted[at] = values
    noted[at[clash | (noted[at] != values)]] = SEVERAL


class BlockOrder:
    """What one block has seen of the others' writes, by tickets and waits."""

    def __init__(self, wave: Wave, blocks: int) -> None:
        self.wave = wave
        self.block = int(wave.blocks[0])
        # Writes of block b in epochs below visible[b] are seen by the whole block.
        self.visible = np.zeros(blocks, np.int64)
        self.released: dict[int, int] = {}  # lane -> tickets whose writes are seen
        self.pending: list[tuple[Vector, Published]] = []
        self.tickets = np.zeros(wave.threads, np.int64)

    def barrier(self) -> None:
        """Pass on to the whole block what single threads have acquired."""
        for _, published in self.pending:
            published.spread(self.visible, self.released)
        self.pending.clear()

    def take(self, counter: Published, lane: int, position: int) -> None:
        """Release this thread's view into ``counter`` and acquire what is there."""
        self.acquire(counter, np.asarray([lane]))
        own = self.visible.copy()
        own[self.block] = self.wave.epochs[position]
        self.tickets[position] += 1
        counter.merge(own, {**self.released, lane: int(self.tickets[position])})

    def acquire(self, counter: Published, lanes: Vector) -> None:
        """Let ``lanes`` see what others released into ``counter``."""
        self.pending.append((lanes, counter.copy()))

    def note_writes(self, tracker: Tracker, at: Vector, lanes: Vector) -> None:
        """Remember after how many tickets of its thread each element was written."""
        counts = _ticket_counts(tracker)
        counts[at] = self.tickets[lanes % self.wave.threads]

    def sees(
        self, tracker: Tracker, at: Vector, writers: Vector, lanes: Vector
    ) -> Vector:
        """Return whether each of ``lanes`` sees the write of ``at`` by ``writers``."""
        seen = self._covers(self.visible, self.released, tracker, at, writers)
        for group, published in self.pending:
            known = self._covers(
                published.epochs, published.tickets, tracker, at, writers
            )
            seen |= known & np.isin(lanes, group)
        return seen

    def _covers(
        self,
        epochs: Vector,
        tickets: dict[int, int],
        tracker: Tracker,
        at: Vector,
        writers: Vector,
    ) -> Vector:
        block = writers // self.wave.threads
        covered = tracker.write_epoch[at] < epochs[block]
        counts = _ticket_counts(tracker)[at]
        known = np.fromiter((tickets.get(int(w), 0) for w in writers), np.int64)
        return covered | (counts < known)


class Published:
    """What the threads that took tickets of one counter had seen or written."""

    def __init__(self, blocks: int) -> None:
        self.epochs = np.zeros(blocks, np.int64)
        self.tickets: dict[int, int] = {}

    def copy(self) -> Published:
        """Return this moment's state."""
        other = Published(self.epochs.size)
        other.merge(self.epochs, self.tickets)
        return other

    def merge(self, epochs: Vector, tickets: dict[int, int]) -> None:
        """Add what one thread releases."""
        np.maximum(self.epochs, epochs, out=self.epochs)
        for lane, count in tickets.items():
            self.tickets[lane] = max(count, self.tickets.get(lane, 0))

    def spread(self, epochs: Vector, tickets: dict[int, int]) -> None:
        """Add this state to what a block has seen."""
        np.maximum(epochs, self.epochs, out=epochs)
        for lane, count in self.tickets.items():
            tickets[lane] = max(count, tickets.get(lane, 0))


def _ticket_counts(tracker: Tracker) -> Vector:
    if tracker.ticket_counts is None:
        tracker.ticket_counts = np.zeros(tracker.writer.size, np.int64)
    return tracker.ticket_counts
