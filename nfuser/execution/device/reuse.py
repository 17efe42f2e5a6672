# SPDX-License-Identifier: Apache-2.0
"""Memory of large NumPy outputs, used again when nobody holds it any more.

A fresh array of megabytes costs a page fault for each page, as much time as many a
kernel. So an output lies in a *loan*, the base of its array: NumPy keeps the base alive
for the array, its views and whatever shares memory with them. When the last of them is
gone the loan is collected, and its memory waits here for the next output of its size.

Such an array does not own its data: ``resize`` refuses, as for any view; all else is as
with any array. What waits is bounded, the longest unused goes first.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.dtypes import DType

LEAST_BYTES = 1 << 18
"""Size below which a page fault or two cost less than the bookkeeping (2 us)."""

_ALIGNMENT = 64  # bytes of a cache line: no vector store lies across two
_APART = (2048, 1024, 3008, 1536, 2560)
"""Bytes between where the memory begins and where an array in it does, by turns.

Allocators lay arrays side by side or at the beginnings of pages. Then the distance from
an input of whole pages to its output is whole pages but for some bytes, and a processor
that compares 20 bits of an address takes the next load for one of what has just been
stored, and waits: a loop of ten divisions took three times as long. So it is between
two such arrays, of which a loop writes now one, now the other.
"""
_STEPS = 8  # sizes kept apart between one power of two and the next
_FEW = 4
"""Loans that may wait uncounted: a program that uses one or two outputs again and again
calls little Python, which costs 50 us where it is in no cache."""


_places = cycle(_APART)


def size_class(size: int) -> int:
    """Return ``size`` rounded up by at most an eighth: what is kept apart.

    >>> size_class(1 << 20), size_class((1 << 20) + 1)
    (1048576, 1179648)
    """
    step = max(1 << size.bit_length() - 1, _STEPS) // _STEPS
    return -(-size // step) * step


class ReusedBlock(NamedTuple):
    """Memory with its first aligned address."""

    size: int
    address: int
    memory: Any


def _new_block(size: int) -> ReusedBlock:
    apart = next(_places)
    memory = np.empty(size + apart + _ALIGNMENT, np.uint8)
    address = memory.ctypes.data + apart
    return ReusedBlock(size, address + -address % _ALIGNMENT, memory)


class ReusePool:
    """Memory that was lent and came back, at most ``most_bytes`` of it.

    Loans come back at any moment, out of the collector in the middle of anything, and
    from any thread. There is no lock: each step on the queue is one of C's, and whoever
    finds that another was faster does without.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._waiting: deque[ReusedBlock] = deque()  # the longest unused first
        self._is_counted = False  # whether there may be more than a few small ones

    def take(self, size: int) -> ReusedBlock:
        """Return memory of ``size`` bytes, used before or fresh."""
        waiting = self._waiting
        try:
            block = waiting.pop()
        except IndexError:
            return _new_block(size)
        if block.size == size:
            return block
        waiting.append(block)
        return self._find(size)

    def _find(self, size: int) -> ReusedBlock:
        for block in reversed(list(self._waiting)):
            if block.size == size:
                try:
                    self._waiting.remove(block)
                except (ValueError, IndexError):  # another thread took it
                    continue
                return block
        return _new_block(size)

    def give_back(self, block: ReusedBlock) -> None:
        """Keep a block to which nobody has a reference."""
        waiting = self._waiting
        waiting.append(block)
        is_small = block.size * _FEW <= self.most_bytes
        if is_small and not self._is_counted and len(waiting) <= _FEW:
            return
        excess = self.waiting_bytes - self.most_bytes
        while excess > 0:
            try:
                excess -= waiting.popleft().size
            except IndexError:
                break
        self._is_counted = len(waiting) > _FEW or not is_small

    @property
    def waiting_bytes(self) -> int:
        """What is kept and in nobody's use."""
        return sum(block.size for block in list(self._waiting))

    def clear(self) -> None:
        """Return all that waits to the system."""
        self._waiting.clear()
        self._is_counted = False


def _give_back(loan: Any) -> None:
    loan.pool.give_back(loan.block)


@cache
def _loan_type(size: int) -> Any:
    """Return the type of loans of ``size`` bytes; there are few sizes."""
    body = {"__slots__": ("block", "pool"), "__del__": _give_back}
    return type("Loan", (ctypes.c_uint8 * size,), body)


def reusing_allocator(
    shape: tuple[int, ...], dtype: DType, pool: ReusePool | None = None
) -> Callable[[], Any]:
    """Return a function that makes arrays in C order, in memory that was lent before.

    >>> from nfuser.compiler.dtypes import DType
    >>> make = reusing_allocator((1 << 10, 1 << 10), DType.F32, ReusePool(1 << 23))
    >>> y = make()
    >>> address = y.ctypes.data
    >>> view = y[1:].T
    >>> del y
    >>> make().ctypes.data == address  # the view still holds it
    False
    >>> del view
    >>> address in (make().ctypes.data, make().ctypes.data)
    True
    """
    source = POOL if pool is None else pool
    size = size_class(dtype.itemsize * int(np.prod(shape, dtype=np.int64)))
    lend, element, array = _loan_type(size).from_address, dtype.numpy, np.ndarray

    def make() -> Any:
        block = source.take(size)
        loan = lend(block.address)
        loan.block, loan.pool = block, source
        return array(shape, element, loan)

    return make


def _most_bytes() -> int:
    """Return a sixteenth of the memory there is, but no more than 1 GiB."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # the last on Windows
        memory = 0
    return min(memory // 16, 1 << 30)


POOL = ReusePool(_most_bytes())
