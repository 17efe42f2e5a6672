# SPDX-License-Identifier: Apache-2.0
"""Which entry of a full table goes: the one not used for longest, but in a cycle."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import nfuser.config as config

if TYPE_CHECKING:
    from collections.abc import Hashable

K = TypeVar("K", bound="Hashable")
V = TypeVar("V")

TIMES = 4  # as many keys as the table holds are known to have gone


class ByUse(dict[K, V]):
    """A table in the order of use, which lists no key that is gone.

    An ``OrderedDict`` does while it is cleared: what runs as its values go, another
    thread that forks among them, finds such keys in its order. A key that is being
    moved is missing meanwhile: who looks without the lock looks again under it.
    """

    def move_to_end(self, key: K) -> None:
        """Let ``key`` be the one that was used last."""
        self[key] = self.pop(key)


class Gone:
    """The keys that had to go from a table lately, by their hashes.

    In a cycle of more keys than the table holds the one not used for longest is the one
    that comes next: a table that drops it serves nobody. Such a cycle is one in which a
    key comes back that had to go. Then whatever came just before it goes, and the
    others serve each round.
    """

    def __init__(self) -> None:
        self._lately: OrderedDict[int, None] = OrderedDict()

    def drop(self, table: dict[K, Any], came: K) -> K | None:
        """Return the key that has to go now that ``came`` was added; None if none."""
        size = config.current().cache_size
        if len(table) <= size:
            return None
        leaving = next(iter(table))
        if hash(came) in self._lately and len(table) > 1:
            leaving = next(k for k in islice(reversed(table), 2) if k != came)
        self._lately[hash(leaving)] = None
        self._lately.move_to_end(hash(leaving))
        while len(self._lately) > TIMES * size:
            self._lately.popitem(last=False)
        return leaving

    def is_back(self, came: Hashable) -> bool:
        """Tell whether a key had to go lately."""
        return hash(came) in self._lately

    def clear(self) -> None:
        """Forget what has gone."""
        self._lately.clear()
