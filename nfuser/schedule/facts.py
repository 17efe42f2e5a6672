# SPDX-License-Identifier: Apache-2.0
"""What is known of one call when a segment is scheduled: numbers, not symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.space import Space, reads
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node, value
from nfuser.ir.expr import Argument
from nfuser.ir.scalar import LoopIndex, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.domains.maps import Point
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.tensor import TensorView


@value
class Target:
    """What a kernel is made for; the numbers steer heuristics only."""

    kind: str  # "cuda" or "cpu"
    compute_capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    threads: int = 1


@value
class Layout:
    """How a tensor lies in memory: strides in elements, alignment in bytes."""

    strides: tuple[int, ...]
    alignment: int


@node
class Access:
    """A memory tensor at one point: where it starts, its step along each loop.

    Both count elements; ``irregular`` loops enter the address in a way that is not a
    step.
    """

    tensor: TensorView
    point: Point
    start: int
    steps: Mapping[LoopIndex, int]
    irregular: frozenset[LoopIndex]


@node
class Facts:
    """Sizes, layouts and target of one call of one segment."""

    sizes: Mapping[Scalar, int]
    layouts: Mapping[TensorView, Layout]
    target: Target

    def size(self, x: Scalar) -> int:
        """Return the value of ``x`` in this call."""
        return scalar_walk.evaluate(x, self.sizes)


def accesses(fusion: Fusion, space: Space, facts: Facts) -> list[Access]:
    """Return every read of an argument and every write of an output."""
    found = [
        _access(tensor, space.points[tensor], facts)
        for tensor in dict.fromkeys(fusion.outputs)
    ]
    roots = [(t, space.points[t]) for t in fusion.outputs]
    roots += [(r.source, space.source_point(r)) for r in fusion.reductions]
    for tensor, point in reads(fusion, list(dict.fromkeys(roots))):
        expr = fusion.definition[tensor]
        if isinstance(expr, Argument) and not expr.by_value:
            found.append(_access(tensor, point, facts))
    return found


def _access(tensor: TensorView, point: Point, facts: Facts) -> Access:
    steps: dict[LoopIndex, int] = {}
    irregular: set[LoopIndex] = set()
    strides = facts.layouts[tensor].strides
    zeros = {loop: 0 for index in point for loop in scalar_walk.loops_in(index)}
    starts = scalar_walk.evaluate_all(point, {**facts.sizes, **zeros})
    start = sum(s * stride for s, stride in zip(starts, strides, strict=True))
    for index, stride in zip(point, strides, strict=True):
        for monomial, coefficient in sc.terms_of(index).items():
            loops = [a for atom in monomial for a in scalar_walk.loops_in(atom)]
            if len(monomial) == 1 and monomial[0] in loops:
                loop = monomial[0]
                assert isinstance(loop, LoopIndex)
                steps[loop] = steps.get(loop, 0) + coefficient * stride
            else:
                irregular.update(loops)
    return Access(tensor, point, start, steps, frozenset(irregular))
