# SPDX-License-Identifier: Apache-2.0
"""Loops as one call has them: what schedules without reductions are chosen on."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import space_of
from nfuser.compiler.ir.base import node
from nfuser.compiler.schedule.facts.facts import accesses
from nfuser.compiler.schedule.facts.layout import (
    grouped,
    ordered,
    packet_width,
    worth_in_packets,
)
from nfuser.compiler.schedule.facts.memory import patterns, strides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.schedule.facts.facts import Access, Facts
    from nfuser.compiler.schedule.facts.layout import Groups, Patterns


@node
class FlatShape:
    """The loops of a call, in groups that run as one, and what is accessed in them."""

    facts: Facts
    loops: Sequence[LoopIndex]
    groups: Groups
    patterns: Patterns
    found: Sequence[Access]
    largest: int = 16  # bytes of a packet

    def group(self, number: int) -> list[LoopIndex]:
        """Return the loops of a group."""
        return [self.loops[k] for k in self.groups[number]]

    @property
    def width(self) -> int:
        """The elements of a packet of the innermost group."""
        return packet_width(self.group(-1), self.found, self.facts, self.largest)

    @property
    def speed(self) -> float:
        """How fast all that is accessed moves in such packets, times its bytes."""
        group, width, facts = self.group(-1), self.width, self.facts
        elements = self.count(self.groups)
        return sum(
            worth_in_packets(access, group, width, elements, facts)
            for access in self.found
        )

    def joined(self) -> FlatShape:
        """Return the same with the two innermost groups as one."""
        *outer, last, inner = self.groups
        return replace(self, groups=(*outer, (*last, *inner)))

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
