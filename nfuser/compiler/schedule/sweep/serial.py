# SPDX-License-Identifier: Apache-2.0
"""Schedules for loops over single elements: one thread takes all their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.loops.one_by_one import one_by_one
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.schedule.facts.memory import patterns, strides
from nfuser.compiler.schedule.heuristics.heuristics import SerialHeuristic
from nfuser.compiler.schedule.scheduled import Serial, copies_knob
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from nfuser.compiler.domains.loops.element_steps import OneByOne
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.facts.facts import Facts, Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic


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
        copies = range(len(_steps(fusion).copied))
        return SerialHeuristic(patterns(fusion, facts), tuple(map(copies_knob, copies)))

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Serial:
        """Write the steps down."""
        assert isinstance(heuristic, SerialHeuristic)
        apart = strides(fusion, heuristic.patterns)
        copies = heuristic.copies
        return Serial(fusion, _steps(fusion), copies, apart, heuristic, target)


def _steps(fusion: Fusion) -> OneByOne:
    found = one_by_one(fusion)
    assert not isinstance(found, Mismatch)
    return found
