# SPDX-License-Identifier: Apache-2.0
"""Schedules for several loops in one kernel of a CPU, row by row.

A thread takes a few rows through the first loop, what stands after it, and the next
loop, before it goes on: what the one leaves for the other never reaches memory.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.facts.facts import TensorLayout, accesses
from nfuser.compiler.schedule.facts.layout import grouped, ordered
from nfuser.compiler.schedule.facts.memory import memory_tensors, patterns
from nfuser.compiler.schedule.facts.memory import strides as strides_in
from nfuser.compiler.schedule.heuristics.heuristics import ChainHeuristic
from nfuser.compiler.schedule.scheduled import Joined, Scheduled, SharedPart
from nfuser.compiler.schedule.sweep.links import find_chain, is_long
from nfuser.compiler.schedule.sweep.sweep import (
    FEW_LANES,
    LANES,
    aside,
    lanes_of,
    nest_of,
    turns_of,
)
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Access, Facts, Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.schedule.sweep.links import Chain, Link, Portion
    from nfuser.compiler.segment import FindScheduler


class ChainedSweeps:
    """Loops over the same rows that pass on what they leave, with all between them."""

    name = "chain"

    def __init__(self, find: FindScheduler) -> None:
        @remembered
        def chain(fusion: Fusion) -> Chain | Mismatch:
            return find_chain(fusion, find)

        self._chain = chain

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take loops of which each row reads what that row has left."""
        found = self._chain(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def fits(self, fusion: Fusion, facts: Facts) -> bool:
        """Tell whether the columns of a few rows stay in the cache of a thread."""
        return not facts.between and self.heuristic(fusion, facts).lanes > 0

    def heuristic(self, fusion: Fusion, facts: Facts) -> ChainHeuristic:
        """Choose how many rows a thread takes at once; none where columns are long."""
        chain, steps = self._known(fusion), patterns(fusion, facts)
        memory = strides_in(fusion, steps)
        sizes = dict(facts.sizes)
        for number, tensor in enumerate(memory_tensors(fusion)):
            for axis, step in enumerate(facts.layouts[tensor].strides):
                sizes[scalar_symbols.stride(number, axis)] = step
        facts = replace(facts, sizes=sizes)
        found = [_accesses(chain, link, memory, facts) for link in chain.links]
        every = [access for own in found for access in own]
        groups = grouped(ordered(chain.kept, every, facts), every, facts)
        loops = [[chain.kept[k] for k in group] for group in groups]
        sizes_of = [math.prod(facts.size(x.extent) for x in group) for group in loops]
        lanes = [
            lanes_of(sizes_of, loops[-1][-1], own, aside(link.turn))[0]
            for link, own in zip(chain.links, found, strict=True)
            if link.turn is not None
        ]
        few = _fitting(min(lanes), chain, facts)
        even = few > 0 and sizes_of[-1] % few == 0
        return ChainHeuristic(groups, steps, few, even)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Joined:
        """Schedule each link over the same rows."""
        assert isinstance(heuristic, ChainHeuristic)
        chain = self._known(fusion)
        memory = strides_in(fusion, heuristic.patterns)
        room = _room(chain, target)
        parts: list[Scheduled] = []
        for number, link in enumerate(chain.links):
            lay = _Laid(chain, memory, heuristic.lanes, room)
            lay.out(link)
            own = heuristic.of_link(len(memory_tensors(link.fusion)))
            parts.append(
                Scheduled(
                    link.fusion,
                    link.space,
                    nest_of(chain.kept, own, target),
                    lay.strides,
                    own,
                    target,
                    turns=link.turn and turns_of(link.turn, lay.strides, number),
                    shared=lay.shared,
                )
            )
        return Joined(fusion, tuple(parts), heuristic, target)

    def _known(self, fusion: Fusion) -> Chain:
        found = self._chain(fusion)
        assert not isinstance(found, Mismatch)
        return found


class _Laid:
    """How what links read and write lies: in memory, or in columns of these lanes."""

    def __init__(
        self,
        chain: Chain,
        memory: Mapping[TensorView, tuple[Scalar, ...]],
        lanes: int,
        room: int,
        across: int = 1,
    ) -> None:
        self._chain, self._memory = chain, memory
        self._lanes, self._room, self._across = lanes, room, across
        self.strides: dict[TensorView, tuple[Scalar, ...]] = {}
        self.shared: dict[TensorView, SharedPart] = {}

    def out(self, link: Link) -> None:
        """Lay out the memory of one link."""
        for tensor in memory_tensors(link.fusion):
            row = link.rows.get(tensor)
            whole = tensor if row is None else row.whole
            place = self._chain.places.get(whole)
            if place is None:
                self.strides[whole] = self._memory[whole]
            else:
                self.shared[tensor] = self._part(whole, place, row and row.axis)
            if row is not None:
                steps = self.strides[whole]
                self.strides[tensor] = steps[: row.axis] + steps[row.axis + 1 :]

    def _part(
        self, tensor: TensorView, place: Portion, turns: int | None
    ) -> SharedPart:
        rows = self._chain.columns.get(place.whole)
        own = self._memory[place.whole] if rows is None else self._column(place, rows)
        pairs = list(zip(own, place.starts, place.steps, strict=True))
        self.strides[tensor] = tuple(stride * step for stride, _, step in pairs)
        apart = rows or frozenset[int]()
        begin: Scalar = sc.const(0)
        for axis, (stride, start, _) in enumerate(pairs):
            begin = begin if axis in apart else begin + start * stride
        left = [k for k in range(tensor.ndim) if k != turns]
        kept = frozenset(k for k, axis in enumerate(left) if axis in apart)
        room = self._room if is_long(place.whole, apart) else self._lanes
        return SharedPart(place.whole, begin, kept, None if rows is None else room)

    def _column(self, place: Portion, rows: frozenset[int]) -> tuple[Scalar, ...]:
        """Return the strides of a column: lanes side by side for each of its places."""
        shape = place.whole.shape
        found: list[Scalar] = [sc.const(self._across)] * len(shape)
        step: Scalar = sc.const(self._lanes)
        for axis in reversed(range(len(shape))):
            if axis not in rows:
                found[axis] = step
                step = step * shape[axis]
        return tuple(found)


def _accesses(
    chain: Chain,
    link: Link,
    memory: Mapping[TensorView, tuple[Scalar, ...]],
    facts: Facts,
) -> list[Access]:
    """Return what a link reads and writes; columns lie still from row to row."""
    lay = _Laid(chain, memory, 1, 0, across=0)
    lay.out(link)
    layouts = {
        tensor: TensorLayout(tuple(map(facts.size, steps)), 1)
        for tensor, steps in lay.strides.items()
    }
    return accesses(link.fusion, replace(facts, layouts=layouts), lay.strides)


def _room(chain: Chain, target: Target) -> int:
    """Return how many elements a column of each array may have, all lanes together."""
    return target.stack_elements // sum(is_long(*c) for c in chain.columns.items())


def _fitting(lanes: int, chain: Chain, facts: Facts) -> int:
    """Return how many rows, at most ``lanes``, have columns that fit.

    It is 0 if they are fewer than are worth it: a row alone waits for its divisions.
    """
    longest = max(
        math.prod(facts.size(x) for k, x in enumerate(whole.shape) if k not in rows)
        for whole, rows in chain.columns.items()
    )
    room = _room(chain, facts.target)
    least = LANES[-1] if lanes >= LANES[-1] else FEW_LANES[-1]
    fewer = (n for n in (*LANES, *FEW_LANES) if least <= n <= lanes)
    return next((n for n in fewer if n * longest <= room), 0)
