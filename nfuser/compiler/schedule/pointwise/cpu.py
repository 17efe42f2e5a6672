# SPDX-License-Identifier: Apache-2.0
"""How a CPU runs a fusion without reductions: in pieces, in tiles, or row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.schedule.facts.layout import is_unit
from nfuser.compiler.schedule.heuristics.cpu import CpuPointwise
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.pointwise.interleave import (
    PIECE,
    WRITING,
    bypasses,
    streams,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.schedule.nest import Nest
    from nfuser.compiler.schedule.pointwise.flat_shape import FlatShape

CHUNK = 8192  # elements of one piece of work: they and their kin stay in L1 or L2
TILE = (64, 64)  # sides of a tile: whole cache lines both ways, that L2 holds
LEAST_SHORT = 1 << 19  # elements of what takes a kernel for short rows: 100 us of work
CACHE_LINE = 64  # bytes: those of x86-64


def cpu_choice(fusion: Fusion, shape: FlatShape) -> CpuPointwise:
    """Run in tiles where memory runs two ways, else along rows, whole or in pieces."""
    across = _across(shape)
    if across >= 0:
        return CpuPointwise(shape.groups, shape.patterns, across)
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
    )


def _across(shape: FlatShape) -> int:
    """Return the group that some access lies along, which the last one strides through.

    Where a line of memory has one element for each step of the last group, the next
    step of this one finds it in the cache only if it comes soon.
    """
    if not shape.groups:
        return -1
    lane = shape.group(-1)[-1]
    crossing = [
        a
        for a in shape.found
        if abs(a.steps.get(lane, 0)) * a.tensor.dtype.itemsize >= CACHE_LINE
    ]
    for number in range(len(shape.groups) - 2, -1, -1):
        if any(is_unit(a, shape.group(number)[-1]) for a in crossing):
            return number
    return -1


def cpu_nest(loops: tuple[LoopIndex, ...], heuristic: CpuPointwise) -> Nest:
    """All groups but the last over the caller's range, with pieces of that; vectors."""
    builder = NestBuilder(loops, ())
    axes = builder.merged(heuristic.groups) or [builder.one()]
    is_tiled = heuristic.across >= 0
    row = None
    if heuristic.short:
        lane = axes.pop()
    else:
        width = TILE[1] if is_tiled else CHUNK
        axes[-1], lane = builder.split(axes[-1], width, LastTile.SHRINK)
    if is_tiled:
        k = heuristic.across
        axes[k], row = builder.split(axes[k], TILE[0], LastTile.SHRINK)
    builder.bind(builder.merge(axes), Binding.PARALLEL)
    if row is not None:
        builder.bind(row, Binding.SERIAL)
    builder.bind(lane, Binding.VECTOR)
    return builder.freeze()
