# SPDX-License-Identifier: Apache-2.0
"""The state of a stream of random numbers: a key, and the draw calls so far."""

from __future__ import annotations

from nfuser.errors import RangeError
from nfuser.locks import ForkSafeLock

MOST_CALLS = 1 << 64


class Stream:
    """A key and the number of draw calls so far; ``nfuser.random`` makes them.

    ``maker`` is the trace in which it was made, if it was made in one.
    """

    def __init__(self, key: int, call: int = 0, maker: object = None) -> None:
        self._key = key
        self._call = call
        self._maker = maker
        self._lock = ForkSafeLock()

    def take(self, count: int) -> tuple[int, int]:
        """Return the key and the number of the first of ``count`` draw calls."""
        with self._lock:
            first = self._call
            if first + count > MOST_CALLS:
                message = "write default_rng(seed) anew: all 2**64 draw calls are made"
                raise RangeError(message)
            self._call = first + count
        return self._key, first

    def is_made_in(self, trace: object) -> bool:
        """Tell whether ``trace`` made this stream."""
        return self._maker is trace
