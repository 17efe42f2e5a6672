# SPDX-License-Identifier: Apache-2.0
"""Global memory: bounds, initialisation, alignment, races, and counting.

A region is one storage array; a pointer is one argument that points into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from nfuser.execution.interpret.formats import narrow, widen
from nfuser.execution.interpret.races import Published, Race, Tracker
from nfuser.execution.interpret.wave import Mask, Wave, is_uniform

if TYPE_CHECKING:
    from nfuser.execution.interpret.arrays import LocalArray, SharedArray
    from nfuser.execution.interpret.buffer import PointerUse

Vector: TypeAlias = np.ndarray[Any, Any]

FULL = np.uint64(1 << 32)  # above the word in a box that is full


def _words(values: Vector) -> list[Vector]:
    """Return the bits of ``values`` as words of 32 bits, the low ones first."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"u{size}").astype(np.uint64)
    low = bits & np.uint64(0xFFFFFFFF)
    return [low] if size < 8 else [low, bits >> np.uint64(32)]


def _unpacked(boxes: list[Vector], kind: str) -> Vector:
    """Return the values of which ``boxes`` hold the words."""
    size = np.dtype(kind).itemsize
    bits = boxes[0] & np.uint64(0xFFFFFFFF)
    if size == 8:
        bits = bits | boxes[1] << np.uint64(32)
    return bits.astype(f"u{size}").view(kind)


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
        self, wave: Wave, index: Any, mask: Mask, line: int, verb: str, length: int = 1
    ) -> tuple[Vector, Vector]:
        """Return the active threads' positions and elements, checked for bounds."""
        positions = wave.active(mask)
        if is_uniform(index):
            at = np.full(positions.size, int(index), np.int64)
        else:
            at = (index if mask is None else index[mask]).astype(np.int64)
        at += self.offset
        self._bounds(wave, at, positions, length, line, verb)
        return positions, at

    def _bounds(
        self,
        wave: Wave,
        at: Vector,
        positions: Vector,
        length: int,
        line: int,
        verb: str,
    ) -> None:
        size = self.region.storage.size
        if at.min() >= 0 and at.max() + length <= size:
            return
        k = int(np.flatnonzero((at < 0) | (at + length > size))[0])
        last = "" if length == 1 else f":{at[k] - self.offset + length}"
        self._fail(
            wave,
            positions[k],
            line,
            f"out-of-bounds {verb} of {self.name}[{at[k] - self.offset}{last}], "
            f"which has {size - self.offset} elements",
        )

    def _fail(self, wave: Wave, position: Any, line: int, message: str) -> NoReturn:
        wave.fail(line, f"{message}, in {wave.where(wave.lanes[position])}")

    def _read(
        self, wave: Wave, at: Vector, positions: Vector, line: int, *, volatile: bool
    ) -> Vector:
        """Return the stored elements ``at``, after every check of a read."""
        region = self.region
        if region.valid is not None and not region.valid[at].all():
            k = int(np.flatnonzero(~region.valid[at])[0])
            element = at[k] - self.offset
            message = f"read of {self.name}[{element}], which nothing wrote"
            self._fail(wave, positions[k], line, message)
        if region.tracker is not None:
            self._read_in_order(wave, at, positions, line, volatile=volatile)
        self.access.elements_read += at.size
        self.touched[at] = True
        return region.storage[at]

    def _read_in_order(
        self, wave: Wave, at: Vector, positions: Vector, line: int, *, volatile: bool
    ) -> None:
        tracker = self.region.tracker
        assert tracker is not None
        raced = tracker.read(wave, at, positions)
        if raced is not None:
            self._race(wave, at, positions, raced, line, "read")
        if not volatile and tracker.written(at).any():
            k = int(np.flatnonzero(tracker.written(at))[0])
            element = f"{self.name}[{at[k] - self.offset}]"
            message = f"load of {element}, which this kernel wrote: use load_volatile"
            self._fail(wave, positions[k], line, message)

    def _race(
        self,
        wave: Wave,
        at: Vector,
        positions: Vector,
        race: Race,
        line: int,
        verb: str,
    ) -> NoReturn:
        element = f"{self.name}[{at[race.number] - self.offset}]"
        message = (
            f"race: {verb} of {element}, {race.text(wave)} with no barrier or ticket"
        )
        self._fail(wave, positions[race.number], line, f"{message} between")

    def _write(
        self, wave: Wave, at: Vector, positions: Vector, values: Any, line: int
    ) -> None:
        region = self.region
        if region.tracker is not None:
            raced = region.tracker.write(wave, at, positions)
            if raced is not None:
                self._race(wave, at, positions, raced, line, "write")
        if region.valid is not None:
            region.valid[at] = True
        self.access.elements_written += at.size
        region.storage[at] = values

    def load(
        self, wave: Wave, index: Any, mask: Mask, line: int, suffix: str, volatile: bool
    ) -> Vector:
        """Return the element ``index`` in every active thread, 0 in the others."""
        positions, at = self._located(wave, index, mask, line, "read")
        stored = self._read(wave, at, positions, line, volatile=volatile)
        values = widen(suffix, stored)
        if mask is None:
            return values
        result = np.zeros(wave.size, values.dtype)
        result[positions] = values
        return result

    def store(
        self, wave: Wave, index: Any, value: Any, mask: Mask, line: int, suffix: str
    ) -> None:
        """Write ``value`` to the element ``index`` in every active thread."""
        positions, at = self._located(wave, index, mask, line, "write")
        stored = narrow(suffix, value)
        if mask is not None and not is_uniform(stored):
            stored = stored[mask]
        self._write(wave, at, positions, stored, line)

    def _packet(
        self, wave: Wave, index: Any, length: int, mask: Mask, line: int, verb: str
    ) -> tuple[Vector, Vector, Vector]:
        """Return positions and elements of a packet, as (length, active) matrices."""
        positions, first = self._located(wave, index, mask, line, verb, length)
        size = self.region.storage.itemsize
        wrong = np.flatnonzero((self.address + first * size) % (length * size))
        if wrong.size:
            element = first[wrong[0]] - self.offset
            message = (
                f"misaligned packet: {verb} of {length * size} bytes at "
                f"{self.name}[{element}]"
            )
            self._fail(wave, positions[wrong[0]], line, message)
        at = first + np.arange(length)[:, None]
        return positions, at.ravel(), np.tile(positions, length)

    def load_packet(
        self,
        wave: Wave,
        array: LocalArray,
        k: Any,
        index: Any,
        mask: Mask,
        line: int,
        length: int,
        suffix: str,
    ) -> None:
        """Read ``length`` elements into ``array[k:]`` as one aligned access."""
        positions, at, owners = self._packet(wave, index, length, mask, line, "read")
        stored = self._read(wave, at, owners, line, volatile=False)
        self.access.packet_reads += positions.size
        values = widen(suffix, stored).reshape(length, -1)
        self._fill(wave, array, k, values, positions, mask, line)

    def load_packet_across(
        self,
        wave: Wave,
        array: LocalArray,
        k: Any,
        index: Any,
        mask: Mask,
        line: int,
        length: int,
        suffix: str,
    ) -> None:
        """Read ``length`` elements at any place into ``array[k:]``, as two packets."""
        first = self.address // self.region.storage.itemsize + self.offset
        past = (first % length + index) % length
        whole = (index - past, index + length - 1 - (past + length - 1) % length)
        packets = [self._packet(wave, x, length, mask, line, "read") for x in whole]
        positions = packets[0][0]
        found = [
            self._read(wave, at, owners, line, volatile=False).reshape(length, -1)
            for _, at, owners in packets
        ]
        self.access.packet_reads += 2 * positions.size
        begin = np.broadcast_to(past, wave.size)[positions]
        both = np.concatenate(found)
        taken = np.take_along_axis(both, begin + np.arange(length)[:, None], 0)
        values = widen(suffix, taken.ravel()).reshape(length, -1)
        self._fill(wave, array, k, values, positions, mask, line)

    def _fill(
        self,
        wave: Wave,
        array: LocalArray,
        k: Any,
        values: Any,
        positions: Vector,
        mask: Mask,
        line: int,
    ) -> None:
        for n, taken in enumerate(values):
            row = taken
            if mask is not None:
                row = np.zeros(wave.size, values.dtype)
                row[positions] = taken
            array.write(wave, k + n, row, mask, line)

    def copy_packet(
        self,
        wave: Wave,
        array: SharedArray,
        k: Any,
        index: Any,
        mask: Mask,
        line: int,
        length: int,
    ) -> None:
        """Begin to copy ``length`` elements to ``array[k:]``."""
        positions, at, owners = self._packet(wave, index, length, mask, line, "copy")
        stored = self._read(wave, at, owners, line, volatile=False)
        self.access.packet_reads += positions.size
        rows = np.zeros((length, wave.size), stored.dtype)
        rows[:, positions] = stored.reshape(length, -1)
        wave.copies.append((positions, lambda: array.land(wave, k, rows, mask, line)))

    def store_packet(
        self,
        wave: Wave,
        index: Any,
        array: LocalArray,
        k: Any,
        mask: Mask,
        line: int,
        length: int,
        suffix: str,
    ) -> None:
        """Write ``array[k:]`` to ``length`` elements as one aligned access."""
        positions, at, owners = self._packet(wave, index, length, mask, line, "write")
        rows = [array.read(wave, k + n, mask, line) for n in range(length)]
        values = np.stack([np.broadcast_to(row, wave.size) for row in rows])
        if mask is not None:
            values = values[:, mask]
        self._write(wave, at, owners, narrow(suffix, values).ravel(), line)
        self.access.packet_writes += positions.size

    def ticket(self, wave: Wave, index: Any, mask: Mask, line: int) -> Vector:
        """Add 1 to a counter, thread after thread; return the old values."""
        positions, at = self._located(wave, index, mask, line, "ticket")
        result = np.zeros(wave.size, np.int32)
        storage = self.region.storage
        for position, element in zip(positions, at, strict=True):
            self._counter_is_set(wave, position, element, line)
            result[position] = storage[element].astype(np.int32)
            storage[element] += np.uint32(1)
            counter = self._published(wave, element)
            wave.order.take(counter, int(wave.lanes[position]), int(position))
        return result

    def reset(self, wave: Wave, index: Any, mask: Mask, line: int) -> None:
        """Set a counter to 0."""
        _, at = self._located(wave, index, mask, line, "reset")
        self.region.storage[at] = 0
        if self.region.valid is not None:
            self.region.valid[at] = True

    def ready(self, wave: Wave, index: Any, least: Any, mask: Mask, line: int) -> bool:
        """Return whether counters have reached ``least``, and acquire them if so."""
        positions, at = self._located(wave, index, mask, line, "wait")
        for position, element in zip(positions, at, strict=True):
            self._counter_is_set(wave, position, element, line)
        wanted = least if is_uniform(least) or mask is None else least[mask]
        if not np.all(self.region.storage[at].astype(np.int64) >= wanted):
            return False
        for element in np.unique(at):
            lanes = wave.lanes[positions[at == element]]
            wave.order.acquire(self._published(wave, element), lanes)
        wave.waits += 1
        return True

    def post(
        self, wave: Wave, index: Any, value: Any, kind: str, mask: Mask, line: int
    ) -> None:
        """Fill boxes that are empty."""
        positions, at = self._located(wave, index, mask, line, "post", 1)
        values = np.broadcast_to(np.asarray(value, kind), wave.size)[positions]
        for part, words in enumerate(_words(values)):
            boxes = self._boxes(wave, positions, at, kind, part, line)
            full = np.flatnonzero(self.region.storage[boxes])
            if full.size or np.unique(boxes).size < boxes.size:
                k = int(full[0]) if full.size else 0
                name = f"{self.name}[{boxes[k] - self.offset}]"
                self._fail(wave, positions[k], line, f"box {name} is filled twice")
            self.region.storage[boxes] = words | FULL

    def full(self, wave: Wave, index: Any, kind: str, mask: Mask, line: int) -> bool:
        """Return whether every box that threads wait for is full."""
        positions, at = self._located(wave, index, mask, line, "receive")
        last = np.dtype(kind).itemsize // 8
        boxes = self._boxes(wave, positions, at, kind, last, line)
        if not self.region.storage[boxes].all():
            return False
        wave.waits += 1
        return True

    def receive(
        self, wave: Wave, index: Any, kind: str, mask: Mask, line: int
    ) -> Vector:
        """Return what full boxes hold, 0 in threads that are not active."""
        positions, at = self._located(wave, index, mask, line, "receive")
        parts = np.dtype(kind).itemsize // 8 + 1
        words = [
            self.region.storage[self._boxes(wave, positions, at, kind, part, line)]
            for part in range(parts)
        ]
        result = np.zeros(wave.size, kind)
        result[positions] = _unpacked(words, kind)
        return result

    def _boxes(
        self, wave: Wave, positions: Vector, at: Vector, kind: str, part: int, line: int
    ) -> Vector:
        """Return where word ``part`` of the values in boxes ``at`` lies."""
        parts = np.dtype(kind).itemsize // 8 + 1
        boxes = (at - self.offset) * parts + part + self.offset
        self._bounds(wave, boxes, positions, 1, line, "box")
        valid = self.region.valid
        if valid is not None and not valid[boxes].all():
            k = int(np.flatnonzero(~valid[boxes])[0])
            name = f"{self.name}[{boxes[k] - self.offset}]"
            self._fail(wave, positions[k], line, f"box {name} is not initialised")
        return boxes

    def _counter_is_set(
        self, wave: Wave, position: int, element: int, line: int
    ) -> None:
        valid = self.region.valid
        if valid is not None and not valid[element]:
            name = f"{self.name}[{element - self.offset}]"
            self._fail(wave, position, line, f"counter {name} is not initialised")

    def _published(self, wave: Wave, element: int) -> Published:
        blocks = int(np.prod(wave.grid, dtype=np.int64))
        return self.region.counters.setdefault(int(element), Published(blocks))
