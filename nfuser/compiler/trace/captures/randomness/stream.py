# SPDX-License-Identifier: Apache-2.0
"""The state of a stream of random numbers: a key, and the draw calls so far.

It lies in two words of memory, in which native code counts, too. That runs while no
Python does, and adds in one step; so does ``take`` from the moment it shares the words.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from nfuser.base.locks import ForkSafeLock
from nfuser.errors import RangeError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CALLS = (1 << 64) - 1  # a word holds how many there were


class Stream:
    """A key and the number of draw calls so far; ``nfuser.random`` makes them.

    ``maker`` is the trace in which it was made, if it was made in one.
    """

    def __init__(self, key: int, call: int = 0, maker: object = None) -> None:
        self._words = array("Q", (key, call))
        self._add: Callable[[int, int], int] | None = None
        self._maker = maker
        self._lock = ForkSafeLock()

    @property
    def words(self) -> tuple[int, int]:
        """The key, and the number of draw calls so far."""
        key, call = self._words
        return key, call

    def take(self, count: int) -> tuple[int, int]:
        """Return the key and the number of the first of ``count`` draw calls."""
        with self._lock:
            key, first = self._words
            if first + count > MOST_CALLS:
                message = "write default_rng(seed) anew: all its draw calls are made"
                raise RangeError(message)
            if self._add is not None:
                first = self._add(self._words.buffer_info()[0] + 8, count)
            else:
                self._words[1] = first + count
        return key, first

    def share(self, add: Callable[[int, int], int]) -> int:
        """Return where the words lie, for native code; ``add`` adds as it does."""
        with self._lock:
            self._add = add
            return self._words.buffer_info()[0]

    def place(self, key: int, call: int) -> None:
        """Set both words, at once for whoever reads them."""
        with self._lock:
            self._words[:] = array("Q", (key, call))

    def is_made_in(self, trace: object) -> bool:
        """Tell whether ``trace`` made this stream."""
        return self._maker is trace
