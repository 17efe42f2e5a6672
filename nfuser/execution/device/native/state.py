# SPDX-License-Identifier: Apache-2.0
"""The records of one fused function, where native code finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.execution.device.native import layout
from nfuser.execution.device.native.owned import Owned, address_of, new_words

if TYPE_CHECKING:
    from collections.abc import Iterator


class NativeState:
    """Buckets of records; native code walks them, Python adds and discards.

    A record is whole before a single write makes it known, and a single write unlinks
    it. Whatever a word names is held before the word is written, and let go after it
    was overwritten: an exception may arrive between any two statements. Who changes a
    state holds a lock. A state lives as long as its function: calls in flight count in
    its words.
    """

    def __init__(self) -> None:
        self._words = new_words([0] * layout.STATE_WORDS)
        # One for each bucket; the last one is of calls of many sizes.
        self._heads: list[Record | None] = [None] * _CHAINS
        self.owned = Owned(self._words, self._heads)

    def __len__(self) -> int:
        return sum(1 for bucket in range(_CHAINS) for _ in self._chain(bucket))

    @property
    def calls(self) -> int:
        """The number of calls that records served."""
        return int(self._words[layout.S_CALLS // 8])

    def add(self, record: Record) -> None:
        """Make a record known."""
        bucket = record.bucket
        record.follower = self._heads[bucket]
        self._heads[bucket] = record
        self._words[_FIRST + bucket] = record.address

    def discard(self, record: Record) -> None:
        """Forget a record, if it is known."""
        bucket, follower = record.bucket, record.follower
        chain = list(self._chain(bucket))
        if record not in chain:
            return
        place = chain.index(record)
        if place:
            chain[place - 1].follower = follower
        else:
            self._words[_FIRST + bucket] = follower.address if follower else 0
            self._heads[bucket] = follower
        record.follower = None

    def clear(self) -> None:
        """Forget all records, and the count of calls."""
        for bucket in range(_CHAINS):
            for record in [*self._chain(bucket)]:
                self.discard(record)
        self._words[layout.S_CALLS // 8] = 0

    def _chain(self, bucket: int) -> Iterator[Record]:
        record = self._heads[bucket]
        while record is not None:
            yield record
            record = record.follower


class Record:
    """The words of one record; ``keep`` holds all that they name.

    ``addresses`` are where the arguments lay, and the values of those that are numbers.
    An open one serves calls of many sizes. Native code holds the record that it
    follows.
    """

    __slots__ = ("_follower", "_header", "_is_open", "_keep", "addresses")

    def __init__(
        self,
        header: Any,
        keep: object,
        addresses: list[int],
        *,
        is_open: bool = False,
    ) -> None:
        self._header = header
        self._keep = keep
        self._is_open = is_open
        self._follower: Record | None = None
        self.addresses = addresses
        header[layout.R_OWNER // 8] = id(self)

    @property
    def bucket(self) -> int:
        """Where in a state the record belongs."""
        if self._is_open:
            return layout.BUCKETS
        return int(self._header[layout.R_HASH // 8]) % layout.BUCKETS

    def take_use(self) -> bool:
        """Tell whether a call followed the record since this was last asked."""
        was_used = bool(self._header[layout.R_USED // 8])
        self._header[layout.R_USED // 8] = 0
        return was_used

    @property
    def address(self) -> int:
        """Where the words lie."""
        return address_of(self._header)

    @property
    def follower(self) -> Record | None:
        """The next record in the same bucket; it is held."""
        return self._follower

    @follower.setter
    def follower(self, record: Record | None) -> None:
        # Until the word says so, what it names is held; then ``record`` is, by the
        # bucket or by the one that goes.
        self._header[layout.R_NEXT // 8] = record.address if record else 0
        self._follower = record


_FIRST = layout.S_BUCKETS // 8
_CHAINS = layout.BUCKETS + 1
