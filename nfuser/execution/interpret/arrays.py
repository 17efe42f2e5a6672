# SPDX-License-Identifier: Apache-2.0
"""Arrays that a kernel declares: one for each thread, or one for each block.

Blocks of a cluster put words into each other's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nfuser.compiler.ops.elementwise.random_words import Bits, philox
from nfuser.execution.interpret.formats import unpacked, widen, words_of
from nfuser.execution.interpret.races import Race, Tracker
from nfuser.execution.interpret.wave import is_uniform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.execution.interpret.wave import Here, Wave

Vector: TypeAlias = np.ndarray[Any, Any]
_WORD = np.uint64(0xFFFFFFFF)  # of a box, under the number of its turn


class _Array:
    """What is written element by element."""

    def write(self, here: Here, k: Any, value: Any) -> None:
        raise NotImplementedError

    def land(self, here: Here, k: Any, rows: Vector) -> None:
        """Assign what threads copied to ``k`` and the elements after it."""
        for n, row in enumerate(rows):
            self.write(here, k + n, row)


class LocalArray(_Array):
    """``cuda.local.array``: rows of vectors, each replaced whole, never changed.

    A value that was read from a row stays what it was when the row is assigned.
    """

    def __init__(self, name: str, length: int, dtype: str, wave: Wave) -> None:
        self.name, self.length = name, length
        self.dtype = np.dtype(dtype)
        self.rows: list[Any] = [None] * length
        self.valid: list[Any] = [False] * length  # True, False, or by thread
        self.size = wave.size

    def read(self, here: Here, k: Any) -> Any:
        """Return element ``k`` in every thread."""
        if not is_uniform(k):
            return self._gather(here, k)
        k = self._checked(here, int(k))
        where = here.mask, here.line, f"{self.name}[{k}]"
        here.wave.defined(None, self.valid[k], *where)
        return self.rows[k]

    def write(self, here: Here, k: Any, value: Any) -> None:
        """Assign ``value`` to element ``k`` in the active threads."""
        if not is_uniform(k):
            self._scatter(here, k, value)
            return
        k = self._checked(here, int(k))
        if is_uniform(value):
            value = self.dtype.type(value)
        self.rows[k] = here.wave.merge(here.mask, value, self.rows[k])
        self.valid[k] = here.wave.both(self.valid[k], here.mask)

    def draw_packet(
        self, here: Here, k: Any, drawn: tuple[Any, Any, Any], length: int
    ) -> None:
        """Assign the random words of ``length`` places, from the first of ``drawn``."""
        place, key, call = drawn
        bits: dict[int, Bits] = {2: 16, 4: 32, 8: 64}
        word = philox(bits[self.dtype.itemsize])
        for n in range(length):
            found = word(place + np.uint64(n), key, call).astype(self.dtype)
            self.write(here, k + n, found[()])

    def _checked(self, here: Here, k: int) -> int:
        if k < 0:
            here.fail(f"negative array index {self.name}[{k}]")
        if k >= self.length:
            here.fail(f"out-of-bounds {self.name}[{k}] of {self.length} elements")
        return k

    def _gather(self, here: Here, k: Vector) -> Vector:
        result = np.zeros(here.wave.size, self.dtype)
        for element, there in self._elements(here, k):
            value = self.read(there, element)
            result = np.where(there.mask, value, result)
        return result

    def _scatter(self, here: Here, k: Vector, value: Any) -> None:
        for element, there in self._elements(here, k):
            self.write(there, element, value)

    def _elements(self, here: Here, k: Vector) -> Iterator[tuple[int, Here]]:
        """Yield the elements that are meant, each with the threads that mean it."""
        elements = [int(element) for element in np.unique(here.chosen(k))]
        self._checked(here, elements[0])
        self._checked(here, elements[-1])
        for element in elements:
            meant = k == element
            mask = meant if here.mask is None else meant & here.mask
            yield element, here._replace(mask=mask)


class SharedArray(_Array):
    """``cuda.shared.array``: one row of ``length`` elements for each block."""

    def __init__(self, name: str, length: int, dtype: str, wave: Wave) -> None:
        self.name, self.length = name, length
        self.storage = np.zeros(length * wave.count, dtype)
        self.valid = np.zeros(self.storage.size, bool)
        self.tracker = Tracker(self.storage.size, reads=True)
        if wave.cluster is not None:
            wave.cluster.hold(wave, self)

    def read(self, here: Here, k: Any) -> Vector:
        """Return element ``k`` of the block's array in every active thread."""
        positions, at = self._located(here, k)
        if not self.valid[at].all():
            wrong = int(np.flatnonzero(~self.valid[at])[0])
            name = f"{self.name}[{at[wrong] % self.length}]"
            here.fail(f"read of shared {name}, which nothing wrote", positions[wrong])
        raced = self.tracker.read(here.wave, at, positions)
        if raced is not None:
            self._race(here, at, positions, raced, "read")
        return here.spread(self.storage[at])

    def write(self, here: Here, k: Any, value: Any) -> None:
        """Assign ``value`` to element ``k`` of the block's array."""
        positions, at = self._located(here, k)
        raced = self.tracker.write(here.wave, at, positions)
        if raced is not None:
            self._race(here, at, positions, raced, "write")
        self.storage[at] = here.chosen(value)
        self.valid[at] = True

    def take_packet(
        self,
        here: Here,
        array: LocalArray,
        k: Any,
        index: Any,
        length: int,
        suffix: str,
    ) -> None:
        """Read ``length`` stored elements into ``array[k:]`` as one aligned access."""
        positions, at = self._located(here, index)
        wrong = np.flatnonzero((at - here.wave.slots[positions] * self.length) % length)
        if wrong.size:
            where = positions[wrong[0]]
            here.fail(f"misaligned packet of shared {self.name}", where)
        for n in range(length):
            stored = self.read(here, index + n)
            array.write(here, k + n, widen(suffix, stored))

    def _located(self, here: Here, k: Any) -> tuple[Vector, Vector]:
        positions, index = here.numbers(k)
        if index.min() < 0 or index.max() >= self.length:
            wrong = int(np.flatnonzero((index < 0) | (index >= self.length))[0])
            kind = "negative array index" if index[wrong] < 0 else "out-of-bounds"
            name = f"{self.name}[{index[wrong]}] of {self.length} elements"
            here.fail(f"{kind}: shared {name}", positions[wrong])
        return positions, index + here.wave.slots[positions] * self.length

    def _race(
        self, here: Here, at: Vector, positions: Vector, race: Race, verb: str
    ) -> None:
        here.fail(
            f"race: {verb} of shared {self.name}[{at[race.number] % self.length}], "
            f"{race.text(here.wave)} with no barrier between",
            positions[race.number],
        )


class Cluster:
    """Blocks along the second axis of a grid, each a wave of its own."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._arrays: dict[tuple[str, int], SharedArray] = {}
        self._arrived: set[int] = set()

    def hold(self, wave: Wave, array: SharedArray) -> None:
        """Let the other blocks of the cluster find what a block declares."""
        self._arrays[array.name, _rank(wave)] = array

    def has_met(self, here: Here) -> bool:
        """Return whether all blocks have come to the one barrier of a kernel."""
        if here.mask is not None:
            here.fail("some threads of a block do not come to the cluster's barrier")
        if _rank(here.wave) not in self._arrived:
            self._arrived.add(_rank(here.wave))
            here.wave.syncthreads(None, here.line)
        if len(self._arrived) < self.size:
            return False
        here.wave.waits += 1
        return True

    def post(
        self, here: Here, name: str, index: Any, block: Any, value: Any, *form: Any
    ) -> None:
        """Put a word of a turn into a box of each thread's block ``block``."""
        kind, turn = form
        if len(self._arrived) < self.size:
            here.fail("a block posts before the blocks of its cluster have met")
        positions, at = here.numbers(index)
        _, blocks = here.numbers(block)
        _, turns = here.numbers(turn)
        values = here.chosen(np.broadcast_to(np.asarray(value, kind), here.wave.size))
        marks = turns.astype(np.uint64) << np.uint64(32)
        for part, words in enumerate(words_of(values)):
            for k, rank in enumerate(blocks):
                boxes = self._boxes(here, name, int(rank), at[k : k + 1], kind, part)
                before = self._arrays[name, int(rank)].storage[boxes] >> np.uint64(32)
                if before[0] >= turns[k]:
                    text = f"box {name}[{boxes[0]}] of block {rank}"
                    here.fail(f"{text} holds turn {before[0]} already", positions[k])
                box = words[k] | marks[k]
                self._arrays[name, int(rank)].storage[boxes] = box

    def is_full(self, here: Here, name: str, index: Any, kind: str, turn: Any) -> bool:
        """Return whether every box that threads wait for is of this turn."""
        turns = here.numbers(turn)[1].astype(np.uint64)
        for part in range(np.dtype(kind).itemsize // 8 + 1):
            positions, found = self._found(here, name, index, kind, part)
            of = found >> np.uint64(32)
            if (of > turns).any():
                k = int(np.flatnonzero(of > turns)[0])
                here.fail(f"a box of {name} is of turn {of[k]} already", positions[k])
            if (of < turns).any():
                return False
        here.wave.waits += 1
        return True

    def receive(self, here: Here, name: str, index: Any, kind: str, _: Any) -> Vector:
        """Return what full boxes hold, 0 in threads that are not active."""
        parts = range(np.dtype(kind).itemsize // 8 + 1)
        found = [self._found(here, name, index, kind, part)[1] for part in parts]
        return here.spread(unpacked([box & _WORD for box in found], kind))

    def _found(
        self, here: Here, name: str, index: Any, kind: str, part: int
    ) -> tuple[Vector, Vector]:
        positions, at = here.numbers(index)
        rank = _rank(here.wave)
        boxes = self._boxes(here, name, rank, at, kind, part)
        return positions, self._arrays[name, rank].storage[boxes]

    def _boxes(
        self, here: Here, name: str, rank: int, at: Vector, kind: str, part: int
    ) -> Vector:
        """Return where word ``part`` of the values in boxes ``at`` of a block lies."""
        if not 0 <= rank < self.size:
            here.fail(f"block {rank} of a cluster of {self.size}")
        array = self._arrays[name, rank]
        boxes = at * (np.dtype(kind).itemsize // 8 + 1) + part
        if boxes.min() < 0 or boxes.max() >= array.length:
            here.fail(f"out-of-bounds box of shared {name}, of {array.length}")
        if not array.valid[boxes].all():
            here.fail(f"a box of {name} was not emptied before")
        return boxes


def _rank(wave: Wave) -> int:
    return int(wave.blocks[0]) // wave.grid[0] % wave.grid[1]
