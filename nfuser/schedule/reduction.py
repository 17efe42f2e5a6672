# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions with reductions, normalizations among them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.domains.space import Mismatch, find_space, reads
from nfuser.ir.expr import Pointwise, ReduceOp
from nfuser.rewrite.common_subexpressions import merge_common_subexpressions
from nfuser.schedule.expand import expand_moments, fold_exponentials, widen_sums
from nfuser.schedule.facts import accesses
from nfuser.schedule.memory import memory_tensors, patterns, strides
from nfuser.schedule.reduction_cuda import (
    cuda_choice,
    is_single_pass,
    space_of,
    sums_in_f64,
)
from nfuser.schedule.reduction_nest import cpu_nest, cuda_nest
from nfuser.schedule.row_shape import RowShape
from nfuser.schedule.scheduled import (
    Geometry,
    Heuristic,
    ReductionHeuristic,
    Rejection,
    Scheduled,
)
from nfuser.schedule.staged_columns import INSTEAD, Staged, staged_columns
from nfuser.schedule.streams import bypasses, streams

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion
    from nfuser.schedule.facts import Facts, Target

CPU_CHUNK = 16384  # elements that vector lanes add up before their sum is added
CPU_CHUNK_F64 = 4096  # the same of f64, which no wider type adds up
CPU_CHUNK_ALONE = 128  # the same without lanes, as many as NumPy's pairwise sum
CPU_ROW = 16384  # elements of one row that stay on the stack of a CPU thread
CPU_SHORT = 32  # elements whose plain sum is as good as NumPy's pairwise one
CPU_PARTS = 32  # of a row that threads share, whatever their number: equal bits
CPU_TILES = (1024, 256, 64, 16)  # columns of one piece: a page of memory, or less
CPU_STATES = 1 << 15  # columns times reductions, whose sums lie on the stack


class Reduction:
    """Rows folded once or several times, with everything before and after."""

    name = "reduction"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what reduces, all reductions over the same loops."""
        if not fusion.reductions:
            return Rejection(self.name, "it does not reduce", is_other=True)
        if fusion.scans:
            return Rejection(self.name, "it scans too", fusion.scans[0].result)
        found = find_space(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> ReductionHeuristic:
        """Choose the way memory runs, the threads of a row, and whether to keep it."""
        space = space_of(fusion)
        steps = strides(fusion, patterns(fusion, facts))
        found = accesses(fusion, space, facts, steps)
        sources = [(r.source, space.source_point(r)) for r in fusion.reductions]
        folded = frozenset(reads(fusion, sources))
        outputs = tuple(dict.fromkeys(fusion.outputs))
        shape = RowShape(facts, space, found, outputs, folded)
        choose = cuda_choice if facts.target.kind == "cuda" else _cpu_choice
        return choose(fusion, shape)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Expand what the heuristic decides, and build the nest."""
        assert isinstance(heuristic, ReductionHeuristic)
        fusion = expand_moments(fusion, one_pass=not heuristic.is_persistent)
        if target.kind == "cuda" and not heuristic.is_persistent:
            fusion = fold_exponentials(fusion)
        if target.kind == "cpu" or not heuristic.is_persistent:
            fusion = widen_sums(fusion)
        fusion = merge_common_subexpressions(fusion)
        space = space_of(fusion)
        build = cuda_nest if target.kind == "cuda" else cpu_nest
        nest = build(space, heuristic)
        found = strides(fusion, heuristic.patterns)
        return Scheduled(fusion, space, nest, found, heuristic, target)


def _cpu_choice(fusion: Fusion, shape: RowShape) -> ReductionHeuristic:
    shape, staged = _staged(shape)
    tile = staged.columns if staged else _cpu_columns(fusion, shape)
    keeps = shape.length * tile <= CPU_ROW
    is_long = shape.inner or shape.length > CPU_SHORT
    parts = _cpu_parts(fusion, shape)
    is_chunked = parts > 1 or (is_long and sums_in_f64(fusion))
    finds = shape.inner and not keeps and _finds_places(fusion)
    length = shape.count(tuple(shape.lane_group()))
    plain = ReductionHeuristic(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        shape.inner,
        width=1,
        fold_threads=1,
        keep_threads=tile,
        steps=CPU_ROW if keeps and parts == 1 else 0,
        splits=parts,
        wide_index=True,
        chunk=_cpu_chunk(fusion, shape) if is_chunked or finds else 0,
        compensated=is_chunked,
        streams=streams(fusion),
        bypass=shape.inner and bypasses(fusion, length, shape.facts),
    )
    if staged is None:
        return plain
    tensors = memory_tensors(fusion)
    return replace(
        plain,
        staged=frozenset((tensors.index(a.tensor), a.point) for a in staged.accesses),
        across=staged.across,
        rounds=0,  # given at each launch
        geometry=Geometry(1, tile, 1, staged.rounds),
    )


def _staged(shape: RowShape) -> tuple[RowShape, Staged | None]:
    """Return what is staged, if anything, and the way that vectors run then.

    Along a short row, vectors are hardly full before it ends.
    """
    if not shape.inner:
        return shape, staged_columns(shape, CPU_ROW)
    if shape.length > CPU_SHORT:
        return shape, None
    columns = shape.by_columns()
    staged = staged_columns(columns, CPU_ROW, INSTEAD)
    return (columns if staged else shape), staged


def _cpu_parts(fusion: Fusion, shape: RowShape) -> int:
    """Return how many pieces a row is cut into: few long rows keep one thread each."""
    is_long = shape.inner and shape.length >= CPU_PARTS * CPU_ROW
    is_busy = shape.rows >= CPU_PARTS
    return CPU_PARTS if is_long and not is_busy and is_single_pass(fusion) else 1


def _cpu_columns(fusion: Fusion, shape: RowShape) -> int:
    """Return how many columns are folded at once, some pieces for each thread left."""
    if shape.inner:
        return 1
    room = CPU_STATES // len(fusion.reductions)
    most, *fewer = (n for n in CPU_TILES if n <= max(room, CPU_TILES[-1]))
    is_wide = shape.count(tuple(shape.lane_group())) >= 4 * most
    return most if is_wide or not fewer else fewer[0]


def _cpu_chunk(fusion: Fusion, shape: RowShape) -> int:
    """Return how many elements are added up before their sum is added to the row's."""
    if not sums_in_f64(fusion):
        return CPU_CHUNK
    in_lanes = shape.inner and shape.has_lanes() and not _divides_integers(fusion)
    return CPU_CHUNK_F64 if in_lanes else CPU_CHUNK_ALONE


def _divides_integers(fusion: Fusion) -> bool:
    """Tell whether ``fusion`` divides integers, as no vector does."""
    return any(
        e.op.name in ("floor_divide", "remainder", "fmod")
        and not e.result.dtype.is_float
        for e in fusion.exprs
        if isinstance(e, Pointwise)
    )


def _finds_places(fusion: Fusion) -> bool:
    places = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
    return any(r.op in places for r in fusion.reductions)
