# SPDX-License-Identifier: Apache-2.0
"""Loops as one call has them: what schedules without reductions are chosen on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from nfuser.domains.space import space_of
from nfuser.ir.base import node
from nfuser.schedule.facts.facts import accesses
from nfuser.schedule.facts.layout import grouped, ordered
from nfuser.schedule.facts.memory import patterns, strides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import LoopIndex
    from nfuser.schedule.facts.facts import Access, Facts
    from nfuser.schedule.facts.layout import Groups, Patterns


@node
class FlatShape:
    """The loops of a call, in groups that run as one, and what is accessed in them."""

    facts: Facts
    loops: Sequence[LoopIndex]
    groups: Groups
    patterns: Patterns
    found: Sequence[Access]

    def group(self, number: int) -> list[LoopIndex]:
        """Return the loops of a group."""
        return [self.loops[k] for k in self.groups[number]]

    def count(self, groups: Groups) -> int:
        """Return how many elements ``groups`` run through."""
        extents = (self.loops[k].extent for group in groups for k in group)
        return math.prod(map(self.facts.size, extents))


def flat_shape(fusion: Fusion, facts: Facts) -> FlatShape:
    """Return the loops of ``fusion`` as they are in one call."""
    space, steps = space_of(fusion), patterns(fusion, facts)
    found = accesses(fusion, facts, strides(fusion, steps))
    groups = grouped(ordered(space.kept, found, facts), found, facts)
    return FlatShape(facts, space.kept, groups, steps, found)
