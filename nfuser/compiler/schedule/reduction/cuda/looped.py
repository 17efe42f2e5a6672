# SPDX-License-Identifier: Apache-2.0
"""Rows of a GPU that are read once a pass: by one block, or by several in parts."""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import space_of
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.schedule.facts.layout import power_of_two
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction, Geometry
from nfuser.compiler.schedule.reduction.cuda.geometry import (
    NARROW_BYTES,
    RESIDENT_THREADS,
    STEPS,
    cuda_heuristic,
    geometry_of,
    in_flight,
    is_narrow,
    under_way,
)
from nfuser.compiler.schedule.reduction.rewritten.expand import in_few_passes

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.reduction.row_shape import RowShape

KEPT_PER_THREAD = 32  # registers of a thread that a row takes before more threads help
LOOP_THREADS = 256  # of a block that keeps nothing: several fill a multiprocessor
AGAIN_THREADS = 512  # of a block at most that reads rows of single elements again
BLOCK_COST = 2  # turns along a row that beginning and ending a block costs
MEMORY_LINES = 256  # bytes of the columns that a block reads side by side, in parts
SUMS_PER_THREAD = 16  # registers for sums of columns, which have two each, in f64
LAUNCH_PACKETS = 6144  # that a multiprocessor would load while a launch begins and ends


def looped(
    fusion: Fusion, shape: RowShape, width: int, *, is_single: bool
) -> CudaReduction:
    """Let a block read a row once a pass, or several if one pass is all there is."""
    sums = _column_sums(fusion, shape) if is_single else 0
    width = _beside_sums(shape, width, sums)
    narrow = is_narrow(shape, width)
    is_light = is_single or narrow
    limit = LOOP_THREADS if is_light else shape.target.most_threads
    if narrow and not is_single:
        # The fewer rows are under way, the nearer they are the second time.
        while (
            limit < AGAIN_THREADS and under_way(shape, limit) > shape.target.near_bytes
        ):
            limit *= 2
    geometry, most = geometry_of(fusion, shape, width, limit)
    splits = splits_of(shape, geometry, width, most) if is_single else 1
    cost = _waves_cost(shape, geometry, width, most, splits)
    while splits > 1 and shape.inner and limit < shape.target.most_threads:
        # Larger blocks may fill the device as well, and need not meet.
        limit *= 2
        larger, more = geometry_of(fusion, shape, width, limit)
        if _waves_cost(shape, larger, width, more, 1) <= cost:
            geometry, most, splits = larger, more, 1
    return cuda_heuristic(
        fusion,
        shape,
        width,
        steps=0,
        threads=most,
        geometry=Geometry(geometry.fold, geometry.keep, splits),
        flight=_flight(shape, width),
        blocks=RESIDENT_THREADS // most if _fills(shape, sums) else 0,
        # One kernel serves all shorter rows, and all that are read but once.
        known=narrow and not is_single and geometry.fold == most,
    )


def _fills(shape: RowShape, sums: int) -> bool:
    """Tell whether a multiprocessor has registers for as many threads as any other.

    Across memory each lane of a packet has states of its own: sums of floats leave
    room; other states, and integers that become floats, may not.
    """
    of_floats = all(access.tensor.dtype.is_float for access in shape.found)
    return shape.inner or sums > 1 or (sums == 1 and of_floats)


def _column_sums(fusion: Fusion, shape: RowShape) -> int:
    """Return how many sums a thread has for each lane, if it folds nothing else."""
    found = fusion.reductions
    are_sums = all(r.op is ReduceOp.SUM and r.source.dtype.is_float for r in found)
    return len(found) if are_sums and not shape.inner else 0


def _beside_sums(shape: RowShape, width: int, sums: int) -> int:
    """Return the widest packet whose sums leave registers to threads and to loads."""
    while sums > 1 and width * shape.widest() > NARROW_BYTES:
        if 2 * sums * width <= SUMS_PER_THREAD:
            break
        width //= 2
    return width


def in_phases(fusion: Fusion, shape: RowShape, width: int) -> CudaReduction | None:
    """Let several blocks read a row, in a launch for each pass, if rows are few."""
    sums = _column_sums(fusion, shape)
    width = _beside_sums(shape, width, sums)
    geometry, most = geometry_of(fusion, shape, width, LOOP_THREADS)
    # All blocks of a row join all its parts: these are a small share of what they read.
    parts = max(isqrt(shape.length * shape.widest() // 64), 1)
    most = most if shape.inner else min(most, LOOP_THREADS)
    # Sums of each lane take registers: half as many threads share them.
    blocks = max(RESIDENT_THREADS // (most if shape.inner else 2 * most), 1)
    if not shape.inner:
        keep = _side_by_side(
            shape, width, most, _resident(shape, most, blocks) // parts
        )
        fold = min(power_of_two(-(-shape.length // STEPS)), most // keep, WARP)
        geometry = Geometry(fold, keep, 1)
    splits = min(splits_of(shape, geometry, width, most, blocks), parts)
    if splits <= 1:
        return None
    return cuda_heuristic(
        fusion,
        shape,
        width,
        steps=0,
        threads=most,
        geometry=Geometry(geometry.fold, geometry.keep, splits),
        flight=_flight(shape, width, KEPT_PER_THREAD if sums > 1 else 0),
        blocks=blocks,
        phases=True,
    )


def _side_by_side(shape: RowShape, width: int, most: int, least: int) -> int:
    """Return the packets of columns that a block reads side by side, in parts.

    They are fewer where there would be no more than ``least`` blocks beside each other.
    """
    packets, line = shape.rows // width, width * shape.widest()
    keep = min(MEMORY_LINES // line, power_of_two(max(packets, 1)), most)
    if packets <= keep * least:
        keep = min(keep, MEMORY_LINES // (2 * line))
    return max(keep, 1)


def phases_cost(fusion: Fusion, shape: RowShape, width: int) -> int:
    """Return the packets that a multiprocessor loads in the time that phases take."""
    packets = shape.rows * shape.length // (width * shape.target.multiprocessors)
    looped = in_few_passes(fusion)
    return (passes(looped) + 1) * (packets + LAUNCH_PACKETS)


def passes(fusion: Fusion) -> int:
    """Return how many passes over its rows fold something."""
    return max(space_of(fusion).levels.values(), default=-1) + 1


def _flight(shape: RowShape, width: int, room: int = 0) -> int:
    """Return how many packets of a row a thread loads before it waits for the first.

    They take up to ``room`` registers, if that is told.
    """
    room = room or (KEPT_PER_THREAD if shape.inner else KEPT_PER_THREAD // 2)
    most = in_flight(shape, width)
    words = shape.kept_words(1, width)
    if is_narrow(shape, width):
        # Each has an address as well: what all rows share counts, and no more fits.
        packets = room // (words + shape.common_words(1, width))
        return min(most, 1 << max(packets.bit_length() - 1, 0))
    return max(1, min(most, power_of_two(room // words)))


def splits_of(
    shape: RowShape, geometry: Geometry, width: int, most: int, blocks: int = 0
) -> int:
    """Return how many blocks share a row, so that the device is full to the end.

    The blocks that a device runs at once make a wave, ``blocks`` on a multiprocessor if
    that is told; as many waves are taken as waste least. Rows of a few turns only are
    not worth a meeting of blocks.
    """
    tiles, turns = _tiles_and_turns(shape, geometry, width)
    resident = _resident(shape, most, blocks)

    def cost(splits: int) -> int:
        return _waves_cost(shape, geometry, width, most, splits, blocks)

    full = (waves * resident // max(tiles, 1) for waves in range(1, 5))
    limit = min(turns // 4, shape.target.most_threads)
    useful = [min(s, limit) for s in full if min(s, limit) > 1]
    best = min(useful, key=cost, default=1)
    return best if 10 * cost(best) < 9 * cost(1) else 1


def _waves_cost(
    shape: RowShape,
    geometry: Geometry,
    width: int,
    most: int,
    splits: int,
    blocks: int = 0,
) -> int:
    """Return the turns that a multiprocessor spends, in waves of blocks."""
    tiles, turns = _tiles_and_turns(shape, geometry, width)
    waves = -(-tiles * splits // _resident(shape, most, blocks))
    return waves * (-(-turns // splits) + BLOCK_COST)


def _tiles_and_turns(
    shape: RowShape, geometry: Geometry, width: int
) -> tuple[int, int]:
    """Return the groups of rows that blocks take, and the turns along one."""
    along, across = (width, 1) if shape.inner else (1, width)
    tiles = -(-shape.rows // (geometry.keep * across))
    return tiles, -(-shape.length // (geometry.fold * along * STEPS))


def _resident(shape: RowShape, most: int, blocks: int) -> int:
    """Return the blocks that run at once: all that threads allow, or those told."""
    return shape.target.multiprocessors * (blocks or max(RESIDENT_THREADS // most, 1))
