# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions with reductions, normalizations among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import Mismatch, find_space, reads, space_of
from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.rewrite.common_subexpressions import merge_common_subexpressions
from nfuser.compiler.schedule.facts.facts import accesses
from nfuser.compiler.schedule.facts.memory import patterns, row_begin, strides
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.compiler.schedule.heuristics.heuristics import ReductionHeuristic
from nfuser.compiler.schedule.reduction.both_ways import cpu_both_ways, cuda_both_ways
from nfuser.compiler.schedule.reduction.cpu import cpu_choice
from nfuser.compiler.schedule.reduction.cuda.choose import cuda_choice
from nfuser.compiler.schedule.reduction.fold_nest import cpu_nest, cuda_nest
from nfuser.compiler.schedule.reduction.place_rows import place_rows
from nfuser.compiler.schedule.reduction.rewritten.expand import (
    expand_moments,
    fold_exponentials,
    widen_sums,
)
from nfuser.compiler.schedule.reduction.rewritten.find_moments import find_moments
from nfuser.compiler.schedule.reduction.row_folding import cpu_rows, cuda_rows
from nfuser.compiler.schedule.reduction.row_shape import RowShape
from nfuser.compiler.schedule.scheduled import Scheduled, Walk
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic


CHOICES: Mapping[str, Callable[[Fusion, RowShape], ReductionHeuristic]] = {
    "cuda": cuda_choice,
    "cpu": cpu_choice,
}
"""What chooses for each kind of target."""
BOTH_WAYS: Mapping[str, Callable[[Fusion, RowShape], ReductionHeuristic]] = {
    "cuda": cuda_both_ways,
    "cpu": cpu_both_ways,
}
"""The same where rows come with sums across them."""


class Reduction:
    """Rows folded once or several times, with everything before and after."""

    name = "reduction"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what reduces, all reductions over the same loops.

        Partial sums of the other loops may come with them, or be all there is.
        """
        if not (fusion.reductions or fusion.partial_sums):
            return Rejection(self.name, "it does not reduce", is_other=True)
        if fusion.scans:
            return Rejection(self.name, "it scans too", fusion.scans[0].result)
        found = find_space(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> ReductionHeuristic:
        """Choose the way memory runs, the threads of a row, and whether to keep it."""
        fusion = find_moments(fusion)
        space = space_of(fusion)
        steps = strides(fusion, patterns(fusion, facts))
        found = accesses(fusion, facts, steps)
        outputs = tuple(dict.fromkeys(fusion.outputs))
        shape = RowShape(facts, space, found, outputs, _folded(fusion))
        if fusion.partial_sums:
            return BOTH_WAYS[facts.target.kind](fusion, shape.by_rows())
        return CHOICES[facts.target.kind](fusion, shape)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Expand what the heuristic decides, and build the nest."""
        assert isinstance(heuristic, ReductionHeuristic)
        is_cuda, keeps = isinstance(heuristic, CudaReduction), heuristic.is_persistent
        fusion = expand_moments(find_moments(fusion), one_pass=not keeps)
        if is_cuda and not keeps:
            fusion = fold_exponentials(fusion)
        if not (is_cuda and keeps):
            fusion = widen_sums(fusion)
        fusion = merge_common_subexpressions(fusion)
        space = space_of(fusion)
        found = strides(fusion, heuristic.patterns)
        if isinstance(heuristic, CudaReduction):
            begin = row_begin(fusion, space, heuristic.leader, found)
            nest, walk = cuda_nest(space, heuristic, share_of(fusion), begin), Walk()
            rows = cuda_rows(space, nest, heuristic)
        else:
            nest = cpu_nest(space, heuristic, share_of(fusion))
            walk = Walk(heuristic.streams, heuristic.bypass, heuristic.short)
            rows = cpu_rows(space, heuristic)
        made = Scheduled(fusion, space, nest, found, heuristic, target, walk=walk)
        return place_rows(made, rows, heuristic)


def share_of(fusion: Fusion) -> Scalar | None:
    """Return how many rows a part of the sums across rows has, if there are any."""
    return fusion.partial_sums[0].share if fusion.partial_sums else None


@remembered
def _folded(fusion: Fusion) -> frozenset[Read]:
    """Return what is read to be folded, and where."""
    space = space_of(fusion)
    sources = [(r.source, space.source_point(r)) for r in fusion.reductions]
    return frozenset(reads(fusion, sources))
