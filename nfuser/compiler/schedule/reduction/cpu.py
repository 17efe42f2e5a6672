# SPDX-License-Identifier: Apache-2.0
"""How a CPU runs a fusion with reductions: the numbers, by the sizes of one call.

A thread folds a row, or a tile of columns side by side, and keeps it on its stack where
that has room. Few long rows are cut into parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.schedule.facts.layout import power_of_two
from nfuser.compiler.schedule.facts.memory import memory_tensors, patterns
from nfuser.compiler.schedule.heuristics.cpu import CpuReduction, StagedColumns
from nfuser.compiler.schedule.pointwise.interleave import bypasses, streams
from nfuser.compiler.schedule.reduction.folding import (
    finds_places,
    is_single_pass,
    sums_in_f64,
)
from nfuser.compiler.schedule.reduction.staged_columns import INSTEAD, staged_columns

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.reduction.row_shape import RowShape
    from nfuser.compiler.schedule.reduction.staged_columns import Staged

CHUNK = 16384  # elements that vector lanes add up before their sum is added
CHUNK_F64 = 4096  # the same of f64, which no wider type adds up
CHUNK_PLACES = 2048  # gone through again if the best is in it: as one of each part is
CHUNK_ALONE = 128  # the same without lanes, as many as NumPy's pairwise sum
SHORT = 32  # elements whose plain sum is as good as NumPy's pairwise one
PARTS = 32  # of a row that threads share, whatever their number: equal bits
SHARE = 64  # rows of each part of columns, at least: joining parts costs little then
TILES = (1024, 256, 64, 16)  # columns of one piece: a page of memory, or less
WIDEST = 4096  # columns of one piece that is cut into parts: their sums fill 32 kB
WIDE = 128  # columns of a row that is fetched ahead by itself
NEAR_STATES = 1 << 11  # sums of columns that stay in the nearest cache beside the rows
STATES = 1 << 15  # columns times reductions, whose sums lie on the stack


def cpu_choice(fusion: Fusion, shape: RowShape) -> CpuReduction:
    """Keep rows that fit, cut few long ones, and add long sums in chunks."""
    shape, staged = _staged(shape)
    columns = staged.columns if staged else _columns(fusion, shape)
    room = shape.target.stack_elements
    searches = shape.inner and finds_places(fusion)
    most = CHUNK_PLACES if searches and is_single_pass(fusion) else room
    keeps = shape.length * columns <= most
    is_long = shape.inner or shape.length > SHORT
    parts = 1 if staged else _parts(shape, columns)
    if parts > 1 and not shape.inner:
        columns, parts = _in_whole_rows(fusion, shape) or (columns, parts)
    in_parts = parts > 1 and shape.inner
    is_chunked = in_parts or (is_long and sums_in_f64(fusion))
    finds = searches and not keeps
    length = shape.count(tuple(shape.lane_group()))
    goes_on = _goes_on(fusion, shape, columns, is_chunked=is_chunked or finds)
    return CpuReduction(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        shape.inner,
        columns,
        room=room if keeps and parts == 1 else 0,
        parts=parts,
        phases=parts > 1 and not is_single_pass(fusion),
        chunk=_chunk(fusion, shape) if is_chunked or finds else 0,
        compensated=is_chunked,
        streams=1 if goes_on else streams(fusion),
        bypass=shape.inner and bypasses(fusion, length, shape.facts),
        staged=_numbered(fusion, staged) if staged else None,
        short=shape.inner and shape.is_short,
    )


def _goes_on(
    fusion: Fusion, shape: RowShape, columns: int, *, is_chunked: bool
) -> bool:
    """Tell whether each piece begins in memory where the one before it ended.

    A processor then fetches the next page in time. Pieces side by side, each of a page
    or two, would make it begin anew all the time, which takes up to three times as
    long. Of narrow rows, or beside many sums, several at once are worth that.
    """
    if shape.inner:
        return is_chunked
    width = shape.count(tuple(shape.lane_group()))
    states = sum(len(r.results) for r in fusion.reductions)
    return WIDE <= width <= columns and width * states <= NEAR_STATES


def _staged(shape: RowShape) -> tuple[RowShape, Staged | None]:
    """Return what is staged, if anything, and the way that vectors run then.

    Along a short row, vectors are hardly full before it ends.
    """
    if not shape.inner:
        return shape, staged_columns(shape, shape.target.stack_elements)
    if shape.length > SHORT:
        return shape, None
    columns = shape.by_columns()
    staged = staged_columns(columns, shape.target.stack_elements, INSTEAD)
    return (columns if staged else shape), staged


def _numbered(fusion: Fusion, staged: Staged) -> StagedColumns:
    """Return ``staged`` by the numbers of its tensors."""
    tensors = memory_tensors(fusion)
    numbered = frozenset((tensors.index(a.tensor), a.point) for a in staged.accesses)
    return StagedColumns(numbered, staged.across, staged.rounds)


def _parts(shape: RowShape, columns: int) -> int:
    """Return how many pieces a row is cut into: few long rows keep one thread each.

    Columns that are folded side by side are one piece; where there are some such
    pieces, each is cut into fewer, as every part brings the states of all together.
    """
    if shape.inner:
        is_long = shape.length >= PARTS * shape.target.stack_elements
        return PARTS if is_long and shape.rows < PARTS else 1
    lanes = shape.count(tuple(shape.lane_group()))
    pieces = shape.rows // lanes * -(-lanes // columns)
    parts = PARTS // power_of_two(pieces)
    if parts <= 2:  # whole pieces are enough for many threads
        return 1
    is_long = shape.count(tuple(shape.first_group())) >= parts * SHARE
    is_large = shape.length * shape.rows >= PARTS * shape.target.stack_elements
    return parts if is_long and is_large else 1


def _in_whole_rows(fusion: Fusion, shape: RowShape) -> tuple[int, int] | None:
    """Return wider pieces and more parts of them, if columns are as tall as that takes.

    Parts give each thread something to do, whatever the width; the wider a piece, the
    longer what is read of memory in one go.
    """
    room = STATES // len(fusion.reductions)
    most = min(WIDEST, 1 << max(room.bit_length() - 1, 0))
    width = power_of_two(shape.count(tuple(shape.lane_group())))
    columns = max(min(width, most), TILES[-1])
    parts = _parts(shape, columns)
    return (columns, parts) if parts > 1 else None


def _columns(fusion: Fusion, shape: RowShape) -> int:
    """Return how many columns are folded at once, some pieces for each thread left."""
    if shape.inner:
        return 1
    room = STATES // len(fusion.reductions)
    most, *fewer = (n for n in TILES if n <= max(room, TILES[-1]))
    is_wide = shape.count(tuple(shape.lane_group())) >= 4 * most
    return most if is_wide or not fewer else fewer[0]


def _chunk(fusion: Fusion, shape: RowShape) -> int:
    """Return how many elements are added up before their sum is added to the row's."""
    if not sums_in_f64(fusion):
        return CHUNK_PLACES if shape.inner and finds_places(fusion) else CHUNK
    in_lanes = shape.inner and shape.has_lanes() and not _divides_integers(fusion)
    return CHUNK_F64 if in_lanes else CHUNK_ALONE


def _divides_integers(fusion: Fusion) -> bool:
    """Tell whether ``fusion`` divides integers, as no vector does."""
    return any(
        e.op.name in ("floor_divide", "remainder", "fmod")
        and not e.result.dtype.is_float
        for e in fusion.exprs
        if isinstance(e, Pointwise)
    )
