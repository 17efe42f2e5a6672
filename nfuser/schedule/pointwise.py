# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions without reductions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nfuser.domains.space import Mismatch, Space, find_space
from nfuser.schedule import transpose
from nfuser.schedule.facts import accesses
from nfuser.schedule.layout import grouped, is_unit, ordered, packed, packet_width
from nfuser.schedule.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
    strides,
)
from nfuser.schedule.nest import Binding, NestBuilder, Tail
from nfuser.schedule.scheduled import (
    Heuristic,
    PointwiseHeuristic,
    Rejection,
    Scheduled,
    TransposeHeuristic,
)
from nfuser.schedule.sharing import sharing
from nfuser.schedule.streams import PIECE, WRITING, bypasses, streams
from nfuser.schedule.weight import PACKET_LIMIT, limited, weight

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import LoopIndex, Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.facts import Access, Facts, Target
    from nfuser.schedule.layout import Groups
    from nfuser.schedule.nest import LoopAxis, Nest

CUDA_THREADS = 256
IN_FLIGHT = 16  # bytes of an output that a thread has under way
MOST_ITEMS = 8
LEAST_IN_TURN = 8  # blocks along a row: the last of them may be nearly empty
NEAR_BLOCKS = 256  # that read memory in its order: what they share stays in the L2
MOST_ROWS = (1 << 16) - 1  # of blocks in a grid
LEAST_SHORT = 1 << 19  # elements of what takes a kernel for short rows: 100 us of work
CPU_CHUNK = 8192  # elements of one piece of work: they and their kin stay in L1 or L2
CPU_TILE = (64, 64)  # sides of a tile: whole cache lines both ways, that L2 holds
CACHE_LINE = 64  # bytes


class Pointwise:
    """One flat loop over packets, or tiles where memory runs two ways."""

    name = "pointwise"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take everything that has one space and no reduction."""
        if fusion.reductions:
            first = fusion.reductions[0].result
            return Rejection(self.name, "it reduces", first, is_other=True)
        if fusion.scans:
            first = fusion.scans[0].result
            return Rejection(self.name, "it scans", first, is_other=True)
        found = find_space(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(
        self, fusion: Fusion, facts: Facts, *, may_tile: bool = True
    ) -> PointwiseHeuristic | TransposeHeuristic:
        """Group loops that run as one, and widen packets as far as all accesses go."""
        space = _space(fusion)
        steps = patterns(fusion, facts)
        found = accesses(fusion, space, facts, strides(fusion, steps))
        loops = ordered(space.kept, found, facts)
        groups = grouped(loops, found, facts)
        wide = needs_wide_index(fusion, facts)
        if facts.target.kind == "cuda" and may_tile:
            tiled = transpose.choose(
                fusion, space.kept, groups, steps, found, wide, facts
            )
            if not isinstance(tiled, Rejection):
                return tiled
        width, together, shared = 1, frozenset[Any](), (1, -1)
        if facts.target.kind == "cuda" and groups:
            group = [space.kept[k] for k in groups[-1]]
            width = limited(packet_width(group, found, facts), fusion)
            together = packed(group, found, width, facts, memory_tensors(fusion))
            several = _items(fusion, facts, 1) if width == 1 else 0
            shared = sharing(fusion, groups, found, facts, several)
        items, along = _items(fusion, facts, width), -1
        is_better = items == 1 or (width == 1 and shared[0] >= items)
        if is_better and shared[0] * width * weight(fusion) <= PACKET_LIMIT:
            items, along = shared
        inside = [space.kept[k].extent for group in groups[along + 1 :] for k in group]
        blocks = -(-math.prod(map(facts.size, inside)) // (width * CUDA_THREADS))
        around = [space.kept[k].extent for group in groups[:along] for k in group]
        rows = math.prod(map(facts.size, around)) * -(-blocks // NEAR_BLOCKS)
        is_cpu = facts.target.kind == "cpu"
        across = _across(groups, space.kept, found) if is_cpu else -1
        is_flat = is_cpu and across < 0
        length = _lanes(groups, space.kept, facts) if is_flat else 0
        past = is_flat and bypasses(fusion, length, facts)
        # Too short for pieces, though rows that pass the cache are stored in lines.
        # Rows of what is small share a kernel with all others.
        extents = (facts.size(loop.extent) for loop in space.kept)
        is_short = length < WRITING * PIECE and math.prod(extents) >= LEAST_SHORT
        return PointwiseHeuristic(
            groups,
            steps,
            width,
            CUDA_THREADS,
            wide,
            together,
            items,
            along,
            in_turn=along >= 0 and blocks >= LEAST_IN_TURN and rows <= MOST_ROWS,
            across=across,
            streams=streams(fusion) if is_flat and not is_short else 1,
            bypass=past,
            short=is_flat and is_short and len(groups) > 1,
            near=_near(blocks),
        )

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Flatten all groups; the innermost gives packets (CUDA) or vectors (CPU)."""
        assert isinstance(heuristic, PointwiseHeuristic | TransposeHeuristic)
        found = strides(fusion, heuristic.patterns)
        return scheduled(fusion, heuristic, target, found)


def scheduled(
    fusion: Fusion,
    heuristic: PointwiseHeuristic | TransposeHeuristic,
    target: Target,
    strides: Mapping[TensorView, tuple[Scalar, ...]],
) -> Scheduled:
    """Build the schedule of ``fusion``, whose tensors lie in memory as given."""
    space = _space(fusion)
    if isinstance(heuristic, TransposeHeuristic):
        nest, tile = transpose.build(space.kept, heuristic)
        return Scheduled(fusion, space, nest, strides, heuristic, target, tile)
    build = _cuda_nest if target.kind == "cuda" else _cpu_nest
    nest = build(space.kept, heuristic)
    return Scheduled(fusion, space, nest, strides, heuristic, target)


def turns(fusion: Fusion, heuristic: PointwiseHeuristic) -> object:
    """Return what blocks of ``fusion`` that take turns run through before others do.

    That is None where they do not take turns.
    """
    if not heuristic.in_turn:
        return None
    loops, groups = _space(fusion).kept, heuristic.groups

    def extents(chosen: Groups) -> tuple[tuple[Scalar, ...], ...]:
        return tuple(tuple(loops[k].extent for k in group) for group in chosen)

    around, inside = groups[: heuristic.shared], groups[heuristic.shared + 1 :]
    return extents(around), extents(inside), heuristic.width


def _items(fusion: Fusion, facts: Facts, width: int) -> int:
    """Return how many packets a thread moves at once, so that memory stays busy."""
    if facts.target.kind != "cuda":
        return 1
    items = MOST_ITEMS
    size = max(t.dtype.itemsize for t in fusion.outputs)
    while items > 1 and (
        items * width * size > IN_FLIGHT
        or items * width * weight(fusion) > PACKET_LIMIT
    ):
        items //= 2
    return items


def _lanes(groups: Groups, loops: Sequence[LoopIndex], facts: Facts) -> int:
    """Return how many elements a CPU runs through in one piece of work."""
    extents = (facts.size(loops[k].extent) for k in (groups[-1] if groups else ()))
    return min(math.prod(extents), CPU_CHUNK)


def _near(blocks: int) -> int:
    """Return how many neighbours of ``blocks`` run before those they share with.

    Pieces come out even, so that the last of them has hardly a block too many.
    """
    pieces = -(-blocks // NEAR_BLOCKS)
    return -(-blocks // max(pieces, 1))


def _across(groups: Groups, loops: Sequence[LoopIndex], found: list[Access]) -> int:
    """Return the group that some access lies along, which the last one strides through.

    Where a line of memory has one element for each step of the last group, the next
    step of this one finds it in the cache only if it comes soon.
    """
    if not groups:
        return -1
    lane = loops[groups[-1][-1]]
    crossing = [
        a
        for a in found
        if abs(a.steps.get(lane, 0)) * a.tensor.dtype.itemsize >= CACHE_LINE
    ]
    for number in range(len(groups) - 2, -1, -1):
        if any(is_unit(a, loops[groups[number][-1]]) for a in crossing):
            return number
    return -1


def _space(fusion: Fusion) -> Space:
    found = find_space(fusion)
    assert isinstance(found, Space)
    return found


def _merged(
    builder: NestBuilder, loops: tuple[LoopIndex, ...], heuristic: PointwiseHeuristic
) -> list[LoopAxis]:
    return [
        builder.merge([builder.axis(loops[k]) for k in group])
        for group in heuristic.groups
    ]


def _cuda_nest(loops: tuple[LoopIndex, ...], heuristic: PointwiseHeuristic) -> Nest:
    builder = NestBuilder(loops, ())
    axes = _merged(builder, loops, heuristic) or [builder.one()]
    packet = None
    if heuristic.width > 1:
        axes[-1], packet = builder.split(axes[-1], heuristic.width, Tail.EXACT)
    if heuristic.shared >= 0:
        group = heuristic.shared
        axes[group], item = builder.split(axes[group], heuristic.items, Tail.EXACT)
        if heuristic.in_turn:
            inside = builder.merge(axes[group + 1 :])
            share = heuristic.near_knob * heuristic.threads
            piece, part = builder.split(inside, share, Tail.GUARD)
            near, thread = builder.split(part, heuristic.threads, Tail.EXACT)
            block = builder.merge([axes[group], near])
            builder.bind(builder.merge([*axes[:group], piece]), Binding.BLOCK_Y)
        else:
            flat = builder.merge(axes)
            block, thread = builder.split(flat, heuristic.threads, Tail.GUARD)
        builder.bind(block, Binding.BLOCK_X)
        builder.bind(item, Binding.UNROLLED)
    elif heuristic.items == 1:
        flat = builder.merge(axes)
        block, thread = builder.split(flat, heuristic.threads, Tail.GUARD)
        builder.bind(block, Binding.BLOCK_X)
    else:
        # What lies beyond the end is read again and not stored: no branch keeps the
        # loads of several packets from being under way at once.
        flat = builder.merge(axes)
        share = heuristic.items * heuristic.threads
        block, part = builder.split(flat, share, Tail.CLAMP)
        item, thread = builder.split(part, heuristic.threads, Tail.EXACT)
        builder.bind(block, Binding.BLOCK_X)
        builder.bind(item, Binding.UNROLLED)
    builder.bind(thread, Binding.THREAD_X)
    if packet is not None:
        builder.bind(packet, Binding.PACKET)
    return builder.freeze()


def _cpu_nest(loops: tuple[LoopIndex, ...], heuristic: PointwiseHeuristic) -> Nest:
    builder = NestBuilder(loops, ())
    axes = _merged(builder, loops, heuristic) or [builder.one()]
    is_tiled = heuristic.across >= 0
    width = CPU_TILE[1] if is_tiled else CPU_CHUNK
    if heuristic.short:
        lane = axes.pop()
    else:
        axes[-1], lane = builder.split(axes[-1], width, Tail.SHRINK)
    row = None
    if is_tiled:
        k = heuristic.across
        axes[k], row = builder.split(axes[k], CPU_TILE[0], Tail.SHRINK)
    builder.bind(builder.merge(axes), Binding.PARALLEL)
    if row is not None:
        builder.bind(row, Binding.SERIAL)
    builder.bind(lane, Binding.VECTOR)
    return builder.freeze()
