# SPDX-License-Identifier: Apache-2.0
"""Mean and squared distances from it, of rows that blocks share: one meeting for both.

Each block takes the squares of distances from the mean of its own part, and the sum of
these distances: what rounding took off that mean. Once blocks know each other's sums,
squares are taken to the mean of the row: of n elements whose mean is ``gap`` further,
with a rest r, they grow by ``gap * (2 r + n gap)``. So the mean's rounding counts by
its square alone, as if all had known it before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from nfuser.ir import scalar as sc
from nfuser.ir.base import node
from nfuser.ir.expr import ExpandDims, FromScalar, Pointwise, Reduce, ReduceOp
from nfuser.schedule.scheduled import ReductionHeuristic

if TYPE_CHECKING:
    from nfuser.domains.space import Space
    from nfuser.ir.expr import Expr
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.scheduled import Scheduled


@node
class Deviations:
    """The sum of squared distances from a mean, and the sum that it is the mean of.

    ``rest`` is the sum of the distances, which no tensor of the fusion is.
    """

    total: Reduce
    mean: TensorView
    count: Scalar
    rest: Reduce
    squares: Reduce


def deviations(scheduled: Scheduled) -> tuple[Deviations, ...]:
    """Return what a kernel's blocks can exchange at once, or nothing.

    Nothing else may need the means before the squares are there; who joins parts has
    one of them.
    """
    heuristic, space = scheduled.heuristic, scheduled.space
    assert isinstance(heuristic, ReductionHeuristic)
    resident = scheduled.target.multiprocessors * max(heuristic.blocks, 1)
    is_fit = heuristic.is_shared and heuristic.inner
    if not is_fit or heuristic.fold_threads < resident:
        return ()
    found: list[Deviations] = []
    for reduce, level in space.levels.items():
        if level != 1:
            continue
        one = _deviations(scheduled, reduce)
        if one is None:
            return ()
        found.append(one)
    return tuple(found)


def _deviations(scheduled: Scheduled, squares: Reduce) -> Deviations | None:
    of = scheduled.fusion.definition
    square = of[squares.source]
    if squares.op is not ReduceOp.SUM or not _is(square, "multiply"):
        return None
    centred = of[square.operands[0]]
    if square.operands[0] is not square.operands[1] or not _is(centred, "subtract"):
        return None
    element, spread = centred.operands
    expand = of[spread]
    mean = of[expand.source] if isinstance(expand, ExpandDims) else expand
    if not _is(mean, "divide"):
        return None
    total, count = (of[t] for t in mean.operands)
    if not (isinstance(total, Reduce) and isinstance(count, FromScalar)):
        return None
    length = sc.product(total.source.shape[k] for k in total.axes)
    is_mean = (
        total.op is ReduceOp.SUM
        and total.source is element
        and total.axes == squares.axes
        and count.scalar is length
        and element.dtype.compute.is_float
    )
    made = (replace(total.result),)
    rest = Reduce(ReduceOp.SUM, centred.result, made, squares.axes)
    return Deviations(total, mean.result, length, rest, squares) if is_mean else None


def with_rests(space: Space, found: tuple[Deviations, ...]) -> Space:
    """Return ``space`` with the sums of distances in it."""
    points, folded = dict(space.points), dict(space.folded)
    for one in found:
        points[one.rest.result] = points[one.squares.result]
        folded[one.rest] = folded[one.squares]
    return replace(space, points=points, folded=folded)


def _is(expr: Expr, name: str) -> TypeGuard[Pointwise]:
    return isinstance(expr, Pointwise) and expr.op.name == name


def part_count(scheduled: Scheduled, block: Scalar) -> Scalar:
    """Return how many elements of a row the ``block``-th of those that share it has."""
    nest, heuristic = scheduled.nest, scheduled.heuristic
    assert isinstance(heuristic, ReductionHeuristic)
    (bound,) = nest.reduced_bounds  # steps beyond the end of a row are skipped
    places = bound.extent
    fold, everyone = heuristic.fold, heuristic.fold * heuristic.shares
    begin = block * fold
    rest = sc.minimum(sc.maximum(places % everyone, begin), begin + fold) - begin
    return (places // everyone * fold + rest) * heuristic.width
