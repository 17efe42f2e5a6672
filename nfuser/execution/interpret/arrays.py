# SPDX-License-Identifier: Apache-2.0
"""Arrays that a kernel declares: one for each thread, or one for each block."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from nfuser.compiler.ops.elementwise.random_words import Bits, philox
from nfuser.execution.interpret.formats import widen
from nfuser.execution.interpret.races import Race, Tracker
from nfuser.execution.interpret.wave import Mask, Wave, is_uniform

Vector: TypeAlias = np.ndarray[Any, Any]


class LocalArray:
    """``cuda.local.array``: rows of vectors, each replaced whole, never changed.

    A value that was read from a row stays what it was when the row is assigned.
    """

    def __init__(self, name: str, length: int, dtype: str, wave: Wave) -> None:
        self.name, self.length = name, length
        self.dtype = np.dtype(dtype)
        self.rows: list[Any] = [None] * length
        self.valid: list[Any] = [False] * length  # True, False, or by thread
        self.size = wave.size

    def read(self, wave: Wave, k: Any, mask: Mask, line: int) -> Any:
        """Return element ``k`` in every thread."""
        if not is_uniform(k):
            return self._gather(wave, k, mask, line)
        k = self._checked(wave, int(k), line)
        wave.defined(None, self.valid[k], mask, line, f"{self.name}[{k}]")
        return self.rows[k]

    def write(self, wave: Wave, k: Any, value: Any, mask: Mask, line: int) -> None:
        """Assign ``value`` to element ``k`` in the active threads."""
        if not is_uniform(k):
            self._scatter(wave, k, value, mask, line)
            return
        k = self._checked(wave, int(k), line)
        if is_uniform(value):
            value = self.dtype.type(value)
        self.rows[k] = wave.merge(mask, value, self.rows[k])
        self.valid[k] = wave.both(self.valid[k], mask)

    def draw_packet(
        self,
        wave: Wave,
        k: Any,
        drawn: tuple[Any, Any, Any],
        mask: Mask,
        line: int,
        length: int,
    ) -> None:
        """Assign the random words of ``length`` places, from the first of ``drawn``."""
        place, key, call = drawn
        bits: dict[int, Bits] = {2: 16, 4: 32, 8: 64}
        word = philox(bits[self.dtype.itemsize])
        for n in range(length):
            found = word(place + np.uint64(n), key, call).astype(self.dtype)
            self.write(wave, k + n, found[()], mask, line)

    def _checked(self, wave: Wave, k: int, line: int) -> int:
        if k < 0:
            wave.fail(line, f"negative array index {self.name}[{k}]")
        if k >= self.length:
            wave.fail(line, f"out-of-bounds {self.name}[{k}] of {self.length} elements")
        return k

    def _gather(self, wave: Wave, k: Vector, mask: Mask, line: int) -> Vector:
        result = np.zeros(wave.size, self.dtype)
        for element in self._elements(wave, k, mask, line):
            here = (k == element) if mask is None else (k == element) & mask
            value = self.read(wave, int(element), here, line)
            result = np.where(here, value, result)
        return result

    def _scatter(
        self, wave: Wave, k: Vector, value: Any, mask: Mask, line: int
    ) -> None:
        for element in self._elements(wave, k, mask, line):
            here = (k == element) if mask is None else (k == element) & mask
            self.write(wave, int(element), value, here, line)

    def _elements(self, wave: Wave, k: Vector, mask: Mask, line: int) -> Vector:
        elements = np.unique(k if mask is None else k[mask])
        self._checked(wave, int(elements[0]), line)
        self._checked(wave, int(elements[-1]), line)
        return elements


class SharedArray:
    """``cuda.shared.array``: one row of ``length`` elements for each block."""

    def __init__(self, name: str, length: int, dtype: str, wave: Wave) -> None:
        self.name, self.length = name, length
        self.storage = np.zeros(length * wave.count, dtype)
        self.valid = np.zeros(self.storage.size, bool)
        self.tracker = Tracker(self.storage.size, reads=True)

    def read(self, wave: Wave, k: Any, mask: Mask, line: int) -> Vector:
        """Return element ``k`` of the block's array in every active thread."""
        positions, at = self._located(wave, k, mask, line)
        if not self.valid[at].all():
            wrong = int(np.flatnonzero(~self.valid[at])[0])
            name = f"{self.name}[{at[wrong] % self.length}]"
            who = wave.where(wave.lanes[positions[wrong]])
            wave.fail(line, f"read of shared {name}, which nothing wrote, in {who}")
        raced = self.tracker.read(wave, at, positions)
        if raced is not None:
            self._race(wave, at, positions, raced, line, "read")
        if mask is None:
            return self.storage[at]
        result = np.zeros(wave.size, self.storage.dtype)
        result[positions] = self.storage[at]
        return result

    def write(self, wave: Wave, k: Any, value: Any, mask: Mask, line: int) -> None:
        """Assign ``value`` to element ``k`` of the block's array."""
        positions, at = self._located(wave, k, mask, line)
        raced = self.tracker.write(wave, at, positions)
        if raced is not None:
            self._race(wave, at, positions, raced, line, "write")
        if mask is not None and not is_uniform(value):
            value = value[mask]
        self.storage[at] = value
        self.valid[at] = True

    def land(self, wave: Wave, k: Any, rows: Vector, mask: Mask, line: int) -> None:
        """Assign what threads copied to ``k`` and the elements after it."""
        for n, row in enumerate(rows):
            self.write(wave, k + n, row, mask, line)

    def take_packet(
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
        """Read ``length`` stored elements into ``array[k:]`` as one aligned access."""
        positions, at = self._located(wave, index, mask, line)
        wrong = np.flatnonzero((at - wave.slots[positions] * self.length) % length)
        if wrong.size:
            who = wave.where(wave.lanes[positions[wrong[0]]])
            wave.fail(line, f"misaligned packet of shared {self.name}, in {who}")
        for n in range(length):
            stored = self.read(wave, index + n, mask, line)
            array.write(wave, k + n, widen(suffix, stored), mask, line)

    def _located(
        self, wave: Wave, k: Any, mask: Mask, line: int
    ) -> tuple[Vector, Vector]:
        positions = wave.active(mask)
        if is_uniform(k):
            index = np.full(positions.size, int(k), np.int64)
        else:
            index = (k if mask is None else k[mask]).astype(np.int64)
        if index.min() < 0 or index.max() >= self.length:
            wrong = int(np.flatnonzero((index < 0) | (index >= self.length))[0])
            kind = "negative array index" if index[wrong] < 0 else "out-of-bounds"
            who = wave.where(wave.lanes[positions[wrong]])
            name = f"{self.name}[{index[wrong]}] of {self.length} elements"
            wave.fail(line, f"{kind}: shared {name}, in {who}")
        return positions, index + wave.slots[positions] * self.length

    def _race(
        self,
        wave: Wave,
        at: Vector,
        positions: Vector,
        race: Race,
        line: int,
        verb: str,
    ) -> None:
        wave.fail(
            line,
            f"race: {verb} of shared {self.name}[{at[race.number] % self.length}], "
            f"{race.text(wave)} with no barrier between, "
            f"in {wave.where(wave.lanes[positions[race.number]])}",
        )
