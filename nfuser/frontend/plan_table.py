# SPDX-License-Identifier: Apache-2.0
"""The plans of one function by the key of a call: what every call looks into."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.frontend.variants import MOST_VARIANTS, drop_dead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.frontend.arguments import Arguments
    from nfuser.frontend.ready import Ready


class _Entry:
    """The plans of one key; ``is_used`` since a search for one to forget passed."""

    __slots__ = ("is_used", "ready")

    def __init__(self, ready: list[Ready]) -> None:
        self.ready = ready
        self.is_used = False


class PlanTable:
    """Plans by key, at most ``NFUSER_CACHE_SIZE``; one not used lately goes first.

    To find takes no lock; to change does, the owner's.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[object, ...], _Entry] = OrderedDict()

    def find(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Ready | None, tuple[Any, ...]]:
        """Return the plan that serves a call, with the arrays that it captures."""
        found = self._found.get(arguments.key)
        if found is None:
            return None, ()
        found.is_used = True
        for ready in found.ready:
            if ready.is_simple:
                return ready, ()
            arrays = ready.still_holds(arguments, args, kwargs)
            if arrays is not None:
                return ready, arrays
        return None, ()

    def add(self, key: tuple[object, ...], ready: Ready) -> None:
        """Let later calls with this key find ``ready``."""
        found = self._found.get(key)
        before = found.ready[: MOST_VARIANTS - 1] if found else []
        self._found[key] = _Entry([ready, *before])
        while len(self._found) > config.current().cache_size:
            # The oldest goes, unless it was used since it was last looked at.
            oldest, entry = self._found.popitem(last=False)
            if entry.is_used:
                entry.is_used = False
                self._found[oldest] = entry

    def drop_dead(self) -> None:
        """Forget plans for objects that are gone."""
        drop_dead(self._found)

    def clear(self) -> None:
        """Forget all plans."""
        self._found.clear()
