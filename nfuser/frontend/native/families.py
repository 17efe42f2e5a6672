# SPDX-License-Identifier: Apache-2.0
"""When one record is to serve calls of many sizes, and which such records there are."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nfuser.execution.device.native.state import Record
    from nfuser.frontend.fuse.variants import Variant

FEW = 3  # plans of one trace, after which sizes are taken to differ from call to call
MOST = 16  # records of many sizes, of one function, and traces that are counted


class _Tally:
    """The plans of a trace, and after how many of them a record is to be made."""

    __slots__ = ("due", "last", "plans", "wait")

    def __init__(self) -> None:
        self.plans = 0
        self.due = FEW
        self.wait = 1
        self.last: Record | None = None


class Families:
    """The records of one function that serve many sizes.

    Where one that was made served no call, the next has to wait for twice as many
    plans. Who changes it holds the owner's lock.
    """

    def __init__(self) -> None:
        self._tallies: OrderedDict[Variant, _Tally] = OrderedDict()
        self._made: list[Record] = []

    def wants(self, variant: Variant) -> bool:
        """Count a plan of a new size; tell whether a record of many sizes is due."""
        tally = self._tallies.setdefault(variant, _Tally())
        self._tallies.move_to_end(variant)
        if len(self._tallies) > MOST:
            self._tallies.popitem(last=False)
        tally.plans += 1
        return tally.plans > tally.due

    def add(self, variant: Variant, made: Record | None) -> list[Record]:
        """Keep a record, if one could be made; return those that have to go."""
        tally = self._tallies[variant]
        was_of_use = tally.last is None or tally.last.take_use()
        tally.wait = 1 if made is not None and was_of_use else 2 * tally.wait
        tally.due = tally.plans + tally.wait - 1
        tally.last = made
        if made is not None:
            self._made.append(made)
        dropped = self._made[:-MOST]
        del self._made[:-MOST]
        return dropped

    def clear(self) -> list[Record]:
        """Forget all records, and return them."""
        dropped, self._made = self._made, []
        self._tallies.clear()
        return dropped
