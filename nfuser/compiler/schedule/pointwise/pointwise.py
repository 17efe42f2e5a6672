# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions without reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import Mismatch, find_space, space_of
from nfuser.compiler.schedule.facts.memory import strides
from nfuser.compiler.schedule.heuristics.cuda import CudaPointwise, TransposeHeuristic
from nfuser.compiler.schedule.heuristics.heuristics import FlatHeuristic
from nfuser.compiler.schedule.pointwise import cpu as pointwise_cpu
from nfuser.compiler.schedule.pointwise import cuda as pointwise_cuda
from nfuser.compiler.schedule.pointwise import transpose
from nfuser.compiler.schedule.pointwise.flat_shape import flat_shape
from nfuser.compiler.schedule.scheduled import Scheduled, Walk
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.schedule.pointwise.flat_shape import FlatShape


class PointwiseScheduler:
    """One flat loop over packets, or tiles where memory runs two ways."""

    name = "pointwise"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take everything that has one space and no reduction."""
        if fusion.reductions:
            first = fusion.reductions[0].result
            return Rejection(self.name, "it reduces", first, is_other=True)
        if fusion.partial_sums:
            first = fusion.partial_sums[0].result
            return Rejection(self.name, "it adds up", first, is_other=True)
        if fusion.scans:
            first = fusion.scans[0].result
            return Rejection(self.name, "it scans", first, is_other=True)
        found = find_space(fusion)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None

    def heuristic(
        self, fusion: Fusion, facts: Facts, *, may_tile: bool = True
    ) -> FlatHeuristic:
        """Group loops that run as one, and choose as the target would."""
        choose = CHOICES[facts.target.kind]
        return choose(fusion, flat_shape(fusion, facts), may_tile)

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Flatten all groups; the innermost gives packets (CUDA) or vectors (CPU)."""
        assert isinstance(heuristic, FlatHeuristic)
        found = strides(fusion, heuristic.patterns)
        return scheduled(fusion, heuristic, target, found)


def _cpu_choice(fusion: Fusion, shape: FlatShape, may_tile: bool) -> FlatHeuristic:
    return pointwise_cpu.cpu_choice(fusion, shape)


def _cuda_choice(fusion: Fusion, shape: FlatShape, may_tile: bool) -> FlatHeuristic:
    tiled = transpose.choose(fusion, shape) if may_tile else None
    if isinstance(tiled, TransposeHeuristic):
        return tiled
    return pointwise_cuda.cuda_choice(fusion, shape)


CHOICES: Mapping[str, Callable[[Fusion, FlatShape, bool], FlatHeuristic]] = {
    "cuda": _cuda_choice,
    "cpu": _cpu_choice,
}
"""What chooses for each kind of target."""


def scheduled(
    fusion: Fusion,
    heuristic: FlatHeuristic,
    target: Target,
    strides: Mapping[TensorView, tuple[Scalar, ...]],
) -> Scheduled:
    """Build the schedule of ``fusion``, whose tensors lie in memory as given."""
    space = space_of(fusion)
    if isinstance(heuristic, TransposeHeuristic):
        nest, tile = transpose.build(space.kept, heuristic)
        made = Scheduled(fusion, space, nest, strides, heuristic, target, tile)
        return transpose.place_tiles(made, heuristic)
    if isinstance(heuristic, CudaPointwise):
        nest = pointwise_cuda.cuda_nest(space.kept, heuristic)
        return Scheduled(fusion, space, nest, strides, heuristic, target)
    nest = pointwise_cpu.cpu_nest(space.kept, heuristic)
    walk = Walk(heuristic.streams, heuristic.bypass)
    made = Scheduled(fusion, space, nest, strides, heuristic, target, walk=walk)
    return pointwise_cpu.place_tiles(made, heuristic)
