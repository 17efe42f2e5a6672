# SPDX-License-Identifier: Apache-2.0
"""How rows are folded, as heuristics say it, in the words of both targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.scheduled import Meeting, RowFolding

if TYPE_CHECKING:
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.schedule.facts.layout import Groups
    from nfuser.compiler.schedule.heuristics.cpu import CpuReduction
    from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
    from nfuser.compiler.schedule.nest import Leaf, Nest


def cuda_rows(space: Space, nest: Nest, heuristic: CudaReduction) -> RowFolding:
    """Return how the threads and blocks of a GPU fold rows."""
    meeting = Meeting.ALONE
    if heuristic.is_split:
        meeting = Meeting.EXCHANGE if heuristic.is_persistent else Meeting.LAST
        meeting = Meeting.PHASES if heuristic.phases else meeting
    return RowFolding(
        _order(space, heuristic.reduced),
        heuristic.is_persistent,
        heuristic.room,
        meeting,
        heuristic.compensated,
        eager=heuristic.eager,
        in_step=heuristic.in_step,
        cluster=heuristic.known.splits if heuristic.cluster else 0,
        back=not heuristic.is_persistent,
        unguarded=_unguarded(nest, exact=heuristic.exact),
        across=heuristic.across,
    )


def cpu_rows(space: Space, heuristic: CpuReduction) -> RowFolding:
    """Return how a CPU thread folds rows, or its parts of rows."""
    meeting = Meeting.LAST if heuristic.is_split else Meeting.ALONE
    return RowFolding(
        _order(space, heuristic.reduced),
        heuristic.is_persistent,
        heuristic.room,
        Meeting.PHASES if heuristic.phases else meeting,
        heuristic.compensated,
        heuristic.chunk,
    )


def _order(space: Space, groups: Groups) -> tuple[LoopIndex, ...]:
    return tuple(space.loops[k] for group in groups for k in group)


def _unguarded(nest: Nest, *, exact: bool) -> tuple[Leaf, Scalar] | None:
    """Return the loop along a row, and how many turns of it need no guard, if any.

    Single elements have one each, which would cost as much as what is done with them.
    """
    bounds = nest.reduced_bounds
    if len(bounds) != 1 or bounds[0].is_clamped or nest.lane is not None:
        return None
    if exact:
        leaf = nest.leaf(Binding.UNROLLED)
        return None if leaf is None else (leaf, leaf.extent - 1)
    serial = [leaf for leaf in nest.reduced if leaf.binding is Binding.SERIAL]
    if len(serial) != 1:
        return None
    share = sc.const(1)
    for leaf in nest.reduced:
        share = share if leaf is serial[0] else share * leaf.extent
    return serial[0], bounds[0].extent // share
