# SPDX-License-Identifier: Apache-2.0
"""How many threads of a GPU's block share a row, or columns, and in which packets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.schedule.facts.layout import power_of_two
from nfuser.compiler.schedule.facts.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction, Geometry
from nfuser.compiler.schedule.reduction.folding import is_single_pass, sums_in_f64
from nfuser.compiler.schedule.reduction.rewritten.expand import in_few_passes

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.reduction.row_shape import RowShape

SINGLE_BYTES = 4  # of single elements that fill lines; narrower ones wait for more
ACROSS = WARP  # columns, or packets of them, that are read side by side across memory
LEAST_ACROSS = 4  # of them, where long columns leave a block no room for more
STEPS = 4  # packets of a row that a thread has in flight
NARROW = 4  # times as many, at most, where packets are narrower
LONG_STEPS = 32  # of single elements, where rows are long
PACKET_BYTES = 16  # of the widest packet
NARROW_BYTES = 8  # from which on a packet is as good as the widest, nearly
TALL = 4096  # elements of a column from which on several passes are long
LINE_BYTES = 64  # that the threads of a short row read side by side
LOADED_PER_THREAD = 40  # of them, as packets are loaded
BESIDE_KEPT = 28  # registers of a thread for addresses, and for what is being computed
RESIDENT_THREADS = 1024  # of a multiprocessor, for which there are 64 registers each
LONG_THREADS = 512  # of a row of single elements: one that gives them more is long


_PAIRS = (
    *(ReduceOp.ARGMAX, ReduceOp.ARGMIN),
    *(ReduceOp.EXPONENTIALS, ReduceOp.EXPONENTIALS_NEAR),
)


def cuda_heuristic(
    fusion: Fusion,
    shape: RowShape,
    width: int,
    *,
    steps: int,
    threads: int,
    geometry: Geometry,
    flight: int = 1,
    blocks: int = 0,
    is_shared: bool = False,
    as_stored: bool = False,
    eager: bool = False,
    exact: bool = False,
    in_step: bool = False,
    cluster: bool = False,
    phases: bool = False,
    known: bool = False,
) -> CudaReduction:
    """Return a heuristic whose threads and blocks are given at the launch.

    A kernel then serves rows of any length. The threads of blocks that share rows are
    always as many; those that go by single elements are ``known`` for their addresses.
    """
    known = known or is_shared or exact
    tensors, leader = memory_tensors(fusion), shape.leader(width)
    return CudaReduction(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        shape.inner,
        width,
        steps,
        Geometry(
            fold=geometry.fold if known else 0,
            keep=geometry.keep if known else 0,
            splits=_known_splits(geometry, is_shared=is_shared, cluster=cluster),
            rounds=0 if is_shared else 1,
        ),
        wide_index=needs_wide_index(fusion, shape.facts),
        compensated=steps == 0 and sums_in_f64(fusion),
        packed=shape.packed(width, tensors),
        leader=(tensors.index(leader.tensor), leader.point) if leader else None,
        line=shape.line(width, is_kept=steps > 0),
        across=shape.across(width, tensors),
        threads=threads,
        flight=flight,
        blocks=blocks,
        as_stored=as_stored,
        eager=eager,
        exact=exact,
        in_step=in_step,
        cluster=cluster,
        phases=phases,
        geometry=geometry,
        # Blocks that share a row wait for each other, in the order in which they begin.
        from_last=shape.target.from_last and geometry.splits == 1 and not is_shared,
    )


def _known_splits(geometry: Geometry, *, is_shared: bool, cluster: bool) -> int:
    """Return how many blocks share a row, if the kernel is made for that, or 0."""
    return 0 if (is_shared or geometry.splits > 1) and not cluster else geometry.splits


def geometry_of(
    fusion: Fusion, shape: RowShape, width: int, limit: int
) -> tuple[Geometry, int]:
    """Return the threads of a row and of a block, and the most a block may have.

    Up to ``limit`` threads share a row along memory.
    """
    if shape.inner:
        packets = max(shape.length // width, 1)
        steps = in_flight(shape, width)
        if steps > STEPS and packets > steps * LONG_THREADS:
            steps = LONG_STEPS
        fold = _whole(-(-packets // steps))  # any number of warps can meet
        beside = max(LINE_BYTES // (width * shape.widest()), 1)
        fold = max(fold, min(power_of_two(packets), beside))
        while fold < limit and (
            words_of(shape, fold, width) > LOADED_PER_THREAD
            or _is_alone(shape, fold, width)
        ):
            fold *= 2
        fold = min(fold, limit)
        # More than a warp for a row, and rows would share what their warps leave.
        rows = max(power_of_two(shape.rows), WARP // fold)  # a warp is whole
        keep = min(128 // fold, rows) if fold <= WARP else 1
        return Geometry(fold, keep, 1), limit
    most = most_across(fusion, shape, width)
    across = _across(shape, width)
    keep = min(across, power_of_two(max(shape.rows // width, 1)), most)
    is_near = shape.rows * shape.length * shape.widest() <= shape.target.near_bytes
    is_alone = shape.length >= TALL and not is_single_pass(fusion)  # no block helps it
    busy = shape.target.multiprocessors * width
    while (
        (is_near or is_alone) and keep > LEAST_ACROSS and shape.rows <= keep * busy // 2
    ):
        keep //= 2  # what lies in the cache already comes faster to more blocks
    fold = min(power_of_two(-(-shape.length // STEPS)), most // keep, WARP)
    return Geometry(fold, keep, 1), most


def _across(shape: RowShape, width: int) -> int:
    """Return the columns, or packets of them, that are read side by side.

    Rows of single elements begin anywhere in a line of memory, and blocks beside each
    other both read the line between them: there are more columns between two such
    lines, if the last block still has nearly as many as the others.
    """
    wide = NARROW * ACROSS
    missing = -shape.rows % wide
    is_single = width == 1 and shape.widest() == SINGLE_BYTES
    return wide if is_single and 16 * missing <= shape.rows else ACROSS


def _is_alone(shape: RowShape, fold: int, width: int) -> bool:
    """Tell whether a block that keeps a row leaves no registers for another block.

    More threads then have something to do while some wait for memory.
    """
    words = shape.kept_words(shape.steps(fold, width), width) + BESIDE_KEPT
    return 2 * fold * words > shape.target.registers


def in_flight(shape: RowShape, width: int) -> int:
    """Return the packets of a row that a thread loads before it needs the first.

    Narrow ones bring less each: more of them keep memory as busy.
    """
    size = width * shape.widest_along()
    return STEPS * min(PACKET_BYTES // size, NARROW) if size < NARROW_BYTES else STEPS


def is_narrow(shape: RowShape, width: int) -> bool:
    """Tell whether a row goes by packets so narrow that each costs instructions."""
    return shape.inner and in_flight(shape, width) > STEPS


def under_way(shape: RowShape, threads: int) -> int:
    """Return the bytes of the rows that blocks of ``threads`` loop over at once."""
    blocks = shape.target.multiprocessors * RESIDENT_THREADS // threads
    return shape.length * shape.read_again_bytes() * blocks


def _whole(threads: int) -> int:
    """Return the least number of threads from ``threads`` that fold by whole warps."""
    if threads <= WARP:
        return power_of_two(threads)
    return -(-threads // WARP) * WARP


def most_across(fusion: Fusion, shape: RowShape, width: int) -> int:
    """Return the most threads of a block that folds columns.

    States pass through shared memory, through two places in turn if they are several.
    """
    found = in_few_passes(fusion).reductions
    is_f64 = sums_in_f64(fusion)  # then a sum may keep what it lost beside it
    wide = (ReduceOp.SUM, DType.F64)  # in which all sums of floats are added up
    is_sum = {r: r.op is ReduceOp.SUM and r.source.dtype.is_float for r in found}
    firsts = {wide if is_sum[r] else (None, r.source.dtype.compute) for r in found}
    beside = {op for op in (*_PAIRS, ReduceOp.SUM) if any(r.op is op for r in found)}
    seconds = beside if is_f64 else beside - {ReduceOp.SUM}
    values = (len(firsts) + len(seconds)) * min(len(found), 2)
    most = 512
    while most > 1 and most * 8 * values * width > shape.target.block_bytes:
        most //= 2
    return most


def words_of(shape: RowShape, fold: int, width: int) -> int:
    """Return the registers of a thread for what it loads of a row."""
    return shape.loaded_words(shape.steps(fold, width), width)
