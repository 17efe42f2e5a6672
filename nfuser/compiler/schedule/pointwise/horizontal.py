# SPDX-License-Identifier: Apache-2.0
"""Computations alike, on arrays of different extents, beside each other in one kernel.

The blocks of one follow those of the other in one grid; on a CPU each stretch of one
range has the share of all. A launch costs its beginning and its end, when the device is
not full; and what both read may be in the cache still.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import Mismatch, find_space
from nfuser.compiler.ir.expr import Expr, Pointwise, results
from nfuser.compiler.ir.fusion import Fusion, live_exprs
from nfuser.compiler.schedule.facts.layout import strides_of
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.heuristics.cpu import CpuPointwise
from nfuser.compiler.schedule.heuristics.cuda import CudaPointwise
from nfuser.compiler.schedule.heuristics.heuristics import HorizontalHeuristic
from nfuser.compiler.schedule.pointwise.cuda import turns
from nfuser.compiler.schedule.pointwise.pointwise import PointwiseScheduler as Alone
from nfuser.compiler.schedule.pointwise.pointwise import scheduled
from nfuser.compiler.schedule.scheduled import Joined
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import FlatHeuristic, Heuristic
    from nfuser.compiler.schedule.scheduled import Scheduled

MOST_PARTS = 4  # the code of all is in one kernel
MOST_EXPRS = 64  # operations of all parts, which bound that code


class Horizontal:
    """Parts without reductions that compute the same of arrays of their own."""

    name = "horizontal"

    def __init__(self) -> None:
        self._alone = Alone()

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what falls into a few parts alike, each with a space of its own."""
        if fusion.reductions or fusion.scans or fusion.partial_sums:
            return Rejection(self.name, "it reduces or scans", is_other=True)
        if not 1 < len(set(fusion.outputs)) <= MOST_PARTS:
            return Rejection(self.name, "it has one result, or too many", is_other=True)
        if len(fusion.exprs) > MOST_EXPRS:
            return Rejection(self.name, "it is too long to share a kernel")
        found = parts(fusion)
        first = _kinds(found[0])
        if any(_kinds(part) != first for part in found[1:]):
            return Rejection(self.name, "its results are not computed alike")
        for part in found:
            rejection = self._alone.can_schedule(part)
            if rejection is not None:
                return Rejection(self.name, rejection.reason, rejection.tensor)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> HorizontalHeuristic:
        """Choose for each part by itself; all have blocks of one size."""
        found = parts(fusion)
        chosen = [self._alone.heuristic(part, facts) for part in found]
        if len({h.most_threads for h in chosen}) > 1:
            flat = (self._alone.heuristic(p, facts, may_tile=False) for p in found)
            chosen = list(flat)
        return HorizontalHeuristic(tuple(_numbered(found, _as_wide(chosen))))

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Joined:
        """Schedule each part, with the strides of the whole."""
        assert isinstance(heuristic, HorizontalHeuristic)
        number = {t: k for k, t in enumerate(memory_tensors(fusion))}
        made: list[Scheduled] = []
        for part, own in zip(parts(fusion), heuristic.parts, strict=True):
            strides: dict[TensorView, tuple[Scalar, ...]] = {
                t: strides_of(t, number[t], steps)
                for t, steps in zip(memory_tensors(part), own.patterns, strict=True)
            }
            made.append(scheduled(part, own, target, strides))
        return Joined(fusion, tuple(made), heuristic, target)


def parts(fusion: Fusion) -> list[Fusion]:
    """Return the parts of ``fusion``: outputs that run over the same axes share one."""
    groups: list[list[TensorView]] = []
    for output in dict.fromkeys(fusion.outputs):
        for group in groups:
            if not isinstance(find_space(_part(fusion, [*group, output])), Mismatch):
                group.append(output)
                break
        else:
            groups.append([output])
    return [_part(fusion, group) for group in groups]


def _as_wide(chosen: Sequence[FlatHeuristic]) -> list[FlatHeuristic]:
    """Give all parts the indices that one of them needs; a CPU has but one kind."""
    is_wide = any(h.wide_index for h in chosen)
    return [
        h if isinstance(h, CpuPointwise) else replace(h, wide_index=is_wide)
        for h in chosen
    ]


def _numbered(
    found: Sequence[Fusion], chosen: Sequence[FlatHeuristic]
) -> list[FlatHeuristic]:
    """Give each part a number, parts that take turns over the same stretches one."""
    numbers: dict[object, int] = {}
    numbered: list[FlatHeuristic] = []
    for k, (part, h) in enumerate(zip(found, chosen, strict=True)):
        if isinstance(h, CudaPointwise):
            number = numbers.setdefault(turns(part, h) or part, k)
            h = replace(h, part=number)
        numbered.append(h)
    return numbered


def _part(fusion: Fusion, group: list[TensorView]) -> Fusion:
    needed = set(live_exprs(group, fusion.definition))
    exprs = [e for e in fusion.exprs if e in needed]
    return Fusion(fusion.name, exprs, [t for t in fusion.outputs if t in group])


def _kinds(part: Fusion) -> list[tuple[str, ...]]:
    """Return what ``part`` computes, whatever the extents."""
    return sorted(map(_kind, part.exprs))


def _kind(expr: Expr) -> tuple[str, ...]:
    op = expr.op.name if isinstance(expr, Pointwise) else type(expr).__name__
    (result,) = results(expr)
    return op, str(result.dtype), str(result.ndim)
