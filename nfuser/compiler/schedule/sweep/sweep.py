# SPDX-License-Identifier: Apache-2.0
"""Schedules for loops whose turns read each other element by element: one kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.loops.at_rest import changes
from nfuser.compiler.domains.loops.first_turn import first_turn, turn_of
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.facts.facts import TensorLayout, accesses
from nfuser.compiler.schedule.facts.layout import grouped, is_unit, ordered
from nfuser.compiler.schedule.facts.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
    strides,
)
from nfuser.compiler.schedule.heuristics.heuristics import SweepHeuristic
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.pointwise.interleave import MOST_PLACES
from nfuser.compiler.schedule.scheduled import Scheduled, Turns
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from nfuser.compiler.domains.loops.first_turn import FirstTurn
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Access, Facts, Target
    from nfuser.compiler.schedule.facts.layout import Patterns
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.schedule.nest import Nest

THREADS = 128  # of a block: each has as many registers as what it carries may take
LANES = (256, 64, 16)  # elements that a CPU thread takes through a loop at once
RESTING = (32, 16, 8)  # that are looked at together: all of them wait for the last one
PIECES = 8  # of work, at least, where there are elements enough
FEW_LANES = (4, 2)  # where turns lie side by side: one waits for what it computes
_TURN = 1000  # number of the first loop over turns; those of nests are smaller


class Sweeps:
    """One loop in one kernel, with what is elementwise before and after it."""

    name = "sweep"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take a loop whose turns read each other at the same place only."""
        found = first_turn(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> SweepHeuristic:
        """Choose how many elements a thread takes through the loop at once."""
        turn, steps = turn_of(fusion), patterns(fusion, facts)
        facts = _with_rows(fusion, turn, facts)
        found = accesses(turn.fusion, facts, _strides(fusion, turn, steps))
        kept = turn.space.kept
        groups = grouped(ordered(kept, found, facts), found, facts)
        if facts.target.has_blocks:
            wide = needs_wide_index(fusion, facts)
            return SweepHeuristic(groups, steps, 1, THREADS, wide)
        loops = [[kept[k] for k in group] for group in groups]
        sizes = [math.prod(facts.size(x.extent) for x in group) for group in loops]
        lanes, even = 1, False
        if loops and changes(turn) is not None:
            lanes, even = _resting(sizes)
        elif loops:
            lanes, even = lanes_of(sizes, loops[-1][-1], found, aside(turn))
        return SweepHeuristic(groups, steps, lanes, 1, wide_index=True, even=even)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Build the nest around the turns."""
        assert isinstance(heuristic, SweepHeuristic)
        turn = turn_of(fusion)
        steps = _strides(fusion, turn, heuristic.patterns)
        return Scheduled(
            turn.fusion,
            turn.space,
            nest_of(turn.space.kept, heuristic, target),
            steps,
            heuristic,
            target,
            turns=turns_of(turn, steps),
        )


def aside(turn: FirstTurn) -> set[TensorView]:
    """Return what is stored before the turns or after them, and not in each."""
    return {t for t in turn.fusion.outputs if t not in turn.rows}


def lanes_of(
    sizes: list[int],
    lane: LoopIndex,
    found: Sequence[Access],
    aside: Container[TensorView],
) -> tuple[int, bool]:
    """Return how many lanes leave work for several threads, and if they are even.

    They are many if most of what they read and write lies side by side, and else as few
    as there are places of memory that a processor keeps track of, while turns go on
    through them: what lies ``aside`` is stored once.
    """
    stepping = [a for a in found if a.steps.get(lane, 0)]
    runs_along = 2 * sum(is_unit(a, lane) for a in stepping) > len(stepping)
    for lanes in LANES if runs_along else ():
        if math.prod(sizes[:-1]) * -(-sizes[-1] // lanes) >= PIECES:
            return lanes, False
    places = {a.tensor for a in stepping if a.tensor not in aside}
    most = MOST_PLACES // max(len(places), 1)
    for lanes in FEW_LANES:
        if lanes <= most and sizes[-1] % lanes == 0:
            return lanes, True
    return LANES[-1] if runs_along else 1, False


def _resting(sizes: list[int]) -> tuple[int, bool]:
    """Return how many lanes end together once all are at rest, and if they are even."""
    for lanes in RESTING:
        if math.prod(sizes[:-1]) * -(-sizes[-1] // lanes) >= PIECES:
            break
    else:
        lanes = RESTING[-1]
    return lanes, sizes[-1] % lanes == 0


def _with_rows(fusion: Fusion, turn: FirstTurn, facts: Facts) -> Facts:
    """Let rows lie in memory as parts of what they are rows of.

    How far apart elements of a row are may be said by how far apart the rows are.
    """
    layouts, sizes = dict(facts.layouts), dict(facts.sizes)
    for number, tensor in enumerate(memory_tensors(fusion)):
        for axis, step in enumerate(layouts[tensor].strides):
            sizes[scalar_symbols.stride(number, axis)] = step
    for row, place in turn.rows.items():
        whole = layouts[place.whole]
        rest = whole.strides[: place.axis] + whole.strides[place.axis + 1 :]
        layouts[row] = TensorLayout(rest, whole.alignment)
    return replace(facts, sizes=sizes, layouts=layouts)


def _strides(
    fusion: Fusion, turn: FirstTurn, steps: Patterns
) -> dict[TensorView, tuple[Scalar, ...]]:
    """Return the strides of what the first turn has in memory."""
    found = strides(fusion, steps)
    for row, place in turn.rows.items():
        whole = found[place.whole]
        found[row] = whole[: place.axis] + whole[place.axis + 1 :]
    return found


def turns_of(
    turn: FirstTurn, strides: Mapping[TensorView, tuple[Scalar, ...]], number: int = 0
) -> Turns:
    """Return the loop around ``turn``: the one of this ``number`` in its kernel."""
    trips = turn.loop.trips
    assert trips is not None
    apart: Mapping[TensorView, Scalar] = {
        row: strides[place.whole][place.axis] for row, place in turn.rows.items()
    }
    starts: dict[TensorView, Scalar] = dict.fromkeys(apart, sc.const(0))
    if turn.loop.backwards:
        starts = {row: (trips - 1) * step for row, step in apart.items()}
        apart = {row: -step for row, step in apart.items()}
    index = scalar_symbols.loop_index(_TURN + number, trips)
    wholes = {row: place.whole for row, place in turn.rows.items()}
    return Turns(index, turn.states, turn.turn, wholes, apart, starts, changes(turn))


def nest_of(
    loops: tuple[LoopIndex, ...], heuristic: SweepHeuristic, target: Target
) -> Nest:
    """All groups over blocks and threads, or over the caller's range; then lanes."""
    builder = NestBuilder(loops, ())
    axes = builder.merged(heuristic.groups) or [builder.one()]
    if target.has_blocks:
        flat = builder.merge(axes)
        block, thread = builder.split(flat, heuristic.threads, LastTile.GUARD)
        builder.bind(block, Binding.BLOCK_X)
        builder.bind(thread, Binding.THREAD_X)
        return builder.freeze()
    if loops and heuristic.lanes > 1:
        tail = LastTile.EXACT if heuristic.even else LastTile.SHRINK
        axes[-1], lane = builder.split(axes[-1], heuristic.lanes, tail)
        builder.bind(builder.merge(axes), Binding.PARALLEL)
        builder.bind(lane, Binding.VECTOR)
    else:
        builder.bind(builder.merge(axes), Binding.PARALLEL)
    return builder.freeze()
