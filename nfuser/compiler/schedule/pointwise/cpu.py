# SPDX-License-Identifier: Apache-2.0
"""How a CPU runs a fusion without reductions: in pieces, in tiles, or row by row."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads, roots
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Const
from nfuser.compiler.schedule.facts.layout import is_unit
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.facts.weight import weight
from nfuser.compiler.schedule.heuristics.cpu import CHUNK, CpuPointwise
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.placement.placement import Placement, Route, Where
from nfuser.compiler.schedule.pointwise.interleave import (
    PIECE,
    WRITING,
    bypasses,
    streams,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.schedule.facts.facts import Access
    from nfuser.compiler.schedule.facts.layout import Packed
    from nfuser.compiler.schedule.nest import Nest
    from nfuser.compiler.schedule.pointwise.flat_shape import FlatShape
    from nfuser.compiler.schedule.scheduled import Scheduled

TILE = (64, 64)  # sides of a tile: whole cache lines both ways, that L2 holds
_LINE = 64  # elements: whole lines of the cache, of bytes as well
LEAST_SHORT = 1 << 19  # elements of what takes a kernel for short rows: 100 us of work


def cpu_choice(fusion: Fusion, shape: FlatShape) -> CpuPointwise:
    """Run in tiles where memory runs two ways, else along rows, whole or in pieces."""
    across = _across(shape)
    if across >= 0:
        staged = _staged(fusion, shape, across)
        return CpuPointwise(shape.groups, shape.patterns, across, staged)
    length = min(shape.count(shape.groups[-1:]), CHUNK)
    # Too short for pieces, though rows that pass the cache are stored in lines.
    # Rows of what is small share a kernel with all others.
    is_short = length < WRITING * PIECE and shape.count(shape.groups) >= LEAST_SHORT
    # Neighbours are loaded more often than memory brings them: it is not waited for.
    is_again = len({a.tensor for a in shape.found}) < len(shape.found)
    return CpuPointwise(
        shape.groups,
        shape.patterns,
        short=is_short and len(shape.groups) > 1,
        streams=1 if is_short or is_again else streams(fusion),
        bypass=bypasses(fusion, length, shape.facts),
        piece=_piece(shape),
    )


def _piece(shape: FlatShape) -> int:
    """Return how many elements a piece has: whole lines of the cache, if it can.

    Each begins at a multiple of the constants by which an index along it is divided.
    """
    lanes = shape.group(-1) if shape.groups else []
    found = scalar_walk.every(x for a in shape.found for x in a.point.scalars)
    size = 1
    for x in found:
        match x:
            case Binary(Op.FLOORDIV | Op.MOD, lhs, Const(by)) if 0 < by <= CHUNK:
                if not set(lanes).isdisjoint(scalar_walk.loops_in(lhs)):
                    size = math.lcm(size, by)
            case _:
                pass
    whole = (n for n in (math.lcm(size, _LINE), size) if n <= CHUNK)
    return next((CHUNK // n * n for n in whole), CHUNK)


def _across(shape: FlatShape) -> int:
    """Return the group that some access lies along, which the last one strides through.

    Where a line of memory has one element for each step of the last group, the next
    step of this one finds it in the cache only if it comes soon.
    """
    if not shape.groups:
        return -1
    crossing = _crossing(shape)
    for number in range(len(shape.groups) - 2, -1, -1):
        if any(is_unit(a, shape.group(number)[-1]) for a in crossing):
            return number
    return -1


def _crossing(shape: FlatShape) -> list[Access]:
    """Return the accesses to a line of memory for each element of the last group."""
    lane, line = shape.group(-1)[-1], shape.facts.target.line_bytes
    return [
        a
        for a in shape.found
        if abs(a.steps.get(lane, 0)) * a.tensor.dtype.itemsize >= line
    ]


def _staged(fusion: Fusion, shape: FlatShape, across: int) -> Packed:
    """Return the reads along ``across`` of which the stack holds a tile.

    Elements are gathered there, from the nearest cache: in memory the rows of a tile
    lie pages apart, and those of arrays as long as a power of two share a few places of
    that cache. Dear operations leave time to wait for memory: nothing is staged then.
    """
    if weight(fusion):
        return frozenset()
    row, facts, tensors = shape.group(across)[-1], shape.facts, memory_tensors(fusion)
    staged = [
        (tensors.index(a.tensor), a.point)
        for a in _crossing(shape)
        if is_unit(a, row)
        and a.tensor not in fusion.outputs
        and not (a.point.guard or data_of(a.point))
    ]
    return frozenset(staged[: facts.target.stack_elements // math.prod(TILE)])


def place_tiles(made: Scheduled, heuristic: CpuPointwise) -> Scheduled:
    """Return the schedule with what is staged placed on the stack."""
    if not heuristic.staged:
        return made
    found = reads(made.fusion, roots(made.fusion, made.space))
    staged = (key for key in found if made.is_input(key, heuristic.staged))
    placed = dict.fromkeys(staged, Placement(Where.STACK, Route.LAID))
    return replace(made, placements=placed)


def cpu_nest(loops: tuple[LoopIndex, ...], heuristic: CpuPointwise) -> Nest:
    """All groups but the last over the caller's range, with pieces of that; vectors."""
    builder = NestBuilder(loops, ())
    axes = builder.merged(heuristic.groups) or [builder.one()]
    is_tiled = heuristic.across >= 0
    row = None
    if heuristic.short:
        lane = axes.pop()
    else:
        width = TILE[1] if is_tiled else heuristic.piece
        axes[-1], lane = builder.split(axes[-1], width, LastTile.SHRINK)
    if is_tiled:
        k = heuristic.across
        axes[k], row = builder.split(axes[k], TILE[0], LastTile.SHRINK)
    builder.bind(builder.merge(axes), Binding.PARALLEL)
    if row is not None:
        builder.bind(row, Binding.SERIAL)
    builder.bind(lane, Binding.VECTOR)
    return builder.freeze()
