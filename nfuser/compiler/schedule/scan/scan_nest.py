# SPDX-License-Identifier: Apache-2.0
"""The loop nests of scans, one a target.

The scanned loops stay in the order in which the scan goes along them, whatever memory
does; the others run as memory does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.nest import Binding, LastTile, LoopAxis, Nest, NestBuilder

if TYPE_CHECKING:
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.heuristics.heuristics import ScanHeuristic

CPU_TILE = 256  # columns that a CPU thread scans side by side


def cuda_nest(
    space: Space, heuristic: ScanHeuristic, begin: Scalar | None = None
) -> Nest:
    """Rows over blocks, one row over threads, in steps; packets along memory.

    Where rows ``begin`` anywhere between two packets, these are counted from the first
    boundary on.

    Where memory runs along the row, a warp takes neighbours of the row, item after
    item; the warps of a block come one after another. Across memory a thread takes
    neighbours of its column, and the threads of a column come one after another.
    """
    builder = NestBuilder(space.kept, space.reduced)
    kept = builder.merged(heuristic.kept)
    along = builder.merged(heuristic.reduced)
    packet = None
    lanes, width = along if heuristic.inner else kept, heuristic.width
    if begin is not None:
        lanes[-1], packet = builder.align(lanes[-1], width, begin, width, spare=False)
    elif width > 1:
        lanes[-1], packet = builder.split(lanes[-1], width, LastTile.EXACT)
    _bind_rows(builder, kept, heuristic)
    bind_steps = _bind_row if heuristic.inner else _bind_column
    threads = bind_steps(builder, builder.merge(along), heuristic)
    if begin is not None:
        builder.bind_ends(lanes[-1], threads)
    if packet is not None:
        builder.bind(packet, Binding.PACKET)
    return builder.freeze()


def _bind_rows(
    builder: NestBuilder, kept: list[LoopAxis], heuristic: ScanHeuristic
) -> None:
    rows = builder.merge(kept) if kept else builder.one()
    if heuristic.keep == 1:
        builder.bind(rows, Binding.BLOCK_X)
        return
    block, thread = builder.split(rows, heuristic.keep, LastTile.CLAMP)
    builder.bind(block, Binding.BLOCK_X)
    across = Binding.THREAD_Y if heuristic.inner else Binding.THREAD_X
    builder.bind(thread, across)


def _bind_row(
    builder: NestBuilder, along: LoopAxis, heuristic: ScanHeuristic
) -> LoopAxis:
    lanes = min(heuristic.fold, WARP)
    # What lies beyond the end is read again and counts for nothing: no branch keeps
    # the loads of several packets from being under way at once.
    share = heuristic.fold * heuristic.items
    step, part = builder.split(along, share, LastTile.CLAMP)
    warp, part = builder.split(part, lanes * heuristic.items, LastTile.EXACT)
    item, lane = builder.split(part, lanes, LastTile.EXACT)
    builder.bind(step, Binding.SERIAL)
    builder.bind(item, Binding.UNROLLED)
    thread = builder.merge([warp, lane])
    builder.bind(thread, Binding.THREAD_X)
    return thread


def _bind_column(
    builder: NestBuilder, along: LoopAxis, heuristic: ScanHeuristic
) -> LoopAxis:
    step, part = builder.split(along, heuristic.fold * heuristic.items, LastTile.CLAMP)
    thread, item = builder.split(part, heuristic.items, LastTile.EXACT)
    builder.bind(step, Binding.SERIAL)
    builder.bind(item, Binding.UNROLLED)
    builder.bind(thread, Binding.THREAD_Y)
    return thread


def cpu_nest(space: Space, heuristic: ScanHeuristic) -> Nest:
    """Rows over the caller's range; one row, or a tile of columns, at a time."""
    builder = NestBuilder(space.kept, space.reduced)
    kept = builder.merged(heuristic.kept)
    along = builder.merged(heuristic.reduced)
    if heuristic.inner:
        lane = along.pop()
    else:
        kept[-1], lane = builder.split(kept[-1], CPU_TILE, LastTile.SHRINK)
    builder.bind(builder.merge(kept) if kept else builder.one(), Binding.PARALLEL)
    for axis in along:
        builder.bind(axis, Binding.SERIAL)
    builder.bind(lane, Binding.VECTOR)
    return builder.freeze()
