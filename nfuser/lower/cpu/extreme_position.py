# SPDX-License-Identifier: Apache-2.0
"""Find where the best element of a CPU's row is: what it is first, then its place.

No vector folds pairs of an element and its place. So each step along a row folds its
elements alone, and looks for the best of them only if it is better than what all steps
before have found: the first lane that equals it, or that holds no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.ir.scalar_symbols as scalar_symbols
from nfuser.dtypes import DType
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.expr import Argument
from nfuser.lower.folds import fold
from nfuser.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
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
from nfuser.lower.kernel.loop_edits import gathers
from nfuser.lower.kernel.walk import every

if TYPE_CHECKING:
    from nfuser.ir.expr import Reduce
    from nfuser.ir.scalar import Scalar
    from nfuser.lower.cuda.combine import Combiner
    from nfuser.lower.elements.values import Values

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
    fusion = values.scheduled.fusion
    sources = {r.source for r in fusion.reductions if fold.finds_place(r)}
    computed = (x for x in sources if not isinstance(fusion.definition[x], Argument))
    return _most_lanes(values) * sum(x.dtype.bits // 8 for x in computed)


def _most_lanes(values: Values) -> int:
    """Return how many lanes a step may have; 0 where there is no limit."""
    rows = values.scheduled.rows
    assert rows is not None
    return rows.chunk or rows.room


def _is_ascending(values: Values, reduce: Reduce) -> bool:
    place, lane = place_along(values, reduce), values.lane_index
    first, second = (_at_lane(values, place, sc.const(n)) for n in (0, 1))
    stride = second - first
    is_even = lane not in scalar_walk.loops_in(place - lane * stride)
    return is_even and sc.is_natural(stride)


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
) -> fold.State:
    """Fold the elements of one step; ``after`` them their place joins ``state``.

    Return what they are folded into. What a kernel only loads is loaded again if
    ``rereads`` is true, as nothing is stored in between.
    """
    assert values.tile is not None
    element = values.value(reduce.source, values.scheduled.space.source_point(reduce))
    lowest = fold.initial(reduce)[0]
    best = Var(element.dtype, reduce.result)
    values.tile.stmts.append(Let(best, lowest))
    name = fold.joiner(reduce, best.dtype, reassociate=True)
    values.emit(Let(best, Call(name, (best, element), best.dtype)))
    again, element = _again(values, element, rereads=rereads)
    lane, search = _search(values, best, again, element)
    place = place_along(values, reduce)
    first = IndexValue(_at_lane(values, place, sc.const(0)), DType.I64)
    found = scalar_symbols.datum(lane, (), sc.const(_most_lanes(values)))
    with values.block() as join:
        there = IndexValue(_at_lane(values, place, found), DType.I64)
        combiner.join(reduce, state, [best, there])
    takes = Var(DType.BOOL)
    after += [
        Let(takes, fold.is_better(reduce, state, [best, first])),
        If(takes, (*search, *join)),
    ]
    return [best]


def _again(
    values: Values, element: Value, *, rereads: bool
) -> tuple[tuple[Stmt, ...], Value]:
    """Return what gives ``element`` in a second loop over the lanes of the step."""
    assert values.lane is not None
    body = tuple(values.lane.stmts)
    match [s for s in body if element in _set_by(s)]:
        case []:
            return (), element
        case [Let(_, Load() | Element()) as made] if rereads and not gathers((made,)):
            return (made,), element
        case _:
            return (), _kept(values, element, body)


def _kept(values: Values, element: Value, body: tuple[Stmt, ...]) -> Element:
    """Return where ``body`` leaves ``element`` of each lane, or has to from now on."""
    for stmt in body:
        match stmt:
            case SetElement(array, index, value) if value is element:
                return Element(array, index)
            case _:
                pass
    lanes = values.array(element.dtype, _most_lanes(values))
    values.emit(SetElement(lanes, values.lane_index, element))
    return Element(lanes, values.lane_index)


def _set_by(stmt: Stmt) -> list[Value]:
    return [x.var for x in every([stmt]) if isinstance(x, Let)]


def _search(
    values: Values, best: Var, again: tuple[Stmt, ...], element: Value
) -> tuple[Var, tuple[Stmt, ...]]:
    """Return the first lane whose element is ``best``, and what finds it."""
    lane = values.nest.lane
    assert lane is not None
    dtype = _lane_dtype(values, element.dtype)
    found, number = Var(dtype), Var(DType.I64)
    none = Number(_most_lanes(values), dtype)

    def first(is_it: Value) -> For:
        candidate = Call("select", (is_it, IndexValue(lane.index, dtype), none), dtype)
        least = Let(found, Call("minimum", (found, candidate), dtype))
        return For(lane.index, lane.stop, (*again, least))

    search: tuple[Stmt, ...] = (first(Call("equal", (element, best), DType.BOOL)),)
    if element.dtype.is_float:  # it is asked once whether a NaN is looked for
        is_number = Call("equal", (best, best), DType.BOOL)
        is_none = Call("not_equal", (best, best), DType.BOOL)
        nans = first(Call("not_equal", (element, element), DType.BOOL))
        search = If(is_number, search), If(is_none, (nans,))
    to_place = Let(number, Call("to_i64", (found,), DType.I64))
    return number, (Let(found, none), *search, to_place)


def _lane_dtype(values: Values, dtype: DType) -> DType:
    """Return the integers that number lanes: as wide as elements, if they can be."""
    is_short = dtype.bits < 32 and _most_lanes(values) < 2**15
    return DType.I16 if is_short else DType.I32
