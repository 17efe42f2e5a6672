# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions with reductions, normalizations among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.maps import loops_of
from nfuser.domains.space import Mismatch, Space, find_space
from nfuser.dtypes import DType
from nfuser.ir.expr import ReduceOp
from nfuser.rewrite.common_subexpressions import merge_common_subexpressions
from nfuser.schedule.expand import expand_moments, takes_one_pass, widen_sums
from nfuser.schedule.facts import Access, accesses
from nfuser.schedule.layout import grouped, is_unit, ordered, packed, packet_width
from nfuser.schedule.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
    strides,
)
from nfuser.schedule.reduction_nest import CPU_TILE, cpu_nest, cuda_nest
from nfuser.schedule.scheduled import (
    Geometry,
    Heuristic,
    ReductionHeuristic,
    Rejection,
    Scheduled,
)
from nfuser.schedule.weight import ROW_LIMIT, limited, weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import LoopIndex
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.facts import Facts, Target
    from nfuser.schedule.layout import Packed

WARP = 32  # columns that are read side by side across memory
MAX_THREADS = 1024
STEPS = 4  # packets of a row that a thread has in flight
KEPT_PER_THREAD = 32  # registers of a thread that a row takes before more threads help
CPU_CHUNK = 1024  # elements that vector lanes add up before their sum is added
SHARED_BYTES = 40 * 1024
CPU_ROW = 16384  # elements of one row that stay on the stack of a CPU thread


class Reduction:
    """Rows folded once or several times, with everything before and after."""

    name = "reduction"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what reduces, all reductions over the same loops."""
        if not fusion.reductions:
            return Rejection(self.name, "it does not reduce")
        found = find_space(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> ReductionHeuristic:
        """Choose the way memory runs, the threads of a row, and whether to keep it."""
        space = _space(fusion)
        steps = strides(fusion, patterns(fusion, facts))
        found = accesses(fusion, space, facts, steps)
        kept = ordered(space.kept, found, facts)
        reduced = ordered(space.reduced, found, facts)
        inner = _runs_inside(kept, reduced, found, facts)
        shape = _Shape(
            facts,
            grouped(kept, found, facts),
            grouped(reduced, found, facts),
            space,
            found,
            inner,
            tuple(dict.fromkeys(fusion.outputs)),
        )
        choose = _cuda_choice if facts.target.kind == "cuda" else _cpu_choice
        return choose(fusion, shape)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Expand what the heuristic decides, and build the nest."""
        assert isinstance(heuristic, ReductionHeuristic)
        fusion = expand_moments(fusion, one_pass=not heuristic.is_persistent)
        if target.kind == "cpu" or not heuristic.is_persistent:
            fusion = widen_sums(fusion)
        fusion = merge_common_subexpressions(fusion)
        space = _space(fusion)
        build = cuda_nest if target.kind == "cuda" else cpu_nest
        nest = build(space, heuristic)
        found = strides(fusion, heuristic.patterns)
        return Scheduled(fusion, space, nest, found, heuristic, target)


class _Shape:
    """Numbers of one call that the choices are made on."""

    def __init__(
        self,
        facts: Facts,
        kept: tuple[tuple[int, ...], ...],
        reduced: tuple[tuple[int, ...], ...],
        space: Space,
        found: list[Access],
        inner: bool,
        outputs: tuple[TensorView, ...],
    ) -> None:
        self.facts, self.found, self.inner = facts, found, inner
        self.outputs = outputs
        self.kept, self.reduced, self.space = kept, reduced, space
        self.rows = self.count(space.kept)
        self.length = self.count(space.reduced)

    def count(self, loops: tuple[LoopIndex, ...]) -> int:
        """Return how many elements ``loops`` run through."""
        total = 1
        for loop in loops:
            total *= self.facts.size(loop.extent)
        return total

    def lane_group(self) -> list[LoopIndex]:
        """Return the loops that memory runs along."""
        groups = self.reduced if self.inner else self.kept
        return [self.space.loops[k] for k in groups[-1]] if groups else []

    def steps(self, fold: int, width: int) -> int:
        """Return how often ``fold`` threads go along a row, as a power of two."""
        along = max(self.length // width, 1) if self.inner else self.length
        return _power(-(-along // fold))

    def kept_words(self, steps: int, width: int) -> int:
        """Return the registers that a thread needs to keep ``steps`` of a row."""
        full = [
            a.tensor.dtype.compute.itemsize
            for a in self.found[len(self.outputs) :]
            if any(a.steps.get(loop, 0) for loop in self.space.reduced)
            and (not self.space.kept or any(a.steps.get(x, 0) for x in self.space.kept))
        ]
        words = sum(max(size, 4) // 4 for size in full) or 1
        return steps * width * words

    def width(self) -> int:
        """Return the packet width along the lane."""
        group = self.lane_group()
        return packet_width(group, self.found, self.facts) if group else 1

    def packed(self, width: int, tensors: Sequence[TensorView]) -> Packed:
        """Return what goes in packets of ``width``."""
        return packed(self.lane_group(), self.found, width, self.facts, tensors)


def _space(fusion: Fusion) -> Space:
    found = find_space(fusion)
    assert isinstance(found, Space)
    return found


def _runs_inside(
    kept: list[LoopIndex],
    reduced: list[LoopIndex],
    found: list[Access],
    facts: Facts,
) -> bool:
    """Tell whether memory runs along the reduced loops rather than the kept ones."""
    if not kept or not reduced:
        return True

    def unit_bytes(lane: LoopIndex) -> int:
        total = 0
        for access in found:
            if is_unit(access, lane):
                elements = access.tensor.dtype.itemsize
                for extent in access.tensor.shape:
                    elements *= facts.size(extent)
                total += elements
        return total

    return unit_bytes(reduced[-1]) >= unit_bytes(kept[-1])


def is_single_pass(fusion: Fusion) -> bool:
    """Tell whether one pass over the rows is enough: one level, row outputs only."""
    space = _space(fusion)
    rows_only = all(
        not set(space.reduced) & set(loops_of(space.points[t])) for t in fusion.outputs
    )
    in_two = any(
        r.op is ReduceOp.MOMENTS and not takes_one_pass(r) for r in fusion.reductions
    )
    return rows_only and not in_two and max(space.levels.values()) == 0


def _power(n: int) -> int:
    """Return the smallest power of two that is at least ``n``."""
    return 1 << max(n - 1, 0).bit_length()


def _cuda_choice(fusion: Fusion, shape: _Shape) -> ReductionHeuristic:
    width = limited(shape.width(), fusion)
    single = is_single_pass(fusion)
    geometry, most = _geometry(fusion, shape, width)
    splits = _splits(shape, geometry, width) if single else 1
    # A single pass has nothing to keep, unless it is one of moments over rows.
    keeps = not single or (shape.inner and splits == 1 and _has_moments(fusion))
    threads = geometry.fold * geometry.keep
    steps = _steps(shape, geometry.fold, width)
    words = shape.kept_words(steps, width)
    keeps = keeps and splits == 1 and words <= _register_budget(fusion, threads)
    keeps = keeps and steps * width * weight(fusion) <= ROW_LIMIT
    if keeps:
        # More threads would leave each fewer registers than rows and packets need.
        most = 256 if threads <= 256 else most
    while keeps and most > threads and words > _register_budget(fusion, most):
        most //= 2
    # Threads and blocks are given at the launch: a kernel serves rows of any length.
    return ReductionHeuristic(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        shape.inner,
        width,
        fold_threads=0,
        keep_threads=0,
        steps=steps if keeps else 0,
        splits=1 if splits == 1 else 0,
        wide_index=needs_wide_index(fusion, shape.facts),
        packed=shape.packed(width, memory_tensors(fusion)),
        threads=most,
        geometry=Geometry(geometry.fold, geometry.keep, splits),
    )


def _steps(shape: _Shape, fold: int, width: int) -> int:
    """Return how often a thread goes on along its row: more than it must, often.

    Then one kernel serves short rows too.
    """
    steps = STEPS if shape.inner else 1
    while steps > 1 and shape.kept_words(steps, width) > KEPT_PER_THREAD:
        steps //= 2
    return max(steps, shape.steps(fold, width))


def _geometry(fusion: Fusion, shape: _Shape, width: int) -> tuple[Geometry, int]:
    """Return the threads of a row and of a block, and the most a block may have."""
    if shape.inner:
        packets = max(shape.length // width, 1)
        fold = min(_power(-(-packets // STEPS)), MAX_THREADS)
        while fold < MAX_THREADS and _kept(shape, fold, width) > KEPT_PER_THREAD:
            fold *= 2
        # More than a warp for a row, and rows would share what their warps leave.
        rows = max(_power(shape.rows), WARP // fold)  # a warp is whole
        keep = min(128 // fold, rows) if fold <= WARP else 1
        return Geometry(fold, keep, 1), MAX_THREADS
    columns = max(shape.rows // width, 1)
    keep = min(WARP, _power(columns))
    # Each value of each state passes through shared memory of its own.
    reductions = expand_moments(fusion, one_pass=True).reductions
    values = sum(2 if r.op in _PLACES else 1 for r in reductions)
    most = 512
    while most > 1 and most * 8 * values * width > SHARED_BYTES:
        most //= 2
    keep = min(keep, most)
    return Geometry(
        min(_power(-(-shape.length // 4)), most // keep, WARP), keep, 1
    ), most


_PLACES = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)


def _kept(shape: _Shape, fold: int, width: int) -> int:
    return shape.kept_words(shape.steps(fold, width), width)


def _has_moments(fusion: Fusion) -> bool:
    return any(r.op is ReduceOp.MOMENTS for r in fusion.reductions)


def _register_budget(fusion: Fusion, threads: int) -> int:
    """Return the 32-bit registers of a thread that rows may take."""
    is_wide = any(t.dtype is DType.F64 for t in fusion.definition)
    spare = 44 if is_wide else 28  # for addresses and what is being computed
    return min(65536 // max(threads, 256), 192) - spare


def _splits(shape: _Shape, geometry: Geometry, width: int) -> int:
    """Return how many blocks share a row, so that the device is full.

    Rows that keep each thread busy for a few packets only are not worth a second
    kernel, and a meeting of blocks.
    """
    across = 1 if shape.inner else width
    blocks = max(-(-shape.rows // (geometry.keep * across)), 1)
    wanted = 4 * shape.facts.target.multiprocessors
    stride = geometry.fold * (width if shape.inner else 1)
    useful = shape.length // (4 * stride)
    if useful < 4:
        return 1
    return max(1, min(_power(wanted // blocks), _power(useful + 1) // 2, 1024))


def _cpu_choice(fusion: Fusion, shape: _Shape) -> ReductionHeuristic:
    columns = 1 if shape.inner else CPU_TILE
    keeps = shape.length * columns <= CPU_ROW
    return ReductionHeuristic(
        shape.kept,
        shape.reduced,
        patterns(fusion, shape.facts),
        shape.inner,
        width=1,
        fold_threads=1,
        keep_threads=1,
        steps=CPU_ROW if keeps else 0,
        splits=1,
        wide_index=True,
        chunk=CPU_CHUNK if _sums_in_f64(fusion) else 0,
    )


def _sums_in_f64(fusion: Fusion) -> bool:
    """Tell whether sums run in the widest type there is, where long chains tell."""
    adds = (ReduceOp.SUM, ReduceOp.MOMENTS)
    return any(r.op in adds and r.source.dtype is DType.F64 for r in fusion.reductions)
