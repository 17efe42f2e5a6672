# SPDX-License-Identifier: Apache-2.0
"""Sums along both ways of an array in one kernel, as the way back of a norm has them.

A kernel goes along rows. What is added up across them, such as the gradient of a
weight that all rows share, it adds up in parts, neighbouring rows each; a small kernel
adds up the parts. So one read of memory serves both ways, and the order of additions
depends on sizes alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.space import Mismatch, find_space
from nfuser.compiler.ir.expr import (
    VIEWS,
    PartialSum,
    Pointwise,
    Reduce,
    ReduceOp,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, live_exprs
from nfuser.compiler.ir.scalars.functions import maximum, minimum, product
from nfuser.compiler.ir.tensor import IterDomain, IterType
from nfuser.compiler.segment.segmented import Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.segmented import (
        FindScheduler,
        KnownScheduler,
        Segmented,
    )

PARTS = 256  # in which many rows are added up: some for each multiprocessor of a GPU
LEAST = 16  # rows of a part: what parts leave in memory is a fraction of what they read
MOST = 256  # rows of a part: such chains of additions lose no digits that count


class BothWays:
    """Rows along which it folds or stores, and sums across them: two kernels.

    Segmentation alone asks it: what it takes is written with partial sums, which the
    schedulers of reductions take.
    """

    name = "both ways"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what one kernel can go through by rows if sums across come in parts."""
        across = sums_across(fusion)
        if not across:
            return Rejection(self.name, "it sums in one way", is_other=True)
        rows, first = _rows(in_parts(fusion, across)), across[0]
        if rows is None:
            why = "rows need what is summed across them"
            return Rejection(self.name, why, first.result)
        is_whole = any(
            t.ndim == first.source.ndim for t in rows.outputs[: -len(across)]
        )
        if len(fusion.reductions) == len(across) and not is_whole:
            return Rejection(self.name, "it sums in one way", is_other=True)
        found = find_space(rows)
        if isinstance(found, Mismatch):
            return Rejection(self.name, found.reason, found.tensor)
        return None


BOTH_WAYS = BothWays()


def only_one_way(find: FindScheduler) -> FindScheduler:
    """Return ``find`` where kernels sum in one way alone, as on parts of ranks."""

    def found(fusion: Fusion) -> KnownScheduler | tuple[Rejection, ...]:
        answer = find(fusion)
        if answer is not BOTH_WAYS:
            return answer
        return (Rejection(BOTH_WAYS.name, "it sums in two ways"),)

    return found


def summed_both_ways(segmented: Segmented) -> tuple[Reduce, ...]:
    """Return the sums that are to come in parts before ``segmented`` can run."""
    pieces = (s for s in segmented.segments if s.scheduler is BOTH_WAYS)
    return tuple(r for piece in pieces for r in sums_across(piece.fusion))


def sums_across(fusion: Fusion) -> tuple[Reduce, ...]:
    """Return the sums that leave the last axis, unless something else does, too."""
    if fusion.scans or fusion.partial_sums:
        return ()
    across = tuple(r for r in fusion.reductions if _is_across(r))
    along = [r for r in fusion.reductions if r not in across]
    if any(r.source.ndim - 1 not in r.axes for r in along):
        return ()
    return across


def in_parts(fusion: Fusion, across: Sequence[Reduce]) -> Fusion:
    """Return ``fusion`` with the sums ``across`` in parts, and then added up."""
    exprs: list[Expr] = []
    for expr in fusion.exprs:
        if isinstance(expr, Reduce) and expr in across:
            exprs += _in_parts(expr)
        else:
            exprs.append(expr)
    return Fusion(fusion.name, exprs, fusion.outputs)


def _in_parts(expr: Reduce) -> tuple[PartialSum, Reduce]:
    source = expr.source
    count = product(source.shape[k] for k in expr.axes)
    share = _share(count)
    parts = IterDomain((count + (share - 1)) // share, IterType.PARTS)
    kept = (axis for k, axis in enumerate(source.axes) if k not in expr.axes)
    made = replace(source, axes=(parts, *kept))
    return (
        PartialSum(source, made, expr.axes, share),
        replace(expr, source=made, axes=(0,)),
    )


def _share(count: Scalar) -> Scalar:
    share = (count + (PARTS - 1)) // PARTS
    return minimum(maximum(share, LEAST), MOST)


def _is_across(reduce: Reduce) -> bool:
    source = reduce.source
    last = source.ndim - 1
    is_plain = source.dtype.is_float and not source.dtype.is_half
    is_plain &= all(axis.iter_type is not IterType.PARTS for axis in source.axes)
    stays = last not in reduce.axes and not source.axes[last].is_broadcast
    return reduce.op is ReduceOp.SUM and is_plain and stays


def _rows(fusion: Fusion) -> Fusion | None:
    """Return what is done by rows, sums in parts among its results.

    None if something of it needs what the parts add up to, or if that is more than
    a few elementwise operations.
    """
    after: set[TensorView] = {p.result for p in fusion.partial_sums}
    for expr in fusion.exprs:
        if after.isdisjoint(sources(expr)):
            continue
        is_sum = isinstance(expr, Reduce) and expr.source in after
        if not isinstance(expr, (Pointwise, *VIEWS)) and not is_sum:
            return None
        after.update(results(expr))
    partial = [p.result for p in fusion.partial_sums]
    outputs = [t for t in fusion.outputs if t not in after]
    if any(t.ndim > p.ndim - 1 for t in after.difference(partial) for p in partial):
        return None
    outputs += partial
    needed = set(live_exprs(outputs, fusion.definition))
    return Fusion(fusion.name, [e for e in fusion.exprs if e in needed], outputs)
