# SPDX-License-Identifier: Apache-2.0
"""Schedules for loops over single elements: one thread takes all their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.one_by_one import one_by_one
from nfuser.domains.space import Mismatch
from nfuser.schedule.facts.memory import patterns, strides
from nfuser.schedule.heuristics.heuristics import SerialHeuristic
from nfuser.schedule.scheduled import Serial
from nfuser.segment import Rejection

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion
    from nfuser.schedule.facts.facts import Facts, Target
    from nfuser.schedule.heuristics.heuristics import Heuristic


class SerialLoops:
    """A loop alone, with the loops inside of it."""

    name = "serial"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take a loop that computes nothing but single numbers."""
        if len(fusion.loops) != 1:
            return Rejection(self.name, "one kernel runs one loop")
        found = one_by_one(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> SerialHeuristic:
        """Look at how arrays lie in memory."""
        return SerialHeuristic(patterns(fusion, facts))

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Serial:
        """Write the steps down."""
        assert isinstance(heuristic, SerialHeuristic)
        steps = one_by_one(fusion)
        assert not isinstance(steps, Mismatch)
        apart = strides(fusion, heuristic.patterns)
        return Serial(fusion, steps, apart, heuristic, target)
