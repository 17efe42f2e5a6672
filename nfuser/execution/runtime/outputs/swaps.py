# SPDX-License-Identifier: Apache-2.0
"""Which arrays change places when a loop of launches begins its next iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.execution.host.call.program import Slot


def swaps_after(
    slots: Sequence[Slot], fresh: Sequence[Slot], forwarded: Sequence[int | None]
) -> tuple[tuple[Slot, Slot], ...]:
    """Return which arrays change places, in order, after an iteration.

    What was computed lies in ``fresh`` ones; the other values are some of before.
    """
    places = [*slots, *fresh]
    new = iter(fresh)
    wanted = [next(new) if k is None else slots[k] for k in forwarded]
    held = {place: place for place in places}
    swaps: list[tuple[Slot, Slot]] = []
    for place, array in zip(slots, wanted, strict=True):
        if held[place] is not array:
            other = next(p for p in places if held[p] is array)
            held[place], held[other] = held[other], held[place]
            swaps.append((place, other))
    return tuple(swaps)
