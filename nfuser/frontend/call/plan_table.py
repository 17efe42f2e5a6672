# SPDX-License-Identifier: Apache-2.0
"""The plans of one function by the key of a call: what every call looks into."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.execution.runtime.tables.eviction import ByUse, Gone
from nfuser.frontend.fuse.variants import MOST_VARIANTS, drop_dead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.execution.device.native.state import Record
    from nfuser.frontend.call.inputs.arguments import Arguments
    from nfuser.frontend.call.ready import Ready

MOST_RECORDS = 8  # of one key


class Entry:
    """The plans of one key; ``is_used`` since a search for one to forget passed.

    ``records`` are those of native code that serve such calls. More of them are of use
    where arrays are alike to Python only: their dtypes equal, but not the same object.
    """

    __slots__ = ("is_used", "may_record", "ready", "records")

    def __init__(self) -> None:
        self.ready: list[Ready] = []
        self.is_used = False
        self.records: list[Record] = []
        self.may_record = True

    def take_use(self) -> bool:
        """Tell whether it served a call since this was last asked."""
        used = [self.is_used, *(record.take_use() for record in self.records)]
        self.is_used = False
        return any(used)


class PlanTable:
    """Plans by key, at most ``NFUSER_CACHE_SIZE``; one not used lately goes first.

    To find takes no lock; to change does, the owner's.
    """

    def __init__(self) -> None:
        self._found: ByUse[tuple[object, ...], Entry] = ByUse()
        self._gone = Gone()

    def find(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Ready | None, tuple[Any, ...], Entry | None]:
        """Return the plan that serves a call, with the arrays that it captures.

        Third comes the entry it was found in.
        """
        found = self._found.get(arguments.key)
        if found is None:
            return None, (), None
        found.is_used = True
        for ready in found.ready:
            if ready.is_simple:
                return ready, (), found
            arrays = ready.still_holds(arguments, args, kwargs)
            if arrays is not None:
                return ready, arrays, found
        return None, (), found

    def add(self, key: tuple[object, ...], ready: Ready) -> list[Entry]:
        """Let later calls with this key find ``ready``; return what had to go."""
        dropped: list[Entry] = []
        found = self._found.setdefault(key, Entry())
        found.ready = [ready, *found.ready[: MOST_VARIANTS - 1]]
        found.may_record = len(found.records) < MOST_RECORDS
        size = config.current().cache_size
        if len(self._found) > size and not self._gone.is_back(key):
            self._renew()
            self._found.move_to_end(key)
        while (leaving := self._gone.drop(self._found, key)) is not None:
            dropped.append(self._found.pop(leaving))
        return dropped

    def _renew(self) -> None:
        """Let the oldest entry be one not used since it was last looked at."""
        for oldest in list(self._found):
            if not self._found[oldest].take_use():
                break
            self._found.move_to_end(oldest)

    def holds(self, key: tuple[object, ...], entry: Entry) -> bool:
        """Tell whether ``entry`` is still what calls with this key find."""
        return self._found.get(key) is entry

    def drop_dead(self) -> list[Entry]:
        """Forget plans for objects that are gone, and return them."""
        before = list(self._found.values())
        drop_dead(self._found)
        if len(before) == len(self._found):
            return []
        kept = set(self._found.values())
        return [entry for entry in before if entry not in kept]

    def clear(self) -> None:
        """Forget all plans."""
        self._found.clear()
        self._gone.clear()
