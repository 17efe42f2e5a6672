# SPDX-License-Identifier: Apache-2.0
"""Pieces that a CPU runs as one, row by row: found once, taken where sizes let it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.schedule.registry import CHAINS
from nfuser.compiler.schedule.sweep.runs import chained
from nfuser.execution.runtime.pieces.concretized import (
    Concretization,
    KnownConcretization,
)
from nfuser.execution.runtime.planning.plan import facts_of
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.place import Place


class KnownChains:
    """The concretizations of one cache, each with its chains in one piece."""

    def __init__(self) -> None:
        self._made: Memo[Concretization, Concretization] = Memo()

    def of(self, found: Concretization) -> Concretization:
        """Return ``found`` with its chains; it is cut where its pieces are read."""
        known = KnownConcretization(lambda: _with_chains(found))
        return self._made.get(found, lambda: known)[0]

    def chosen(
        self,
        found: Concretization,
        place: Place,
        arrays: Mapping[int, Descriptor],
        values: Mapping[Scalar, int],
        outputs: Mapping[int, Descriptor],
    ) -> tuple[Concretization, Facts]:
        """Return what runs a call, and the call's facts.

        These are chains if what they pass on stays in the cache of a thread.
        """
        given = place, arrays, values, outputs
        if not place.target.has_blocks and found.rewritten.fusion.loops:
            other = self.of(found)
            if other.segmented is not found.segmented:
                facts = facts_of(other, *given)
                if _fit(other, facts):
                    return other, facts
        return found, facts_of(found, *given)


def _with_chains(found: Concretization) -> Concretization:
    made = chained(found.segmented, CHAINS)
    return Concretization(found.concrete, found.rewritten, made)


def _fit(found: Concretization, facts: Facts) -> bool:
    pieces = found.segmented.kernels
    chains = (piece.fusion for piece in pieces if piece.scheduler is CHAINS)
    return all(CHAINS.fits(fusion, facts) for fusion in chains)
