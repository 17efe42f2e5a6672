# SPDX-License-Identifier: Apache-2.0
"""Find where the best element of a CPU's row is: what it is first, then its place.

No vector folds pairs of an element and its place. So each step along a row folds its
elements alone, and looks for the best of them only if it is better than what all steps
before have found: the first lane that equals it, or that holds no number.

The best of floats is that of numbers, which is one instruction a vector, and a sum goes
beside it. That is no number if an element is none, or where infinities meet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Call,
    Element,
    FindFirst,
    Folded,
    If,
    IndexValue,
    Let,
    Load,
    Number,
    SetElement,
    Stmt,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import gathers
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.elements.values import Values

_MOST_BYTES = 1 << 17  # of a thread's stack, as much as a row that is kept there


def place_along(values: Values, reduce: Reduce) -> Scalar:
    """Return the place of the current element among those that ``reduce`` folds."""
    point = values.scheduled.space.source_point(reduce)
    index: Scalar = sc.const(0)
    for axis in reduce.axes:
        extent = reduce.source.axes[axis].extent
        index = index * extent + values.index(point[axis])
    return index


def finds_apart(values: Values, reduce: Reduce) -> bool:
    """Tell whether the first best lane of a step is looked for after its elements.

    Its lanes have to be in the order of the places, and to be few enough to be kept.
    """
    nest = values.nest
    has_vectors = values.scheduled.target.has_vectors
    if not (has_vectors and nest.lane_reduces and fold.finds_place(reduce)):
        return False
    if _most_lanes(values) == 0 or not _is_ascending(values, reduce):
        return False
    return _kept_bytes(values) <= _MOST_BYTES


def _kept_bytes(values: Values) -> int:
    """Return what the lanes of elements take that cannot simply be loaded again."""
    reductions = values.scheduled.fusion.reductions
    sources = {r.source: r for r in reductions if fold.finds_place(r)}
    kept = (x for x, reduce in sources.items() if not _lies_in_order(values, reduce))
    return _most_lanes(values) * sum(x.dtype.compute.bits // 8 for x in kept)


def _lies_in_order(values: Values, reduce: Reduce) -> bool:
    """Tell whether the lanes that ``reduce`` folds are neighbours of an argument."""
    scheduled, source = values.scheduled, reduce.source
    if not isinstance(scheduled.fusion.definition[source], Argument):
        return False
    point = scheduled.space.source_point(reduce)
    strides = zip(point, scheduled.strides[source], strict=True)
    index: Scalar = sc.const(0)
    for axis, stride in strides:
        index = index + values.index(axis) * stride
    return _stride(values, index) is sc.const(1)


def _most_lanes(values: Values) -> int:
    """Return how many lanes a step may have; 0 where there is no limit."""
    rows = values.scheduled.rows
    assert rows is not None
    return rows.chunk or rows.room


def _is_ascending(values: Values, reduce: Reduce) -> bool:
    stride = _stride(values, place_along(values, reduce))
    return stride is not None and sc.is_natural(stride)


def _stride(values: Values, place: Scalar) -> Scalar | None:
    """Return what lies between the places of neighbouring lanes, if one number does."""
    first, second = (_at_lane(values, place, sc.const(n)) for n in (0, 1))
    stride, lane = second - first, values.lane_index
    is_even = lane not in scalar_walk.loops_in(place - lane * stride)
    return stride if is_even else None


def _at_lane(values: Values, place: Scalar, lane: Scalar) -> Scalar:
    return scalar_walk.substitute([place], {values.lane_index: lane})[0]


def fold_place(
    values: Values,
    combiner: Combiner,
    reduce: Reduce,
    state: fold.State,
    after: list[Stmt],
    *,
    rereads: bool,
) -> list[Folded]:
    """Fold the elements of one step; ``after`` them their place joins ``state``.

    Return what they are folded into. What a kernel only loads is loaded again if
    ``rereads`` is true, as nothing is stored in between.
    """
    element = values.value(reduce.source, values.scheduled.space.source_point(reduce))
    source = _source(values, element, rereads=rereads)
    best, *beside = folded = _folded(values, reduce, element)
    place = place_along(values, reduce)
    number = Var(DType.I64)
    with values.block() as join:
        found = scalar_symbols.datum(number, (), sc.const(_most_lanes(values)))
        there = IndexValue(_at_lane(values, place, found), DType.I64)
        combiner.join(reduce, state, [best.var, there])
    lane = values.nest.lane
    assert lane is not None
    for total in beside:
        nan = Number(float("nan"), best.var.dtype)
        after.append(_if_no_number(total.var, best.var, source, lane.stop, nan))
    first = IndexValue(_at_lane(values, place, sc.const(0)), DType.I64)
    takes = Var(DType.BOOL)
    search = FindFirst(number, source, lane.stop, best.var)
    after += [
        Let(takes, fold.is_better(reduce, state, [best.var, first])),
        If(takes, (search, *join)),
    ]
    return folded


def _folded(values: Values, reduce: Reduce, element: Value) -> list[Folded]:
    """Fold ``element`` into the best, and if it is a float into a sum."""
    assert values.tile is not None
    dtype = element.dtype
    name = fold.joiner(reduce, dtype, reassociate=True)
    found = [Folded(Var(dtype, reduce.result), fold.initial(reduce)[0], name)]
    if dtype.is_float:
        found.append(Folded(Var(dtype), Number(0.0, dtype), "sum_reassoc"))
    for x in found:
        values.tile.stmts.append(Let(x.var, x.begin))
        values.emit(Let(x.var, Call(x.join, (x.var, element), dtype)))
    return found


def _if_no_number(
    total: Var, best: Var, source: Load | Element, count: Scalar, nan: Number
) -> If:
    """Let ``best`` be NaN if one of the elements is; ``total`` tells where to look."""
    number = Var(DType.I64)
    found = Call("less", (number, IndexValue(count, DType.I64)), DType.BOOL)
    chosen = Call("select", (found, nan, best), best.dtype)
    body = FindFirst(number, source, count, nan), Let(best, chosen)
    return If(Call("not_equal", (total, total), DType.BOOL), body)


def _source(values: Values, element: Value, *, rereads: bool) -> Load | Element:
    """Return where the elements of all lanes lie, that of the first lane."""
    assert values.lane is not None
    body = tuple(values.lane.stmts)
    first = sc.const(0)
    match [s for s in body if element in _set_by(s)]:
        case [Let(_, (Load() | Element()) as made) as let] if (
            rereads
            and not gathers((let,))
            and _stride(values, made.index) is sc.const(1)
        ):
            return replace(made, index=_at_lane(values, made.index, first))
        case _:
            return Element(_kept(values, element, body), first)


def _kept(values: Values, element: Value, body: tuple[Stmt, ...]) -> Array:
    """Return where ``body`` leaves ``element`` of each lane, or has to from now on."""
    for stmt in body:
        match stmt:
            case SetElement(array, index, value) if value is element and (
                index is values.lane_index
            ):
                return array
            case _:
                pass
    lanes = values.array(element.dtype, _most_lanes(values))
    values.emit(SetElement(lanes, values.lane_index, element))
    return lanes


def _set_by(stmt: Stmt) -> list[Value]:
    return [x.var for x in every([stmt]) if isinstance(x, Let)]
