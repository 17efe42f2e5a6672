# SPDX-License-Identifier: Apache-2.0
"""How operations carry on the way in which tensors lie over ranks."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.domains.slices import reshaped_axis
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const, Size, as_scalar
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.segment.sharding import FOLDS
from nfuser.errors import UnsupportedError
from nfuser.execution.host.ir.rules import fold_of
from nfuser.execution.host.mesh.sharding import REPLICATED, Sharding
from nfuser.execution.host.passes.fusion_axes import folded_axes, input_axes
from nfuser.execution.host.run.callee import fusion_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.statements import Operand

_LINEAR = ("negative", "positive")


@value
class ShardingPlan:
    """What an operation needs of the tensors that it reads, and then gives."""

    sources: tuple[Sharding, ...]
    result: Sharding


def plan(
    stmt: st.Statement, given: Sequence[Sharding], wanted: Sharding | None, ranks: int
) -> ShardingPlan:
    """Return how ``stmt`` runs where what it reads lies as ``given``.

    A replicated operand can be had in any other way without an exchange. ``wanted`` is
    how the result should lie, if anybody said so.
    """
    if found := _by_owners(given, wanted):
        return found
    # An owner's tensor costs one exchange, however the others need it.
    given = [REPLICATED if s.owner is not None else s for s in given]
    if wanted is not None and wanted.owner is not None:
        wanted = None
    return _spread(stmt, given, wanted, ranks)


def _spread(
    stmt: st.Statement, given: Sequence[Sharding], wanted: Sharding | None, ranks: int
) -> ShardingPlan:
    match stmt:
        case st.Set() | st.UnaryOp() | st.BinaryOp():
            return _pointwise(stmt, given, wanted)
        case st.Launch():
            return _launch(stmt, given, wanted, ranks)
        case st.ReductionOp(name, source, axes):
            return _reduce(name, source, axes, given[0])
        case st.MatmulOp():
            return _matmul(stmt, given, wanted, ranks)
        case st.Communicate():
            return _exchanged(stmt, given[0])
        case st.PermuteOp() | st.ReshapeOp() | st.SelectOp() | st.SliceOp():
            if given[0].axis is None:
                return ShardingPlan((given[0],), given[0])
            kept = _moved(stmt, given[0].axis)
            return (
                _gathered()
                if kept is None
                else ShardingPlan((given[0],), Sharding(kept))
            )
        case _:
            return ShardingPlan((REPLICATED,) * len(given), REPLICATED)


def _moved(
    stmt: st.PermuteOp | st.ReshapeOp | st.SelectOp | st.SliceOp, axis: int
) -> int | None:
    """Return which axis of the result is the ``axis`` of the source, if any is."""
    match stmt:
        case st.PermuteOp(_, order):
            return order.index(axis)
        case st.ReshapeOp(source, result):
            return reshaped_axis(source.shape, result.shape, axis)
        case st.SelectOp(_, gone):
            return None if axis == gone else axis - (gone < axis)
        case st.SliceOp(source, starts, stops, steps):
            span = starts[axis], stops[axis], steps[axis]
            return axis if span == (as_scalar(0), source.shape[axis], 1) else None


def _by_owners(
    given: Sequence[Sharding], wanted: Sharding | None
) -> ShardingPlan | None:
    """Let one rank do what reads tensors that single ranks own, or all have.

    That one to which the fewest have to be sent; among equals the one where the result
    should lie, then the owner of the last operand: of a layer, its weights.
    """
    if any(s.owner is None and s != REPLICATED for s in given):
        return None
    owners = [s.owner for s in given if s.owner is not None][::-1]
    if wanted is not None and wanted.owner is not None:
        owners.insert(0, wanted.owner)
    if not owners:
        return None

    def cost(owner: int) -> int:
        sent = sum(s.owner not in (None, owner) for s in given)
        return sent + (wanted not in (None, Sharding(owner=owner)))

    best = Sharding(owner=min(owners, key=cost))
    return ShardingPlan((best,) * len(given), best)


def _pointwise(
    stmt: st.Set | st.UnaryOp | st.BinaryOp,
    given: Sequence[Sharding],
    wanted: Sharding | None,
) -> ShardingPlan:
    """Keep a sum that is complete on no rank as long as the operation is linear."""
    tensors, result = st.reads(stmt), st.writes(stmt)[0]
    if wanted is None or wanted.partial:
        if partial := _partial(stmt, given):
            return partial
        backs = [
            t.ndim - s.axis
            for t, s in zip(tensors, given, strict=True)
            if s.axis is not None
        ]
        wanted = Sharding(result.ndim - backs[0]) if backs else REPLICATED
    return ShardingPlan(tuple(_met(t, result, wanted) for t in tensors), wanted)


def _launch(
    stmt: st.Launch, given: Sequence[Sharding], wanted: Sharding | None, ranks: int
) -> ShardingPlan:
    """Run on parts where the fusion needs of its inputs no more, with few exchanges."""
    ways = [ShardingPlan((REPLICATED,) * len(given), REPLICATED)]
    fusion = fusion_of(stmt.function)
    if fusion is None:
        return ways[0]
    axes = [*range(stmt.results[0].ndim)] if wanted is None else [wanted.axis]
    found = list(folded_axes(fusion))
    ends = [Sharding(partial=fold) for fold, _ in found]
    parts = [slots for _, slots in found]
    for axis in axes:
        if axis is None:
            continue
        try:
            parts.append(input_axes(fusion, [axis]))
            ends.append(Sharding(axis))
        except UnsupportedError:
            continue
    for slots, end in zip(parts, ends, strict=True):
        needs = tuple(
            _part(x, slots.get(slot))
            for slot, x in enumerate(stmt.operands)
            if isinstance(x, TensorView)
        )
        if _have_parts(st.reads(stmt), needs, ranks):
            ways.append(ShardingPlan(needs, end))
    has_parts = any(s.axis is not None for s in given)

    def cost(way: ShardingPlan) -> tuple[int, bool, bool]:
        pairs = zip(given, way.sources, strict=True)
        before = sum(lies not in (need, REPLICATED) for lies, need in pairs)
        after = way.result not in (wanted, REPLICATED)
        if wanted is None:
            after = bool(way.result.partial)
        # What is exchanged after a fold is smaller than what went into it.
        is_folded = bool(way.result.partial)
        return before + after, not is_folded, (way.result == REPLICATED) is has_parts

    return min(ways, key=cost)


def _have_parts(
    tensors: Sequence[TensorView], needs: Sequence[Sharding], ranks: int
) -> bool:
    """Tell whether axes may have as many equal parts as there are ranks."""
    axes = [
        t.shape[s.axis]
        for t, s in zip(tensors, needs, strict=True)
        if s.axis is not None
    ]
    return not any(isinstance(x, Const) and x.value % ranks for x in axes)


def _part(tensor: TensorView, axis: int | None) -> Sharding:
    if axis is None or _is_one(tensor.shape[axis]):
        return REPLICATED
    return Sharding(axis)


def _met(tensor: TensorView, result: TensorView, wanted: Sharding) -> Sharding:
    """Return how an operand lies that meets a result that lies as ``wanted``."""
    if wanted.axis is None:
        return REPLICATED
    axis = tensor.ndim - (result.ndim - wanted.axis)
    return _part(tensor, axis if axis >= 0 else None)


def _partial(stmt: st.Statement, given: Sequence[Sharding]) -> ShardingPlan | None:
    sums = [s for s in given if s.partial == "sum"]
    any_partial = [s for s in given if s.partial]
    match stmt:
        case st.Set() if any_partial:
            return ShardingPlan(tuple(given), given[0])
        case st.UnaryOp(name) if name in _LINEAR and sums:
            return ShardingPlan(tuple(given), given[0])
        case st.BinaryOp("add" | "subtract") if len(sums) == 2:
            return ShardingPlan(tuple(given), given[0])
        case st.BinaryOp("multiply" | "divide" | "true_divide", lhs, rhs) if sums:
            number = rhs if isinstance(lhs, TensorView) else lhs
            swapped = number is lhs and stmt.name != "multiply"
            scaled = not swapped and _is_scale(number)
            return ShardingPlan(tuple(given), sums[0]) if scaled else None
        case _:
            return None


def _is_scale(x: Operand) -> bool:
    """Tell whether a product with each part is finite where that with the sum is.

    A size is 0 only where there is nothing to divide, or nothing else either.
    """
    if isinstance(x, TensorView):
        return False  # an element may be infinite, or 0 to divide by
    if isinstance(x, int | float | complex):
        return isfinite(abs(x)) and x != 0
    return all(isinstance(s, Size) for s in scalar_walk.symbols([x]))


def _reduce(
    name: str, source: TensorView, axes: Sequence[int], given: Sharding
) -> ShardingPlan:
    if given.partial and given.partial != name:
        given = REPLICATED
    if given.axis is None:
        return ShardingPlan((given,), given)
    if given.axis in axes:
        whole = name in FOLDS
        return ShardingPlan((given,), Sharding(partial=name)) if whole else _gathered()
    kept = [k for k in range(source.ndim) if k not in axes]
    return ShardingPlan((given,), Sharding(kept.index(given.axis)))


def _gathered() -> ShardingPlan:
    return ShardingPlan((REPLICATED,), REPLICATED)


def _matmul(
    stmt: st.MatmulOp, given: Sequence[Sharding], wanted: Sharding | None, ranks: int
) -> ShardingPlan:
    lhs, rhs, result = stmt.lhs, stmt.rhs, stmt.result
    left, right = given
    inner = Sharding(lhs.ndim - 1), Sharding(max(rhs.ndim - 2, 0))
    rows = (Sharding(lhs.ndim - 2), REPLICATED) if lhs.ndim > 1 else None
    columns = (REPLICATED, Sharding(rhs.ndim - 1)) if rhs.ndim > 1 else None
    by_rows = result.ndim - 1 - (rhs.ndim > 1)
    # Among equals the first: with a sum of parts, one exchange ends all.
    ways = [(inner, Sharding(partial="sum"))]
    if rows:
        ways.append((rows, Sharding(by_rows)))
    if columns:
        ways.append((columns, Sharding(result.ndim - 1)))
    for axis in range(max(0, result.ndim - 2)):
        needs = (_batch(lhs, result, axis), _batch(rhs, result, axis))
        ways.append((needs, Sharding(axis)))
    ways = [w for w in ways if _have_parts((lhs, rhs), w[0], ranks)]
    ways.append(((REPLICATED, REPLICATED), REPLICATED))

    def cost(way: tuple[tuple[Sharding, Sharding], Sharding]) -> int:
        """Count exchanges, those of the result included."""
        needs, gives = way
        before = (left not in (needs[0], REPLICATED)) + (
            right not in (needs[1], REPLICATED)
        )
        after = wanted is not None and wanted != gives and gives != REPLICATED
        open_end = wanted is None and bool(gives.partial)
        return 4 * (before + after + open_end) + (gives == REPLICATED)

    needs, gives = min(ways, key=cost)
    if left == right == REPLICATED and wanted is None:
        needs, gives = ways[-1]
    return ShardingPlan(needs, gives)


def _batch(tensor: TensorView, result: TensorView, axis: int) -> Sharding:
    place = tensor.ndim - (result.ndim - axis)
    return _part(tensor, place if place >= 0 else None)


def _exchanged(stmt: st.Communicate, given: Sharding) -> ShardingPlan:
    """Exchange parts along another dimension of the mesh, of which this knows nothing.

    Parts of parts lie together only if the inner ones are gathered first.
    """
    fold = fold_of(stmt.kind)
    is_apart = given.partial and fold and fold != given.partial
    return (
        _gathered()
        if is_apart or given.axis in stmt.axes
        else ShardingPlan((given,), given)
    )


def _is_one(x: Scalar) -> bool:
    return isinstance(x, Const) and x.value == 1
