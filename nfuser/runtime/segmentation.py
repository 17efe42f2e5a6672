# SPDX-License-Identifier: Apache-2.0
"""The pieces of a fusion: found by some process, and told to all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.segment as room
from nfuser.ir.identity import structure
from nfuser.runtime.disk.plans import find_plan, keep_plan
from nfuser.schedule.registry import LIBRARY, SCHEDULERS, find_scheduler
from nfuser.segment.kept import from_numbers, to_numbers

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion
    from nfuser.segment import Scheduler, Segmented, ShouldMerge

_BY_NAME: dict[str, Scheduler] = {s.name: s for s in (*SCHEDULERS, LIBRARY)}


def segment(fusion: Fusion, should_merge: ShouldMerge | None) -> Segmented:
    """Return ``fusion`` cut into pieces.

    What ``should_merge`` decides is decided in each process: nothing is known of it.
    """
    if should_merge is not None:
        return room.segment(fusion, find_scheduler, should_merge)
    depends = ("segments", structure(fusion).digest)
    known = find_plan(depends, lambda kept: from_numbers(fusion, kept, _BY_NAME))
    if known is None:
        known = room.segment(fusion, find_scheduler)
        keep_plan(depends, fusion.name, to_numbers(known))
    return known
