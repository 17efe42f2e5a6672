# SPDX-License-Identifier: Apache-2.0
"""How a GPU runs a fusion with reductions: the numbers, by the sizes of one call.

Rows are kept by the block that folds them, kept by several blocks that exchange what
they fold, or read anew in each pass over them; the last form leaves a row to several
blocks where one pass is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.space import reads, space_of
from nfuser.dtypes import DType
from nfuser.ir.expr import Argument, Pointwise, ReduceOp
from nfuser.schedule.facts.memory import memory_tensors, needs_wide_index, patterns
from nfuser.schedule.facts.target import WARP
from nfuser.schedule.facts.weight import ROW_LIMIT, limited, weight, weight_in_rows
from nfuser.schedule.heuristics.cuda import CudaReduction, Geometry
from nfuser.schedule.reduction.expand import expand_moments, fold_exponentials
from nfuser.schedule.reduction.folding import has_moments, is_single_pass, sums_in_f64
from nfuser.schedule.reduction.row_shape import power_of_two

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.domains.maps import Read
    from nfuser.ir.fusion import Fusion
    from nfuser.schedule.reduction.row_shape import RowShape

ACROSS = WARP  # columns, or packets of them, that are read side by side across memory
LEAST_ACROSS = 4  # of them, where long columns leave a block no room for more
STEPS = 4  # packets of a row that a thread has in flight
NARROW = 4  # times as many, at most, where packets are narrower
LONG_STEPS = 32  # of single elements, where rows are long
MOST_STEPS = 36  # of them, where a block has all threads there may be
PACKET_BYTES = 16  # of the widest packet
NARROW_BYTES = 8  # from which on a packet is as good as the widest, nearly
TALL = 4096  # elements of a column from which on several passes are long
LINE_BYTES = 64  # that the threads of a short row read side by side
KEPT_PER_THREAD = 32  # registers of a thread that a row takes before more threads help
LOADED_PER_THREAD = 40  # of them, as packets are loaded
COMMON_PER_THREAD = 16  # for what all rows share, loaded before a barrier
LOOP_THREADS = 256  # of a block that keeps nothing: several fill a multiprocessor
AGAIN_THREADS = 512  # of a block at most that reads rows of single elements again
RESIDENT_THREADS = 1024  # of a multiprocessor, for which there are 64 registers each
SHARE_THREADS = 512  # of a block that keeps a part of a row, in 128 registers each
SHARE_BLOCKS = 1  # of these on a multiprocessor: the fewer, the sooner they have met
SHARE_KEPT = 72  # registers of a thread that its part takes at most
SHARE_SPARE = 24  # registers that long unrolled rows take besides
STORED_THREADS = 512  # of a block that keeps a row in shared memory
STORED_BLOCKS = 3  # of these on a multiprocessor, in 40 registers a thread
STATES_BYTES = 2 * 1024  # of a block's shared memory: states, and the system's part
LIGHT = 4  # weight below which computing again beats keeping
ROUND_COST = 6  # steps along a row that a meeting of its blocks costs, roughly
ROUNDS_IN_STEP = 48  # rounds for which blocks stay roughly in step
BLOCK_COST = 2  # turns along a row that beginning and ending a block costs


def cuda_choice(fusion: Fusion, shape: RowShape) -> CudaReduction:
    """Keep rows in a block, else share them, else read them once a pass."""
    width = limited(shape.width(), fusion)
    if kept := _kept_as_stored(fusion, shape, width) or _kept(fusion, shape, width):
        return kept
    is_single = is_single_pass(fold_exponentials(fusion))
    is_looped = is_single or _is_read_again(fusion, shape, width)
    shared = None if is_looped else _shared(fusion, shape, width)
    return shared or _looped(fusion, shape, width, is_single=is_single)


def _heuristic(
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
    known: bool = False,
) -> CudaReduction:
    """Return a heuristic whose threads and blocks are given at the launch.

    A kernel then serves rows of any length. The threads of blocks that share rows are
    always as many; those that go by single elements are ``known`` for their addresses.
    """
    known = known or is_shared or exact
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
            splits=0 if is_shared or geometry.splits > 1 else 1,
            rounds=0 if is_shared else 1,
        ),
        wide_index=needs_wide_index(fusion, shape.facts),
        compensated=steps == 0 and sums_in_f64(fusion),
        packed=shape.packed(width, memory_tensors(fusion)),
        threads=threads,
        flight=flight,
        blocks=blocks,
        as_stored=as_stored,
        eager=eager,
        exact=exact,
        in_step=in_step,
        geometry=geometry,
    )


# -- rows that one block keeps ---------------------------------------------------------


def _kept(fusion: Fusion, shape: RowShape, width: int) -> CudaReduction | None:
    geometry, most = _geometry(fusion, shape, width, shape.target.most_threads)
    # A single pass has nothing to keep, unless it is one of moments over rows.
    if is_single_pass(fusion):
        is_cut = _splits(shape, geometry, width, most) > 1
        if not shape.inner or is_cut or not has_moments(fusion):
            return None
    threads = geometry.fold * geometry.keep
    exact = _is_exact(shape, geometry, width)
    steps = (
        shape.least_steps(geometry.fold, 1)
        if exact
        else _steps(shape, geometry.fold, width)
    )
    words = shape.kept_words(steps, width)
    if words > _register_budget(fusion, shape, threads):
        return None
    blocks = (
        shape.target.registers // (threads * (words + _spare(fusion))) if exact else 0
    )
    if exact and steps > MOST_STEPS:
        return None
    if exact and blocks < 2 and _is_read_twice(fusion, shape):
        return None
    if steps * width * weight(fusion) > ROW_LIMIT:
        return None
    # More threads would leave each fewer registers than rows and packets need.
    most = threads if exact else 256 if threads <= 256 else most
    while most // 2 >= threads and words > _register_budget(fusion, shape, most):
        most //= 2
    common = shape.common_words(steps, width)
    has_room = words + common <= _register_budget(fusion, shape, most)
    return _heuristic(
        fusion,
        shape,
        width,
        steps=steps,
        threads=most,
        geometry=geometry,
        eager=shape.inner
        and has_room
        and (0 < common <= COMMON_PER_THREAD or _reads_rows_later(fusion)),
        exact=exact,
        blocks=blocks,
    )


def _reads_rows_later(fusion: Fusion) -> bool:
    """Tell whether something is folded that the first pass over a row does not read."""
    space = space_of(fusion)

    def read(levels: Iterable[int]) -> set[Read]:
        found = [r for r, level in space.levels.items() if level in levels]
        begin = [(r.source, space.source_point(r)) for r in found]
        keys = reads(fusion, list(dict.fromkeys(begin)))
        return {k for k in keys if isinstance(fusion.definition[k[0]], Argument)}

    whole = max((t.ndim for t, _ in read(range(len(fusion.exprs)))), default=0)
    later = read(range(1, len(fusion.exprs))) - read((0,))
    return any(t.ndim == whole for t, _ in later)


def _steps(shape: RowShape, fold: int, width: int) -> int:
    """Return how often a thread goes on along its row: more than it must, often.

    Then one kernel serves short rows too.
    """
    steps = _in_flight(shape, width) if shape.inner else 1
    while steps > 1 and shape.loaded_words(steps, width) > LOADED_PER_THREAD:
        steps //= 2
    return (
        steps if shape.least_steps(fold, width) <= steps else shape.steps(fold, width)
    )


def _geometry(
    fusion: Fusion, shape: RowShape, width: int, limit: int
) -> tuple[Geometry, int]:
    """Return the threads of a row and of a block, and the most a block may have.

    Up to ``limit`` threads share a row along memory.
    """
    if shape.inner:
        packets = max(shape.length // width, 1)
        steps = _in_flight(shape, width)
        if steps > STEPS and packets > steps * SHARE_THREADS:
            steps = LONG_STEPS
        fold = _whole(-(-packets // steps))  # any number of warps can meet
        beside = max(LINE_BYTES // (width * shape.widest()), 1)
        fold = max(fold, min(power_of_two(packets), beside))
        while fold < limit and _words(shape, fold, width) > LOADED_PER_THREAD:
            fold *= 2
        fold = min(fold, limit)
        # More than a warp for a row, and rows would share what their warps leave.
        rows = max(power_of_two(shape.rows), WARP // fold)  # a warp is whole
        keep = min(128 // fold, rows) if fold <= WARP else 1
        return Geometry(fold, keep, 1), limit
    most = _most_across(fusion, shape, width)
    keep = min(ACROSS, power_of_two(max(shape.rows // width, 1)), most)
    is_near = shape.rows * shape.length * shape.widest() <= shape.target.near_bytes
    is_alone = shape.length >= TALL and not is_single_pass(fusion)  # no block helps it
    busy = shape.target.multiprocessors * width
    while (
        (is_near or is_alone) and keep > LEAST_ACROSS and shape.rows <= keep * busy // 2
    ):
        keep //= 2  # what lies in the cache already comes faster to more blocks
    fold = min(power_of_two(-(-shape.length // STEPS)), most // keep, WARP)
    return Geometry(fold, keep, 1), most


def _in_flight(shape: RowShape, width: int) -> int:
    """Return the packets of a row that a thread loads before it needs the first.

    Narrow ones bring less each: more of them keep memory as busy.
    """
    size = width * shape.widest_along()
    return STEPS * min(PACKET_BYTES // size, NARROW) if size < NARROW_BYTES else STEPS


def _is_exact(shape: RowShape, geometry: Geometry, width: int) -> bool:
    """Tell whether a kernel is for rows that just so many steps of its threads fill.

    Single elements cost instructions: addresses in steps that are known, and an end in
    the last of them only, are worth a kernel for each number of warps.
    """
    return width == 1 and geometry.fold > WARP and _is_narrow(shape, width)


def _is_narrow(shape: RowShape, width: int) -> bool:
    """Tell whether a row goes by packets so narrow that each costs instructions."""
    return shape.inner and _in_flight(shape, width) > STEPS


def _is_read_again(fusion: Fusion, shape: RowShape, width: int) -> bool:
    """Tell whether rows of narrow packets are read again, out of a cache mostly.

    That costs less than to keep so many, with an address and an end for each; with
    weights beside them, also where they do not fit the cache.
    """
    is_near = _under_way(shape, LOOP_THREADS) <= shape.target.cache_bytes
    has_weights = width == 1 and shape.common_words(1, width) > 0
    is_better = is_near or _is_read_twice(fusion, shape)
    is_better = is_better or (has_weights and _is_full(shape))
    return _is_narrow(shape, width) and is_better


def _is_read_twice(fusion: Fusion, shape: RowShape) -> bool:
    """Tell whether rows that leave a multiprocessor no other are rather read twice.

    Where it keeps one it has nothing to do while the next is read.
    """
    is_near = _under_way(shape, AGAIN_THREADS) <= shape.target.cache_bytes
    levels = space_of(fold_exponentials(fusion)).levels.values()
    has_two_passes = max(levels) == 0 and not has_moments(fusion)
    return is_near and has_two_passes and _is_full(shape)


def _is_full(shape: RowShape) -> bool:
    """Tell whether rows keep all multiprocessors busy, with a block each."""
    return shape.rows > shape.target.multiprocessors


def _under_way(shape: RowShape, threads: int) -> int:
    """Return the bytes of the rows that blocks of ``threads`` loop over at once."""
    blocks = shape.target.multiprocessors * RESIDENT_THREADS // threads
    return shape.length * shape.read_again_bytes() * blocks


def _whole(threads: int) -> int:
    """Return the least number of threads from ``threads`` that fold by whole warps."""
    if threads <= WARP:
        return power_of_two(threads)
    return -(-threads // WARP) * WARP


def _most_across(fusion: Fusion, shape: RowShape, width: int) -> int:
    """Return the most threads of a block that folds columns.

    Each value of each state passes through shared memory of its own.
    """
    looped = fold_exponentials(expand_moments(fusion, one_pass=True))
    is_f64 = sums_in_f64(fusion)  # then a sum may keep what it lost beside it
    twos = (*_PAIRS, ReduceOp.SUM) if is_f64 else _PAIRS
    values = sum(2 if r.op in twos else 1 for r in looped.reductions)
    most = 512
    while most > 1 and most * 8 * values * width > shape.target.block_bytes:
        most //= 2
    return most


_PAIRS = (
    *(ReduceOp.ARGMAX, ReduceOp.ARGMIN),
    *(ReduceOp.EXPONENTIALS, ReduceOp.EXPONENTIALS_NEAR),
)


def _words(shape: RowShape, fold: int, width: int) -> int:
    return shape.loaded_words(shape.steps(fold, width), width)


def _register_budget(fusion: Fusion, shape: RowShape, threads: int) -> int:
    """Return the 32-bit registers of a thread that rows may take."""
    return min(shape.target.registers // max(threads, 256), 192) - _spare(fusion)


def _spare(fusion: Fusion) -> int:
    """Return the registers that addresses take, and what is being computed."""
    is_wide = any(t.dtype is DType.F64 for t in fusion.definition)
    names = {e.op.name for e in fusion.exprs if isinstance(e, Pointwise)}
    return 44 if is_wide else 36 if "divide" in names else 28  # quotients are in f64


# -- rows that one block keeps as they are stored --------------------------------------


def _kept_as_stored(
    fusion: Fusion, shape: RowShape, width: int
) -> CudaReduction | None:
    """Let a block keep a row in shared memory, where one is long.

    A multiprocessor then holds several rows that would fill its registers one by one,
    16-bit floats in half the room, and has something to do while one is read.
    """
    if not shape.inner or weight(fusion) > LIGHT or is_single_pass(fusion):
        return None
    geometry, _ = _geometry(fusion, shape, width, shape.target.most_threads)
    stored = shape.stored_bytes(width)
    # Its registers would leave no room for those of another row.
    room = _register_budget(fusion, shape, 2 * geometry.fold)
    if stored is None or _words(shape, geometry.fold, width) <= room:
        return None
    threads = STORED_THREADS

    def fitting(steps: int) -> int:
        taken = steps * threads * width * stored + STATES_BYTES
        return min(shape.target.shared_bytes // taken, STORED_BLOCKS)

    # Powers of two serve more lengths, if they cost no block.
    least = shape.least_steps(threads, width)
    steps = shape.steps(threads, width)
    steps = least if fitting(least) > fitting(steps) else steps
    blocks = fitting(steps)
    if blocks < 2:
        return None
    return _heuristic(
        fusion,
        shape,
        width,
        steps=steps,
        threads=threads,
        geometry=Geometry(threads, 1, 1),
        blocks=blocks,
        as_stored=True,
    )


# -- rows that several blocks keep -----------------------------------------------------


def _shared(fusion: Fusion, shape: RowShape, width: int) -> CudaReduction | None:
    """Let blocks that all run at once keep a row between them.

    As many share a row as their registers need, or a few more where the groups then
    fill the device better.
    """
    if is_single_pass(fusion):
        return None
    threads = SHARE_THREADS
    if not shape.inner:
        # Columns meet twice in shared memory: in a block, and after an exchange.
        threads = min(threads, _most_across(fusion, shape, width) // 2)
    room = _register_budget(fusion, shape, threads * SHARE_BLOCKS) - SHARE_SPARE
    room = min(room, SHARE_KEPT)
    if not shape.inner:
        room -= 2 * width  # sums of each lane of a packet
    exact = width == 1 and _is_narrow(shape, width)
    words = shape.kept_words(1, width)
    # Single elements of what all rows share are on their way for all steps at once.
    words += shape.common_words(1, width) if exact else 0
    steps = min(
        room // words,
        ROW_LIMIT // max(width * weight_in_rows(fusion), 1),
    )
    resident = SHARE_BLOCKS * shape.target.multiprocessors
    along, across = (width, 1) if shape.inner else (1, width)
    places = -(-shape.length // along)
    keep = min(ACROSS, power_of_two(-(-shape.rows // width)), threads)
    keep = 1 if shape.inner else keep
    least = -(-places * keep // (steps * threads)) if steps else 0
    while least > resident and keep > LEAST_ACROSS:
        keep //= 2
        least = -(-places * keep // (steps * threads))
    if not 0 < least <= resident:
        return None
    fold = threads // keep
    tiles = -(-shape.rows // (keep * across))

    def cost(splits: int) -> int:
        rounds = -(-tiles // (resident // splits))
        return rounds * (-(-places // (splits * fold)) + ROUND_COST)

    splits = min(range(least, min(4 * least, resident) + 1), key=cost)
    # As many as there may be serve all lengths, but each costs instructions.
    needed = power_of_two(-(-places // (splits * fold)))
    steps = min(steps, max(needed, STEPS))
    steps = -(-places // (splits * fold)) if exact else steps
    rounds = -(-tiles // (resident // splits))
    return _heuristic(
        fusion,
        shape,
        width,
        steps=steps,
        threads=threads,
        geometry=Geometry(fold, keep, splits, rounds),
        blocks=SHARE_BLOCKS,
        is_shared=True,
        exact=exact,
        in_step=rounds <= ROUNDS_IN_STEP,
    )


# -- rows that are read once a pass ----------------------------------------------------


def _looped(
    fusion: Fusion, shape: RowShape, width: int, *, is_single: bool
) -> CudaReduction:
    is_narrow = _is_narrow(shape, width)
    is_light = is_single or is_narrow
    limit = LOOP_THREADS if is_light else shape.target.most_threads
    if is_narrow and not is_single:
        # The fewer rows are under way, the nearer they are the second time.
        while (
            limit < AGAIN_THREADS and _under_way(shape, limit) > shape.target.near_bytes
        ):
            limit *= 2
    geometry, most = _geometry(fusion, shape, width, limit)
    splits = _splits(shape, geometry, width, most) if is_single else 1
    cost = _waves_cost(shape, geometry, width, most, splits)
    while splits > 1 and shape.inner and limit < shape.target.most_threads:
        # Larger blocks may fill the device as well, and need not meet.
        limit *= 2
        larger, more = _geometry(fusion, shape, width, limit)
        if _waves_cost(shape, larger, width, more, 1) <= cost:
            geometry, most, splits = larger, more, 1
    return _heuristic(
        fusion,
        shape,
        width,
        steps=0,
        threads=most,
        geometry=Geometry(geometry.fold, geometry.keep, splits),
        flight=_flight(shape, width),
        # Across memory each lane of a packet has sums of its own: all in registers.
        blocks=RESIDENT_THREADS // most if shape.inner else 0,
        # One kernel serves all shorter rows, and all that are read but once.
        known=is_narrow and not is_single and geometry.fold == most,
    )


def _flight(shape: RowShape, width: int) -> int:
    """Return how many packets of a row a thread loads before it waits for the first."""
    room = KEPT_PER_THREAD if shape.inner else KEPT_PER_THREAD // 2
    most = _in_flight(shape, width) if shape.inner else STEPS
    words = shape.kept_words(1, width)
    if _is_narrow(shape, width):
        # Each has an address as well: what all rows share counts, and no more fits.
        packets = room // (words + shape.common_words(1, width))
        return min(most, 1 << max(packets.bit_length() - 1, 0))
    return max(1, min(most, power_of_two(room // words)))


def _splits(shape: RowShape, geometry: Geometry, width: int, most: int) -> int:
    """Return how many blocks share a row, so that the device is full to the end.

    The blocks that a device runs at once make a wave; as many waves are taken as waste
    least. Rows of a few turns only are not worth a meeting of blocks.
    """
    tiles, turns = _tiles_and_turns(shape, geometry, width)
    resident = _resident(shape, most)

    def cost(splits: int) -> int:
        return _waves_cost(shape, geometry, width, most, splits)

    full = (waves * resident // max(tiles, 1) for waves in range(1, 5))
    useful = [s for s in full if 1 < s <= min(turns // 4, shape.target.most_threads)]
    best = min(useful, key=cost, default=1)
    return best if 10 * cost(best) < 9 * cost(1) else 1


def _waves_cost(
    shape: RowShape, geometry: Geometry, width: int, most: int, splits: int
) -> int:
    """Return the turns that a multiprocessor spends, in waves of blocks."""
    tiles, turns = _tiles_and_turns(shape, geometry, width)
    waves = -(-tiles * splits // _resident(shape, most))
    return waves * (-(-turns // splits) + BLOCK_COST)


def _tiles_and_turns(
    shape: RowShape, geometry: Geometry, width: int
) -> tuple[int, int]:
    """Return the groups of rows that blocks take, and the turns along one."""
    along, across = (width, 1) if shape.inner else (1, width)
    tiles = -(-shape.rows // (geometry.keep * across))
    return tiles, -(-shape.length // (geometry.fold * along * STEPS))


def _resident(shape: RowShape, most: int) -> int:
    return shape.target.multiprocessors * max(RESIDENT_THREADS // most, 1)
