# SPDX-License-Identifier: Apache-2.0
"""The loop nests of reductions, one a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.nest import Binding, LastTile, LoopAxis, Nest, NestBuilder

if TYPE_CHECKING:
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.heuristics.cpu import CpuReduction
    from nfuser.compiler.schedule.heuristics.cuda import CudaReduction


def cuda_nest(
    space: Space,
    heuristic: CudaReduction,
    share: Scalar | None,
    begin: Scalar | None = None,
) -> Nest:
    """Rows over blocks, one row over threads; packets along memory.

    Where rows ``begin`` anywhere between two packets, these are counted from the first
    boundary on, and the first threads of a row take the elements that are left.

    A block takes ``share`` rows after each other, if that is not None. The threads of a
    row are x where memory runs along the row (a warp then reads neighbours and folds by
    shuffles), else y.
    """
    builder = NestBuilder(space.kept, space.reduced)
    kept = builder.merged(heuristic.kept)
    reduced = builder.merged(heuristic.reduced)
    lanes = reduced if heuristic.inner else kept
    packet = None
    if begin is not None:
        # Two packets that hold one across them have to end with the row.
        spare = bool(heuristic.across)
        lanes[-1], packet = builder.align(
            lanes[-1], heuristic.width, begin, heuristic.line, spare=spare
        )
    elif heuristic.width > 1:
        lanes[-1], packet = builder.split(lanes[-1], heuristic.width, LastTile.EXACT)
    fold, keep = Binding.THREAD_X, Binding.THREAD_Y
    if not heuristic.inner:
        fold, keep = keep, fold
    _bind_rows(builder, kept, heuristic, keep, share)
    if reduced:
        place = _bind_fold(builder, reduced, heuristic, fold)
        if begin is not None:
            builder.bind_rest(lanes[-1], place)
    if packet is not None:
        builder.bind(packet, Binding.PACKET)
    return builder.freeze()


def _bind_rows(
    builder: NestBuilder,
    kept: list[LoopAxis],
    heuristic: CudaReduction,
    threads: Binding,
    share: Scalar | None,
) -> None:
    block = builder.merge(kept) if kept else builder.one()
    thread = turn = None
    if share is not None:
        block, turn = builder.split(block, share, LastTile.SHRINK)
    if heuristic.keep is not sc.const(1):
        block, thread = builder.split(block, heuristic.keep, LastTile.CLAMP)
    if share is None and heuristic.rounds is not sc.const(1):
        block, turn = builder.split(block, heuristic.rounds, LastTile.SHRINK)
    builder.bind_blocks(block, from_last=heuristic.from_last)
    if turn is not None:
        builder.bind(turn, Binding.SERIAL)
    if thread is not None:
        builder.bind(thread, threads)


def _bind_fold(
    builder: NestBuilder,
    reduced: list[LoopAxis],
    heuristic: CudaReduction,
    threads: Binding,
) -> LoopAxis:
    """Bind what runs along a row; return the place among all that share one."""
    along = builder.merge(reduced)
    share = heuristic.fold * heuristic.splits
    flight = 1 if heuristic.is_persistent else heuristic.flight
    step, place = builder.split(
        along, share * flight, _row_end(heuristic, along.extent)
    )
    together = None
    if flight > 1:
        together, place = builder.split(place, share, LastTile.EXACT)
    among = place
    if heuristic.is_split:
        block, place = builder.split(place, heuristic.fold, LastTile.EXACT)
        builder.bind(block, Binding.BLOCK_Y)
    if heuristic.is_persistent:
        builder.bind(step, Binding.UNROLLED, heuristic.steps)
    else:
        builder.bind(step, Binding.SERIAL)
    if together is not None:
        builder.bind(together, Binding.UNROLLED, flight)
    builder.bind(place, threads)
    return among


def _row_end(heuristic: CudaReduction, length: Scalar) -> LastTile:
    """Return what becomes of steps beyond the end of a row.

    Where packets are kept in registers, all are loaded: those beyond repeat the last.
    A register that a load may skip must be cleared first, and what is loaded under a
    condition is widened there, to be kept as f32; else it stays as it is stored. Rows
    of no length, which fusions know of, have no last packet.
    """
    is_single = heuristic.inner and heuristic.width == 1 and not heuristic.exact
    keeps_packets = heuristic.is_persistent and bool(heuristic.packed or is_single)
    is_alone = not (heuristic.is_split or heuristic.as_stored)
    has_last = keeps_packets and is_alone and length is not sc.const(0)
    return LastTile.CLAMP if has_last else LastTile.GUARD


def cpu_nest(space: Space, heuristic: CpuReduction, share: Scalar | None) -> Nest:
    """Rows, or parts of rows, over the caller's range; vectors along memory.

    Where ``share`` is not None, a piece of that range is so many rows.

    Where memory runs along the kept loops, a tile of columns is folded at once, for
    several rows after each other where they share what is staged.
    """
    builder = NestBuilder(space.kept, space.reduced)
    kept = builder.merged(heuristic.kept)
    reduced = builder.merged(heuristic.reduced)
    lane = turn = None
    if heuristic.inner:
        lane = reduced.pop() if reduced else None
    else:
        kept[-1], lane = builder.split(kept[-1], heuristic.columns, LastTile.SHRINK)
    if staged := heuristic.staged:
        k = staged.across
        kept[k], turn = builder.split(kept[k], staged.rounds_knob, LastTile.SHRINK)
    rows = builder.merge(kept) if kept else builder.one()
    if share is not None:
        rows, turn = builder.split(rows, share, LastTile.SHRINK)
    builder.bind(rows, Binding.PARALLEL)
    if turn is not None:
        builder.bind(turn, Binding.SERIAL)
    if lane is not None and heuristic.inner and heuristic.chunk:
        chunk, lane = builder.split(lane, heuristic.chunk, LastTile.SHRINK)
        if heuristic.is_split:
            chunk = _share_out(builder, chunk, heuristic.parts)
        reduced.append(chunk)
    if heuristic.is_split and not heuristic.inner:
        reduced[0] = _share_out(builder, reduced[0], heuristic.parts)
    if reduced and not heuristic.inner and heuristic.chunk:
        reduced[-1:] = builder.split(reduced[-1], heuristic.chunk, LastTile.SHRINK)
    for axis in reduced:
        builder.bind(axis, Binding.SERIAL)
    if lane is not None:
        builder.bind(lane, Binding.VECTOR)
    return builder.freeze()


def _share_out(builder: NestBuilder, axis: LoopAxis, parts: int) -> LoopAxis:
    """Deal ``axis`` out to ``parts`` of a row; return what is left of it for one."""
    share = (axis.extent + (parts - 1)) // parts
    part, rest = builder.split(axis, share, LastTile.SHRINK)
    builder.bind(part, Binding.BLOCK_Y)
    return rest
