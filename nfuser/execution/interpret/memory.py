# SPDX-License-Identifier: Apache-2.0
"""Global memory: bounds, initialisation, alignment, races, and counting.

A region is one storage array; a pointer is one argument that points into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from nfuser.execution.interpret.formats import narrow, unpacked, widen, words_of
from nfuser.execution.interpret.races import Published, Race, Tracker

if TYPE_CHECKING:
    from nfuser.execution.interpret.arrays import LocalArray, SharedArray
    from nfuser.execution.interpret.buffer import PointerUse
    from nfuser.execution.interpret.wave import Here

Vector: TypeAlias = np.ndarray[Any, Any]

FULL = np.uint64(1 << 32)  # above the word in a box that is full


class Region:
    """One storage array, and what has happened to each of its elements."""

    def __init__(
        self, storage: Vector, *, initialized: bool, written: bool, read: bool
    ) -> None:
        self.storage = storage
        self.valid: Vector | None = None  # None: all of it
        if not initialized:
            self.valid = np.zeros(storage.size, bool)
        self.tracker = Tracker(storage.size, reads=read) if written else None
        self.touched = np.zeros(storage.size, bool)
        self.counters: dict[int, Published] = {}


@dataclass(slots=True)
class Pointer:
    """One pointer argument of a kernel."""

    name: str
    region: Region
    offset: int
    address: int
    access: PointerUse
    touched: Vector

    def _located(
        self, here: Here, index: Any, verb: str, length: int = 1
    ) -> tuple[Vector, Vector]:
        """Return the active threads' positions and elements, checked for bounds."""
        positions, at = here.numbers(index)
        at += self.offset
        self._bounds(here, at, positions, length, verb)
        return positions, at

    def _bounds(
        self, here: Here, at: Vector, positions: Vector, length: int, verb: str
    ) -> None:
        size = self.region.storage.size
        if at.min() >= 0 and at.max() + length <= size:
            return
        k = int(np.flatnonzero((at < 0) | (at + length > size))[0])
        last = "" if length == 1 else f":{at[k] - self.offset + length}"
        here.fail(
            f"out-of-bounds {verb} of {self.name}[{at[k] - self.offset}{last}], "
            f"which has {size - self.offset} elements",
            positions[k],
        )

    def _read(
        self, here: Here, at: Vector, positions: Vector, *, volatile: bool
    ) -> Vector:
        """Return the stored elements ``at``, after every check of a read."""
        region = self.region
        if region.valid is not None and not region.valid[at].all():
            k = int(np.flatnonzero(~region.valid[at])[0])
            element = at[k] - self.offset
            message = f"read of {self.name}[{element}], which nothing wrote"
            here.fail(message, positions[k])
        if region.tracker is not None:
            self._read_in_order(here, at, positions, volatile=volatile)
        self.access.elements_read += at.size
        self.touched[at] = True
        return region.storage[at]

    def _read_in_order(
        self, here: Here, at: Vector, positions: Vector, *, volatile: bool
    ) -> None:
        tracker = self.region.tracker
        assert tracker is not None
        raced = tracker.read(here.wave, at, positions)
        if raced is not None:
            self._race(here, at, positions, raced, "read")
        if not volatile and tracker.written(at).any():
            k = int(np.flatnonzero(tracker.written(at))[0])
            element = f"{self.name}[{at[k] - self.offset}]"
            message = f"load of {element}, which this kernel wrote: use load_volatile"
            here.fail(message, positions[k])

    def _race(
        self, here: Here, at: Vector, positions: Vector, race: Race, verb: str
    ) -> NoReturn:
        element = f"{self.name}[{at[race.number] - self.offset}]"
        how = f"{race.text(here.wave)} with no barrier or ticket between"
        here.fail(f"race: {verb} of {element}, {how}", positions[race.number])

    def _write(self, here: Here, at: Vector, positions: Vector, values: Any) -> None:
        region = self.region
        if region.tracker is not None:
            raced = region.tracker.write(here.wave, at, positions)
            if raced is not None:
                self._race(here, at, positions, raced, "write")
        if region.valid is not None:
            region.valid[at] = True
        self.access.elements_written += at.size
        region.storage[at] = values

    def load(self, here: Here, index: Any, suffix: str, volatile: bool) -> Vector:
        """Return the element ``index`` in every active thread, 0 in the others."""
        positions, at = self._located(here, index, "read")
        stored = self._read(here, at, positions, volatile=volatile)
        return here.spread(widen(suffix, stored))

    def store(self, here: Here, index: Any, value: Any, suffix: str) -> None:
        """Write ``value`` to the element ``index`` in every active thread."""
        positions, at = self._located(here, index, "write")
        stored = here.chosen(narrow(suffix, value))
        self._write(here, at, positions, stored)

    def _packet(
        self, here: Here, index: Any, length: int, verb: str
    ) -> tuple[Vector, Vector, Vector]:
        """Return positions and elements of a packet, as (length, active) matrices."""
        positions, first = self._located(here, index, verb, length)
        size = self.region.storage.itemsize
        wrong = np.flatnonzero((self.address + first * size) % (length * size))
        if wrong.size:
            element = first[wrong[0]] - self.offset
            message = (
                f"misaligned packet: {verb} of {length * size} bytes at "
                f"{self.name}[{element}]"
            )
            here.fail(message, positions[wrong[0]])
        at = first + np.arange(length)[:, None]
        return positions, at.ravel(), np.tile(positions, length)

    def load_packet(
        self,
        here: Here,
        array: LocalArray,
        k: Any,
        index: Any,
        length: int,
        suffix: str,
    ) -> None:
        """Read ``length`` elements into ``array[k:]`` as one aligned access."""
        positions, at, owners = self._packet(here, index, length, "read")
        stored = self._read(here, at, owners, volatile=False)
        self.access.packet_reads += positions.size
        values = widen(suffix, stored).reshape(length, -1)
        array.land(here, k, here.spread(values))

    def load_packet_across(
        self,
        here: Here,
        array: LocalArray,
        k: Any,
        index: Any,
        length: int,
        suffix: str,
    ) -> None:
        """Read ``length`` elements at any place into ``array[k:]``, as two packets."""
        first = self.address // self.region.storage.itemsize + self.offset
        past = (first % length + index) % length
        whole = (index - past, index + length - 1 - (past + length - 1) % length)
        packets = [self._packet(here, x, length, "read") for x in whole]
        positions = packets[0][0]
        found = [
            self._read(here, at, owners, volatile=False).reshape(length, -1)
            for _, at, owners in packets
        ]
        self.access.packet_reads += 2 * positions.size
        begin = np.broadcast_to(past, here.wave.size)[positions]
        both = np.concatenate(found)
        taken = np.take_along_axis(both, begin + np.arange(length)[:, None], 0)
        values = widen(suffix, taken.ravel()).reshape(length, -1)
        array.land(here, k, here.spread(values))

    def copy_packet(
        self, here: Here, array: SharedArray, k: Any, index: Any, length: int
    ) -> None:
        """Begin to copy ``length`` elements to ``array[k:]``."""
        positions, at, owners = self._packet(here, index, length, "copy")
        stored = self._read(here, at, owners, volatile=False)
        self.access.packet_reads += positions.size
        rows = here.spread(stored.reshape(length, -1))
        here.wave.copies.append((positions, lambda: array.land(here, k, rows)))

    def store_packet(
        self,
        here: Here,
        index: Any,
        array: LocalArray,
        k: Any,
        length: int,
        suffix: str,
    ) -> None:
        """Write ``array[k:]`` to ``length`` elements as one aligned access."""
        positions, at, owners = self._packet(here, index, length, "write")
        rows = [array.read(here, k + n) for n in range(length)]
        size = here.wave.size
        values = here.chosen(np.stack([np.broadcast_to(row, size) for row in rows]))
        self._write(here, at, owners, narrow(suffix, values).ravel())
        self.access.packet_writes += positions.size

    def ticket(self, here: Here, index: Any) -> Vector:
        """Add 1 to a counter, thread after thread; return the old values."""
        positions, at = self._located(here, index, "ticket")
        wave, result = here.wave, np.zeros(here.wave.size, np.int32)
        storage = self.region.storage
        for position, element in zip(positions, at, strict=True):
            self._counter_is_set(here, position, element)
            result[position] = storage[element].astype(np.int32)
            storage[element] += np.uint32(1)
            counter = self._published(here, element)
            wave.order.take(counter, int(wave.lanes[position]), int(position))
        return result

    def reset(self, here: Here, index: Any) -> None:
        """Set a counter to 0."""
        _, at = self._located(here, index, "reset")
        self.region.storage[at] = 0
        if self.region.valid is not None:
            self.region.valid[at] = True

    def ready(self, here: Here, index: Any, least: Any) -> bool:
        """Return whether counters have reached ``least``, and acquire them if so."""
        positions, at = self._located(here, index, "wait")
        for position, element in zip(positions, at, strict=True):
            self._counter_is_set(here, position, element)
        wanted = here.chosen(least)
        if not np.all(self.region.storage[at].astype(np.int64) >= wanted):
            return False
        for element in np.unique(at):
            lanes = here.wave.lanes[positions[at == element]]
            here.wave.order.acquire(self._published(here, element), lanes)
        here.wave.waits += 1
        return True

    def post(self, here: Here, index: Any, value: Any, kind: str) -> None:
        """Fill boxes that are empty."""
        positions, at = self._located(here, index, "post", 1)
        values = here.chosen(np.broadcast_to(np.asarray(value, kind), here.wave.size))
        for part, words in enumerate(words_of(values)):
            boxes = self._boxes(here, positions, at, kind, part)
            full = np.flatnonzero(self.region.storage[boxes])
            if full.size or np.unique(boxes).size < boxes.size:
                k = int(full[0]) if full.size else 0
                name = f"{self.name}[{boxes[k] - self.offset}]"
                here.fail(f"box {name} is filled twice", positions[k])
            self.region.storage[boxes] = words | FULL

    def full(self, here: Here, index: Any, kind: str) -> bool:
        """Return whether every box that threads wait for is full."""
        positions, at = self._located(here, index, "receive")
        last = np.dtype(kind).itemsize // 8
        boxes = self._boxes(here, positions, at, kind, last)
        if not self.region.storage[boxes].all():
            return False
        here.wave.waits += 1
        return True

    def receive(self, here: Here, index: Any, kind: str) -> Vector:
        """Return what full boxes hold, 0 in threads that are not active."""
        positions, at = self._located(here, index, "receive")
        parts = np.dtype(kind).itemsize // 8 + 1
        words = [
            self.region.storage[self._boxes(here, positions, at, kind, part)]
            for part in range(parts)
        ]
        return here.spread(unpacked(words, kind))

    def _boxes(
        self, here: Here, positions: Vector, at: Vector, kind: str, part: int
    ) -> Vector:
        """Return where word ``part`` of the values in boxes ``at`` lies."""
        parts = np.dtype(kind).itemsize // 8 + 1
        boxes = (at - self.offset) * parts + part + self.offset
        self._bounds(here, boxes, positions, 1, "box")
        valid = self.region.valid
        if valid is not None and not valid[boxes].all():
            k = int(np.flatnonzero(~valid[boxes])[0])
            name = f"{self.name}[{boxes[k] - self.offset}]"
            here.fail(f"box {name} is not initialised", positions[k])
        return boxes

    def _counter_is_set(self, here: Here, position: int, element: int) -> None:
        valid = self.region.valid
        if valid is not None and not valid[element]:
            name = f"{self.name}[{element - self.offset}]"
            here.fail(f"counter {name} is not initialised", position)

    def _published(self, here: Here, element: int) -> Published:
        blocks = int(np.prod(here.wave.grid, dtype=np.int64))
        return self.region.counters.setdefault(int(element), Published(blocks))
