# SPDX-License-Identifier: Apache-2.0
"""How a GPU runs a fusion with reductions: the numbers, by the sizes of one call.

Rows are kept by the block that folds them, kept by several blocks that exchange what
they fold, or read anew in each pass over them; the last form leaves a row to several
blocks where one pass is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import reads, space_of
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument, Pointwise
from nfuser.compiler.schedule.facts.layout import power_of_two
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.facts.weight import (
    ROW_LIMIT,
    limited,
    weight,
    weight_in_rows,
)
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction, Geometry
from nfuser.compiler.schedule.reduction.cuda.geometry import (
    ACROSS,
    LEAST_ACROSS,
    LOADED_PER_THREAD,
    STEPS,
    cuda_heuristic,
    geometry_of,
    in_flight,
    is_narrow,
    most_across,
    under_way,
    words_of,
)
from nfuser.compiler.schedule.reduction.cuda.looped import (
    AGAIN_THREADS,
    LOOP_THREADS,
    in_phases,
    looped,
    passes,
    phases_cost,
    splits_of,
)
from nfuser.compiler.schedule.reduction.folding import has_moments, is_single_pass
from nfuser.compiler.schedule.reduction.rewritten.expand import (
    expand_moments,
    fold_exponentials,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.reduction.row_shape import RowShape

KINDS = (256, 512)  # threads of blocks that have a kernel of their own, below the most
SHARE_THREADS = 512  # of a block that keeps a part of a row, in 128 registers each
MOST_STEPS = 36  # of them, where a block has all threads there may be
COMMON_PER_THREAD = 16  # for what all rows share, loaded before a barrier
SHARE_BLOCKS = 1  # of these on a multiprocessor: the fewer, the sooner they have met
SHARE_KEPT = 72  # registers of a thread that its part takes at most
SHARE_SPARE = 24  # registers that long unrolled rows take besides
# Threads of a block that keeps a row in shared memory, and of such blocks on a
# multiprocessor, with 32 and with 40 registers a thread: the more, the more are on
# their way to memory, or compute, while others wait for each other.
STORED = ((1024, 2), (512, 3))
STORED_WIDE = 8  # registers of a packet of quotients in f64, for which 32 are enough
STATES_BYTES = 2 * 1024  # of a block's shared memory: states, and the system's part
LIGHT = 4  # weight below which computing again beats keeping
ROUND_COST = 6  # steps along a row that a meeting of its blocks costs, roughly
ROUNDS_IN_STEP = 48  # rounds for which blocks stay roughly in step


def cuda_choice(fusion: Fusion, shape: RowShape) -> CudaReduction:
    """Keep rows in a block, else share them, else read them once a pass.

    Blocks that share a row meet for each pass over it, and for each round of rows;
    where these are many it costs less to read all anew in a launch for each pass.
    """
    width = limited(shape.width(), fusion)
    if kept := _kept_as_stored(fusion, shape, width) or _kept(fusion, shape, width):
        return kept
    is_single = is_single_pass(fold_exponentials(fusion))
    is_looped = is_single or _is_read_again(fusion, shape, width)
    shared = None if is_looped else _shared(fusion, shape, width)
    parted = None if is_looped else in_phases(fusion, shape, width)
    if shared and parted:
        limit = _shared_cost(fusion, shape, shared)
        return parted if 2 * phases_cost(fusion, shape, width) < limit else shared
    return shared or parted or looped(fusion, shape, width, is_single=is_single)


# -- rows that one block keeps ---------------------------------------------------------


def _kept(fusion: Fusion, shape: RowShape, width: int) -> CudaReduction | None:
    geometry, most = geometry_of(fusion, shape, width, shape.target.most_threads)
    # A single pass has nothing to keep, unless it is one of moments over rows.
    if is_single_pass(fusion):
        is_cut = splits_of(shape, geometry, width, most) > 1
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
    most = threads if exact else min((n for n in KINDS if threads <= n), default=most)
    while most // 2 >= threads and words > _register_budget(fusion, shape, most):
        most //= 2
    common = shape.common_words(steps, width)
    common = 0 if shape.leader(width) else common  # two packets each, and a shift
    has_room = words + common <= _register_budget(fusion, shape, most)
    return cuda_heuristic(
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
    steps = in_flight(shape, width) if shape.inner else 1
    while steps > 1 and shape.loaded_words(steps, width) > LOADED_PER_THREAD:
        steps //= 2
    return (
        steps if shape.least_steps(fold, width) <= steps else shape.steps(fold, width)
    )


def _is_exact(shape: RowShape, geometry: Geometry, width: int) -> bool:
    """Tell whether a kernel is for rows that just so many steps of its threads fill.

    Single elements cost instructions: addresses in steps that are known, and an end in
    the last of them only, are worth a kernel for each number of warps.
    """
    return width == 1 and geometry.fold > WARP and is_narrow(shape, width)


def _is_read_again(fusion: Fusion, shape: RowShape, width: int) -> bool:
    """Tell whether rows of narrow packets are read again, out of a cache mostly.

    That costs less than to keep so many, with an address and an end for each; with
    weights beside them, also where they do not fit the cache.
    """
    is_near = under_way(shape, LOOP_THREADS) <= shape.target.cache_bytes
    has_weights = width == 1 and shape.common_words(1, width) > 0
    is_better = is_near or _is_read_twice(fusion, shape)
    is_better = is_better or (has_weights and _is_full(shape))
    return is_narrow(shape, width) and is_better


def _is_read_twice(fusion: Fusion, shape: RowShape) -> bool:
    """Tell whether rows that leave a multiprocessor no other are rather read twice.

    Where it keeps one it has nothing to do while the next is read.
    """
    is_near = under_way(shape, AGAIN_THREADS) <= shape.target.cache_bytes
    levels = space_of(fold_exponentials(fusion)).levels.values()
    has_two_passes = max(levels) == 0 and not has_moments(fusion)
    return is_near and has_two_passes and _is_full(shape)


def _is_full(shape: RowShape) -> bool:
    """Tell whether rows keep all multiprocessors busy, with a block each."""
    return shape.rows > shape.target.multiprocessors


def _register_budget(fusion: Fusion, shape: RowShape, threads: int) -> int:
    """Return the 32-bit registers of a thread that rows may take."""
    return min(shape.target.registers // max(threads, 256), 192) - _spare(fusion)


def _spare(fusion: Fusion) -> int:
    """Return the registers that addresses take, and what is being computed."""
    is_wide = any(t.dtype is DType.F64 for t in fusion.definition)
    return 44 if is_wide else 36 if _divides(fusion) else 28


def _divides(fusion: Fusion) -> bool:
    """Tell whether there are quotients of f32 as exact as NumPy's: they are in f64."""
    return any(isinstance(e, Pointwise) and e.op.name == "divide" for e in fusion.exprs)


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
    geometry, _ = geometry_of(fusion, shape, width, shape.target.most_threads)
    stored = shape.stored_bytes(width)
    # Its registers would leave no room for those of another row.
    room = _register_budget(fusion, shape, 2 * geometry.fold)
    if stored is None or words_of(shape, geometry.fold, width) <= room:
        return None
    is_wide = _divides(fusion) and 2 * width > STORED_WIDE
    for threads, most in STORED[1:] if is_wide else STORED:
        steps, blocks = _stored_steps(shape, width, stored, threads, most)
        if blocks < 2:
            continue
        return cuda_heuristic(
            fusion,
            shape,
            width,
            steps=steps,
            threads=threads,
            geometry=Geometry(threads, 1, 1),
            blocks=blocks,
            as_stored=True,
        )
    return None


def _stored_steps(
    shape: RowShape, width: int, stored: int, threads: int, most: int
) -> tuple[int, int]:
    """Return the steps of a row, and how many blocks of it a multiprocessor holds.

    Powers of two serve more lengths, if they cost no block.
    """

    def fitting(steps: int) -> int:
        taken = steps * threads * width * stored + STATES_BYTES
        return min(shape.target.shared_bytes // taken, most)

    least = shape.least_steps(threads, width)
    steps = shape.steps(threads, width)
    steps = least if fitting(least) > fitting(steps) else steps
    return steps, fitting(steps)


# -- rows that several blocks keep -----------------------------------------------------


def _shared(fusion: Fusion, shape: RowShape, width: int) -> CudaReduction | None:
    """Let blocks that all run at once keep a row between them.

    As many share a row as their registers need, or a few more where the groups then
    fill the device better.
    """
    if is_single_pass(fusion):
        return None
    threads = _sharing_threads(fusion, shape, width)
    room = _register_budget(fusion, shape, threads * SHARE_BLOCKS) - SHARE_SPARE
    room = min(room, SHARE_KEPT)
    if not shape.inner:
        room -= 2 * width  # sums of each lane of a packet
    exact = width == 1 and is_narrow(shape, width)
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
    places -= 1 if shape.leader(width) and shape.length % along else 0  # whole ones
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
    cluster = _clusters(shape, least, resident) if keep == 1 and shape.inner else ()
    sizes = cluster or range(least, min(4 * least, resident) + 1)
    splits = min(sizes, key=lambda n: _cost_of(n, tiles, places, fold, resident))
    # As many as there may be serve all lengths, but each costs instructions.
    needed = power_of_two(-(-places // (splits * fold)))
    steps = min(steps, max(needed, STEPS))
    steps = -(-places // (splits * fold)) if exact else steps
    rounds = -(-tiles // (resident // splits))
    return cuda_heuristic(
        fusion,
        shape,
        width,
        steps=steps,
        threads=threads,
        geometry=Geometry(fold, keep, splits, rounds),
        blocks=SHARE_BLOCKS,
        is_shared=True,
        exact=exact,
        in_step=rounds <= ROUNDS_IN_STEP and not cluster,
        cluster=bool(cluster),
    )


def _cost_of(splits: int, tiles: int, places: int, fold: int, resident: int) -> int:
    """Return the steps of a block where so many share a row, and of their meetings."""
    rounds = -(-tiles // (resident // splits))
    return rounds * (-(-places // (splits * fold)) + ROUND_COST)


def _clusters(shape: RowShape, least: int, resident: int) -> list[int]:
    """Return the sizes of clusters that may share a row, powers of two.

    A processor's clusters lie in parts of it, of which others leave multiprocessors.
    """
    sizes = (1 << k for k in range(1, shape.target.most_cluster.bit_length()))
    return [size for size in sizes if least <= size <= resident]


# -- rows that are read once a pass ----------------------------------------------------


def _sharing_threads(fusion: Fusion, shape: RowShape, width: int) -> int:
    """Return the threads of blocks that share rows: columns meet in shared memory.

    They do so twice, in a block and after an exchange, at places that take turns.
    """
    if shape.inner:
        return SHARE_THREADS
    apart = 2 if len(fusion.reductions) == 1 else 1
    return min(SHARE_THREADS, most_across(fusion, shape, width) // apart)


def _shared_cost(fusion: Fusion, shape: RowShape, shared: CudaReduction) -> int:
    """Return the packets that a multiprocessor loads in the time that ``shared`` takes.

    All blocks of a row meet after each pass that folds.
    """
    found, along = shared.geometry, shared.width if shape.inner else 1
    steps = -(-shape.length // (along * found.fold * found.splits))
    meetings = ROUND_COST * passes(expand_moments(fusion, one_pass=False))
    return found.rounds * (steps * shared.threads + meetings * SHARE_THREADS)
