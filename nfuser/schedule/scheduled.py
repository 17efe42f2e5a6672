# SPDX-License-Identifier: Apache-2.0
"""A segment with its loops chosen; what a scheduler gives and lowering takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from nfuser.ir.base import node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.domains.space import Space
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.facts.facts import Facts
    from nfuser.schedule.facts.target import Target
    from nfuser.schedule.heuristics.heuristics import (
        Heuristic,
        HorizontalHeuristic,
        PartHeuristic,
    )
    from nfuser.schedule.nest import Nest
    from nfuser.segment import Rejection


@node
class Tile:
    """The way across a tile: a nest with the same blocks and threads as the other one.

    ``size`` is the room that an array of the tile has; ``place`` the element of it
    where the other nest stands, ``other_place`` where this one does.
    """

    nest: Nest
    size: int
    place: Scalar
    other_place: Scalar


@node
class Scheduled:
    """A fusion, the space and nest it runs in, and how its tensors lie in memory."""

    fusion: Fusion
    space: Space
    nest: Nest
    strides: Mapping[TensorView, tuple[Scalar, ...]]
    heuristic: PartHeuristic
    target: Target
    tile: Tile | None = None

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index


@node
class Joined:
    """A fusion whose parts run beside each other, each on blocks of its own."""

    fusion: Fusion
    parts: tuple[Scheduled, ...]
    heuristic: HorizontalHeuristic
    target: Target

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index


Schedule: TypeAlias = Scheduled | Joined


class Scheduler(Protocol):
    """Three functions and a name."""

    name: str

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Return why ``fusion`` cannot run this way, or None if it can."""
        ...

    def heuristic(self, fusion: Fusion, facts: Facts) -> Heuristic:
        """Choose, from the numbers of one call, what the schedule depends on."""
        ...

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Schedule:
        """Build the schedule; it depends on nothing but its arguments."""
        ...
