# SPDX-License-Identifier: Apache-2.0
"""The threads that run in lock step: masks, barriers, shuffles, and who is who.

A value of a kernel is a NumPy scalar (the same in all threads) or a vector with one
element a thread. A mask is None (all threads), False (none), or a vector of bool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from nfuser.errors import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Vector: TypeAlias = np.ndarray[Any, Any]
Mask: TypeAlias = Any  # None, False, or a vector of bool
WARP = 32  # of the machine that is imitated, which asks the compiler nothing


def is_uniform(value: Any) -> bool:
    """Return whether ``value`` is one number for all threads."""
    return not isinstance(value, np.ndarray) or value.ndim == 0


class Wave:
    """Some blocks of a grid, all of their threads at once."""

    def __init__(
        self,
        blocks: Sequence[int],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        lines: Sequence[str],
        shared_bytes: int = 0,
    ) -> None:
        self.grid, self.block, self.lines = grid, block, lines
        self.shared_bytes = shared_bytes
        self.threads = block[0] * block[1] * block[2]
        self.size = self.threads * len(blocks)
        self.blocks = np.asarray(blocks, np.int64)
        self.count = len(blocks)
        self.slots = np.repeat(np.arange(self.count), self.threads)
        within = np.tile(np.arange(self.threads), self.count)
        self.lanes = np.repeat(self.blocks, self.threads) * self.threads + within
        self.everyone = np.arange(self.size)
        # Barriers passed, by thread: of the block, and of the warp.
        self.epochs = np.zeros(self.size, np.int32)
        self.warp_epochs = np.zeros(self.size, np.int32)
        self.barriers = 0
        self.waits = 0  # that are over
        self.order: Any = None  # set where blocks wait for each other
        self.cluster: Any = None  # set where they reach each other's shared memory
        # Begun, and not awaited: who copies, and what lands.
        self.copies: list[tuple[Vector, Callable[[], None]]] = []

    def at(self, mask: Mask, line: int) -> Here:
        """Return where the kernel is."""
        return Here(self, mask, line)

    def coordinate(self, name: str, axis: int) -> Any:
        """Return ``threadIdx`` and the like along ``axis``, as int32."""
        if name == "blockDim":
            return np.int32(self.block[axis])
        if name == "gridDim":
            return np.int32(self.grid[axis])
        extents = self.block if name == "threadIdx" else self.grid
        within = self.lanes % self.threads
        number = within if name == "threadIdx" else self.lanes // self.threads
        stride = int(np.prod(extents[:axis], dtype=np.int64))
        return (number // stride % extents[axis]).astype(np.int32)

    def where(self, lane: Any) -> str:
        """Say which thread of the grid ``lane`` is."""
        block, thread = divmod(int(lane), self.threads)
        return f"block {_split(block, self.grid)} thread {_split(thread, self.block)}"

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise an error that shows source line ``line``."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        raise InterpreterError(f"line {line}: {text}\n  {message}")

    def active(self, mask: Mask) -> Vector:
        """Return the positions of the threads that ``mask`` lets through."""
        return self.everyone if mask is None else np.flatnonzero(mask)

    def narrow(self, mask: Mask, condition: Any) -> Mask:
        """Return the mask of those active threads where ``condition`` holds."""
        if is_uniform(condition):
            return mask if condition else False
        both = condition if mask is None else condition & mask
        count = np.count_nonzero(both)
        return False if count == 0 else None if count == self.size else both

    def otherwise(self, mask: Mask, condition: Any) -> Mask:
        """Return the mask of those active threads where ``condition`` fails."""
        if is_uniform(condition):
            return False if condition else mask
        return self.narrow(mask, ~condition)

    def merge(self, mask: Mask, new: Any, old: Any) -> Any:
        """Assign ``new`` to the active threads of a variable that was ``old``."""
        if mask is None or old is None:
            return new
        return np.where(mask, np.asarray(new), np.asarray(old))

    def both(self, defined: Any, mask: Mask) -> Any:
        """Return which threads have assigned a variable, after one more assignment."""
        return True if mask is None else defined | mask

    def defined(
        self, value: Any, defined: Any, mask: Mask, line: int, name: str
    ) -> Any:
        """Return ``value``, or fail if an active thread has not assigned it."""
        if defined is not True:
            missing = ~np.broadcast_to(defined, self.size)
            lost = np.flatnonzero(missing if mask is None else missing & mask)
            if lost.size:
                who = self.where(self.lanes[lost[0]])
                self.fail(line, f"{name} was not assigned in {who}")
        return value

    def integer(self, x: Any, dtype: str, mask: Mask, line: int) -> Any:
        """Return ``dtype(x)`` of index arithmetic; a value that does not fit fails."""
        kind = np.dtype(dtype)
        limits = np.iinfo(kind)
        values = np.asarray(x)
        if values.size and not (
            limits.min <= values.min() <= values.max() <= limits.max
        ):
            shown = values if mask is None or is_uniform(x) else values[mask]
            wrong = (shown < limits.min) | (shown > limits.max)
            if wrong.any():
                value = shown[wrong][0] if shown.ndim else shown
                self.fail(line, f"index overflow: {value} does not fit {dtype}")
        return kind.type(x) if is_uniform(x) else values.astype(kind)

    def await_copies(self, mask: Mask, line: int) -> None:
        """Let every copy that was begun land; only then does anybody see it."""
        for positions, land in self.copies:
            if mask is not None and not mask[positions].all():
                who = self.where(self.lanes[positions[~mask[positions]][0]])
                self.fail(line, f"{who} does not wait for what it copies")
            land()
        self.copies.clear()

    def syncthreads(self, mask: Mask, line: int) -> None:
        """Let every block pass a barrier; all of a block or none of it must arrive."""
        self.barriers += 1
        if mask is None:
            self.epochs += 1
        else:
            arrived = self._whole(mask, self.threads, line, "syncthreads", "block")
            self.epochs[np.repeat(arrived, self.threads)] += 1
        if self.order is not None:
            self.order.barrier()

    def syncwarp(self, mask: Mask, line: int) -> None:
        """Let every warp pass a barrier of its own."""
        if mask is None:
            self.warp_epochs += 1
        else:
            arrived = self._warps(mask, line, "syncwarp")
            self.warp_epochs[np.repeat(arrived, WARP)] += 1

    def _warps(self, mask: Mask, line: int, what: str) -> Vector:
        if self.threads % WARP:
            self.fail(line, f"{what} in blocks of {self.threads}, not of whole warps")
        if mask is None:
            return np.ones(self.size // WARP, bool)
        return self._whole(mask, WARP, line, what, "warp")

    def _whole(
        self, mask: Vector, group: int, line: int, what: str, name: str
    ) -> Vector:
        arrived = mask.reshape(-1, group)
        some = np.asarray(arrived.any(axis=1))
        every = np.asarray(arrived.all(axis=1))
        torn = np.flatnonzero(some & ~every)
        if torn.size:
            absent = self.lanes.reshape(-1, group)[torn[0]][~arrived[torn[0]]][0]
            reached = int(arrived[torn[0]].sum())
            self.fail(
                line,
                f"divergent {what}: {reached} of {group} threads of a {name} reach it, "
                f"{self.where(absent)} does not",
            )
        return every

    def shuffle_xor(self, value: Any, distance: Any, mask: Mask, line: int) -> Any:
        """Return the value of the lane whose number differs by ``distance``'s bits."""
        source = self._lane_numbers() ^ distance
        return self._exchange(value, source, mask, line, "shuffle_xor")

    def shuffle_down(self, value: Any, distance: Any, mask: Mask, line: int) -> Any:
        """Return the value of the lane ``distance`` above, or else one's own."""
        above = self._lane_numbers() + distance
        source = np.where(above < WARP, above, self._lane_numbers())
        return self._exchange(value, source, mask, line, "shuffle_down")

    def shuffle(self, value: Any, lane: Any, mask: Mask, line: int) -> Any:
        """Return the value of lane ``lane``."""
        return self._exchange(value, lane, mask, line, "shuffle")

    def _lane_numbers(self) -> Vector:
        return self.everyone % WARP

    def _exchange(
        self, value: Any, source: Any, mask: Mask, line: int, what: str
    ) -> Any:
        self._warps(mask, line, what)
        if is_uniform(value):
            return value
        return value[self.everyone - self._lane_numbers() + source % WARP]


class Here(NamedTuple):
    """Where a kernel is: its threads, which of them are active, and the line."""

    wave: Wave
    mask: Mask
    line: int

    def chosen(self, value: Any) -> Any:
        """Return ``value`` in the active threads; a number is one for all."""
        whole = self.mask is None or is_uniform(value)
        return value if whole else value[..., self.mask]

    def numbers(self, index: Any) -> tuple[Vector, Vector]:
        """Return the positions of the active threads, and the index in each."""
        positions = self.wave.active(self.mask)
        wide = np.broadcast_to(self.chosen(index), positions.shape)
        return positions, wide.astype(np.int64)

    def spread(self, values: Vector) -> Vector:
        """Return ``values`` of the active threads, and 0 in the others."""
        if self.mask is None:
            return values
        result = np.zeros((*values.shape[:-1], self.wave.size), values.dtype)
        result[..., self.mask] = values
        return result

    def fail(self, message: str, position: Any = None) -> NoReturn:
        """Raise an error that shows the line, and the thread at ``position``."""
        if position is not None:
            who = self.wave.where(self.wave.lanes[position])
            message = f"{message}, in {who}"
        self.wave.fail(self.line, message)


def _split(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x, rest = number % extents[0], number // extents[0]
    return x, rest % extents[1], rest // extents[1]
