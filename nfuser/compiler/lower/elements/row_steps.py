# SPDX-License-Identifier: Apache-2.0
"""The loops along a row, and the guards at its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.folds import fold
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    Let,
    Number,
    SetElement,
    Stmt,
    Var,
    guarded,
)
from nfuser.compiler.lower.kernel.loop_edits import jammed, peeled
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.kernel.kernel_ir import Array, LoopCounter, Value
    from nfuser.compiler.schedule.nest import Leaf
    from nfuser.compiler.schedule.scheduled import Scheduled


@dataclass
class Chunk:
    """What is done before, after and a second time in steps that run together."""

    begin: list[Stmt] = field(default_factory=list[Stmt])
    again: list[Stmt] = field(default_factory=list[Stmt])
    end: list[Stmt] = field(default_factory=list[Stmt])


def in_steps(
    scheduled: Scheduled,
    first: tuple[tuple[Stmt, ...], ...],
    body: tuple[Stmt, ...],
    chunk: Chunk,
    loops: LoopCounter,
    *,
    back: bool = False,
) -> tuple[Stmt, ...]:
    """Wrap a tile in the guards and loops of the row, which may go ``back``.

    Unrolled steps all run each part that comes ``first`` before the rest. Steps beyond
    a clamped end run them too, on the last packet again. What a ``chunk`` does again
    comes after all of them.
    """
    nest = scheduled.nest
    plain = (*first, body, tuple(chunk.again))
    parts = plain
    for bound in nest.reduced_bounds:
        within = less(bound.index, bound.extent)
        always = first if bound.is_clamped else ()
        inside = (guarded(within, p) for p in parts[len(always) :])
        parts = (*always, *inside)
    full = scheduled.rows and scheduled.rows.unguarded
    for leaf in reversed(nest.reduced):
        if leaf.binding.is_bound or leaf.extent is sc.const(1):
            continue
        parts = _in_loop(parts, leaf, scheduled, chunk, loops, back=back)
        if full is None:
            continue
        plain = _in_loop(plain, leaf, scheduled, chunk, loops, back=back)
        if leaf is full[0]:
            # Rows that are known to be empty leave no loop.
            pairs = zip(sum(parts, ()), sum(plain, ()), strict=False)
            parts = tuple(peeled(loop, other, full[1], loops) for loop, other in pairs)
    return sum(parts, ())


def _in_loop(
    parts: tuple[tuple[Stmt, ...], ...],
    leaf: Leaf,
    scheduled: Scheduled,
    chunk: Chunk,
    loops: LoopCounter,
    *,
    back: bool,
) -> tuple[tuple[Stmt, ...], ...]:
    nest = scheduled.nest
    if leaf.binding is not Binding.UNROLLED:
        parts = (sum(parts, ()),)
    backwards = back and leaf.binding is Binding.SERIAL
    whole = (For(leaf.index, leaf.stop, p, backwards=backwards) for p in parts if p)
    # A CPU that folds columns goes through several rows of them at once.
    is_last = leaf is nest.reduced[-1] and not nest.lane_reduces
    count = scheduled.walk.streams if is_last else 1
    made = tuple(jammed(loop, count, loops) for loop in whole)
    together = nest.leaf(Binding.UNROLLED)
    if leaf.binding is Binding.UNROLLED or (together is None and is_last):
        made = (tuple(chunk.begin), *made, tuple(chunk.end))
    return made


def folds_steps(scheduled: Scheduled, reduce: Reduce) -> bool:
    """Tell whether what is loaded together is folded so, packets or single elements."""
    nest, rows = scheduled.nest, scheduled.rows
    together = nest.leaf(Binding.UNROLLED)
    is_looped = rows is not None and not rows.keeps
    has_several = together is not None and together.extent is not sc.const(1)
    lane = nest.lane
    along = lane is None or (lane.binding is Binding.PACKET and nest.lane_reduces)
    is_folded = has_several and along and is_looped
    return is_folded and fold.is_of_exponentials(reduce)


def fold_steps(
    values: Values, combiner: Combiner, reduce: Reduce, state: fold.State, chunk: Chunk
) -> bool:
    """Fold the exponentials of steps that are loaded together, all their lanes at once.

    The largest of all of them comes first. Packets of what is computed stay as they
    are, one at a time: registers have no room for them beside what is loaded.
    """
    together = values.nest.leaf(Binding.UNROLLED)
    assert together is not None
    assert isinstance(together.extent, sc.Const)
    point = values.scheduled.space.source_point(reduce)
    element = values.value(reduce.source, point)
    dtype = element.dtype
    lane, width = values.nest.lane, values.lane_size
    begin = together.index * width
    own = begin + values.lane_index if lane else begin
    steps = _array_of(values, element, own)
    if steps is None:
        if lane:
            return False
        steps = values.array(dtype, together.extent.value)
        values.emit(SetElement(steps, own, element))
    largest, total = Var(dtype, reduce.result), Var(dtype, reduce.result)
    lowest, zero = fold.initial(reduce)
    chunk.begin += [Let(largest, lowest), Let(total, Number(zero.value, dtype))]
    values.emit(Let(largest, Call("maximum", (largest, element), dtype)))
    has_near = values.scheduled.target.has_blocks
    each = values.loops.make(sc.const(width))
    each_of = Element(steps, begin + each if lane else begin)
    power = fold.exponential(reduce, each_of, largest, has_near=has_near)
    add = Let(total, Call("add", (total, power), dtype))
    chunk.again.append(For(each, each.extent, (add,)) if lane else add)
    with values.block() as body:
        combiner.join(reduce, state, [largest, total])
    chunk.end += body
    return True


def _array_of(values: Values, element: Value, own: Scalar) -> Array | None:
    """Return the array that holds ``element`` at ``own`` already, if one does."""
    stmts = () if values.lane is None else values.lane.stmts
    for stmt in stmts:
        if isinstance(stmt, Let) and stmt.var is element:
            held = stmt.value
            if isinstance(held, Element) and held.index is own:
                return held.array
    return None


def chunk_of(
    values: Values, reduce: Reduce, state: fold.State, after: list[Stmt]
) -> fold.State:
    """Return what elements are added to: the sum of a chunk, where there are any.

    It begins anew in each step along the row, or in each of a column's chunks, and
    is added to ``state`` after it, which keeps what rounding takes away.
    """
    if not fold.is_compensated(reduce, state):
        return state
    tile = values.tile
    (zero,) = fold.initial(reduce)
    assert tile is not None
    if not values.nest.lane_reduces:
        rows = values.scheduled.rows
        if rows is None or not rows.chunk:
            return state
        array = values.array(zero.dtype, values.lane_size)
        return [Element(array, values.lane_index)]
    part = Var(zero.dtype, reduce.result)
    tile.stmts.append(Let(part, zero))

    def emit(value: Value) -> Var:
        made = Var(value.dtype)
        after.append(Let(made, value))
        return made

    joined = fold.combined(reduce, state, [part], emit, reassociate=False)
    for place, value in zip(state, joined, strict=True):
        assert isinstance(place, Var)
        after.append(Let(place, value))
    return [part]


def join_chunks(
    values: Values,
    combiner: Combiner,
    states: Mapping[Reduce, fold.State],
    folding: Mapping[Reduce, fold.State],
    chunk: Chunk,
) -> None:
    """Begin what columns fold apart for some rows, and fold it into ``states``."""
    apart = [r for r, part in folding.items() if part is not states[r]]
    if values.nest.lane_reduces or not apart:
        return
    with values.block() as chunk.begin, values.lanes():
        for reduce in apart:
            combiner.assign(folding[reduce], list(fold.initial(reduce)))
    with values.block() as chunk.end, values.lanes():
        for reduce in apart:
            state, part = states[reduce], folding[reduce]
            joined = fold.combined(reduce, state, part, values.let, reassociate=False)
            combiner.assign(state, joined)
