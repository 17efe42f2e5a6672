# SPDX-License-Identifier: Apache-2.0
"""The records of one fused function, where native code finds them."""

# NumPy's arrays of any shape.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np

from nfuser.device.native import layout


class State:
    """Buckets of records; native code walks them, Python adds and discards.

    A record is whole before a single write makes it known, and a single write unlinks
    it: a call that follows a record holds its owner. Who changes a state holds a lock.
    """

    def __init__(self) -> None:
        self.words = np.zeros(layout.STATE_WORDS, np.int64)
        self._chains: list[list[Record]] = [[] for _ in range(layout.BUCKETS)]

    def __len__(self) -> int:
        return sum(map(len, self._chains))

    @property
    def calls(self) -> int:
        """The number of calls that records served."""
        return int(self.words[layout.S_CALLS // 8])

    def add(self, record: Record) -> None:
        """Make a record known."""
        bucket = record.bucket
        self._chains[bucket].insert(0, record)
        record.follower = int(self.words[_FIRST + bucket])
        self.words[_FIRST + bucket] = record.address

    def discard(self, record: Record) -> None:
        """Forget a record, if it is known."""
        chain = self._chains[record.bucket]
        if record not in chain:
            return
        place = chain.index(record)
        if place:
            chain[place - 1].follower = record.follower
        else:
            self.words[_FIRST + record.bucket] = record.follower
        del chain[place]

    def clear(self) -> None:
        """Forget all records, and the count of calls."""
        for record in [r for chain in self._chains for r in chain]:
            self.discard(record)
        self.words[layout.S_CALLS // 8] = 0


class Record:
    """The words of one record; ``keep`` holds all that they name.

    ``addresses`` are where the arguments lay, and the values of those that are numbers.
    """

    __slots__ = ("_header", "_owner", "addresses")

    def __init__(self, header: Any, keep: object, addresses: list[int]) -> None:
        self._header = header
        self.addresses = addresses
        self._owner = [header, keep]
        header[layout.R_OWNER // 8] = id(self._owner)

    @property
    def bucket(self) -> int:
        """Where in a state the record belongs."""
        return int(self._header[layout.R_HASH // 8]) % layout.BUCKETS

    def take_use(self) -> bool:
        """Tell whether a call followed the record since this was last asked."""
        was_used = bool(self._header[layout.R_USED // 8])
        self._header[layout.R_USED // 8] = 0
        return was_used

    @property
    def address(self) -> int:
        """Where the words lie."""
        return self._header.ctypes.data

    @property
    def follower(self) -> int:
        """The address of the next record in the same bucket, or 0."""
        return int(self._header[layout.R_NEXT // 8])

    @follower.setter
    def follower(self, address: int) -> None:
        self._header[layout.R_NEXT // 8] = address


_FIRST = layout.S_BUCKETS // 8
