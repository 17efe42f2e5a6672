# SPDX-License-Identifier: Apache-2.0
"""Let loops leave rows where their turns write an array one row after another.

What a loop carries is then no longer that array, but the rows that later turns read:
``a[k] = c[k] * a[k - 1]`` carries one row. All rows are assigned at once, after the
loop, and lie in the memory of the array as other values of assignments do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    VIEWS,
    Argument,
    Assign,
    Expr,
    Loop,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.point_op import COPY, POINT_OPS, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.ops.loops.going_wrong import ending_where_wrong
from nfuser.compiler.ops.loops.inside import (
    fitting_inside,
    reading_inside,
    writing_inside,
)
from nfuser.compiler.ops.loops.written_rows import find_rows
from nfuser.compiler.ops.shapes.views import drop, expand_dims, moveaxis, sliced
from nfuser.compiler.ops.unread import live_or_checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.compiler.ops.loops.written_rows import Rows


_PAIR = POINT_OPS["complex"]


@node
class _Stacked:
    """An array as it was, and the rows that a loop leaves of it."""

    whole: TensorView
    rows: Rows
    stack: TensorView


def emit_loop(b: Builder, loop: Loop) -> tuple[TensorView, ...]:
    """Write ``loop`` down, with rows in place of arrays if it can; return results.

    Who looks whether it went wrong is left in ``b.looks``.
    """
    loop = writing_inside(b, fitting_inside(b, loop))
    wanted = loop.results
    look = None
    if not b.open_bodies:  # with all loops that are inside of it
        loop, look = ending_where_wrong(b, loop)
        b.looks.clear()
    stacked: dict[TensorView, _Stacked] = {}
    number = 0
    while number < loop.carried:
        rows = None if _is_looked_at(loop, number) else find_rows(b, loop, number)
        if rows is None:
            number += 1
            continue
        whole, old = loop.operands[number], loop.results[number]
        loop = _without_array(b, loop, number, rows)
        stacked[old] = _Stacked(whole, rows, loop.results[-1])
    b.emit(reading_inside(b, _with_values(loop)))
    if look is not None and b.places is not None:
        b.looks.append(look())
    return tuple(_assigned(b, stacked[t]) if t in stacked else t for t in wanted)


def _is_looked_at(loop: Loop, number: int) -> bool:
    """Tell whether a carried value is an array whose caller may see it in a turn.

    If a turn fails, the array is as all statements before have left it.
    """
    given = (a for a in loop.body.arguments if a.slot == number)
    return bool(loop.body.failing) and any(a.home is not None for a in given)


def _with_values(loop: Loop) -> Loop:
    """Let the body compute what it assigns to a whole array, as that is its own.

    What libraries compute is left in the array itself, as is what may be seen there.
    """
    body, exprs = loop.body, list(loop.body.exprs)
    seen = {a.result for a in body.arguments if _is_looked_at(loop, a.slot)}
    for number, expr in enumerate(exprs):
        if not isinstance(expr, Assign) or not expr.is_whole:
            continue
        if _copied(body, expr.source) in seen:
            continue
        made = body.definition[expr.value]
        while isinstance(made, VIEWS):
            made = body.definition[made.source]
        if not isinstance(made, LIBRARY_CALLS):
            exprs[number] = Pointwise(COPY, (expr.value,), expr.result)
    if exprs == list(body.exprs):
        return loop
    definition = {t: e for e in exprs for t in results(e)}
    live = set(live_or_checked(body.outputs, exprs, definition))
    kept = [e for e in exprs if e in live or isinstance(e, Argument)]
    return replace(loop, body=Fusion(body.name, kept, body.outputs))


def _copied(body: Fusion, tensor: TensorView) -> TensorView:
    """Return what an array was before it was written and copied, or a part of it."""
    expr = body.definition[tensor]
    while isinstance(expr, (Assign, Pointwise)):
        if isinstance(expr, Pointwise) and not (is_copy(expr.op) or expr.op is _PAIR):
            break
        tensor = sources(expr)[0]
        expr = body.definition[tensor]
    return tensor


def _without_array(b: Builder, loop: Loop, number: int, rows: Rows) -> Loop:
    """Carry the last rows of an array, and add each new one to a result."""
    whole, count = loop.operands[number], loop.carried
    lags = range(1, rows.most_lags + 1)
    firsts = [_row_before(b, whole, rows, lag) for lag in lags]
    held = [replace(t) for t in firsts]
    carried = [k for k in range(count) if k != number]
    body, is_read = _Body(loop, number, rows, held).made()
    assert loop.trips is not None
    shape = rows.shape
    stack = b.new((loop.trips, *shape), whole.dtype)
    kept = [loop.operands[k] for k in carried]
    reads = [*loop.operands[count:], *([whole] if is_read else [])]
    left = [loop.results[k] for k in carried]
    added = [*loop.results[count:], stack]
    return replace(
        loop,
        operands=(*kept, *firsts, *reads),
        body=body,
        results=(*left, *(replace(t) for t in held), *added),
        carried=len(kept) + len(held),
    )


class _Body:
    """A body that is given the last rows of an array, and gives one more."""

    def __init__(
        self, loop: Loop, number: int, rows: Rows, held: Sequence[TensorView]
    ) -> None:
        self._loop, self._number = loop, number
        self._rows, self._held = rows, held
        self._own = replace(rows.array)  # the array before the loop
        self._new = dict.fromkeys(rows.versions, self._own)
        self._new |= {t: held[lag - 1] for t, lag in rows.lags.items()}
        self._new |= rows.known

    def made(self) -> tuple[Fusion, bool]:
        """Return the body, and whether it reads the array as it was before."""
        outputs = self._outputs()
        inside = [e for e in map(self._renewed, self._loop.body.exprs) if e is not None]
        arguments = self._arguments()
        definition = {t: e for e in (*arguments, *inside) for t in results(e)}
        definition[self._own] = Argument(len(arguments), self._own)
        turn = self._loop.turn
        if turn is not None:
            definition[turn] = Argument(len(arguments) + 1, turn, by_value=True)
        checked = (e for e in inside if self._rows.reads.isdisjoint(results(e)))
        live = set(live_or_checked(outputs, checked, definition))
        is_read = definition[self._own] in live
        if is_read:
            arguments.append(Argument(len(arguments), self._own))
        if turn is not None and definition[turn] in live:
            arguments.append(Argument(len(arguments), turn, by_value=True))
        exprs = [*arguments, *(e for e in inside if e in live)]
        return Fusion(self._loop.body.name, exprs, outputs), is_read

    def _outputs(self) -> list[TensorView]:
        old, count = self._loop.body.outputs, self._loop.carried
        carried = [t for k, t in enumerate(old[:count]) if k != self._number]
        last = [self._rows.value, *self._held][: len(self._held)]
        added = [*old[count:], self._rows.value]
        return [self._now(t) for t in (*carried, *last, *added)]

    def _arguments(self) -> list[Argument]:
        """Return those of what is carried, and of what was read before."""
        count = self._loop.carried
        given = {a.slot: a for a in self._loop.body.arguments}
        carried = [given[k].result for k in range(count) if k != self._number]
        homes = [given[k].home for k in range(count) if k != self._number]
        homes += [None] * len(self._held)
        held = zip([*carried, *self._held], homes, strict=True)
        found = [Argument(k, t, home=h) for k, (t, h) in enumerate(held)]
        reads = (given[k] for k in range(count, len(self._loop.operands)))
        begin = len(found)
        return found + [replace(a, slot=begin + k) for k, a in enumerate(reads)]

    def _renewed(self, expr: Expr) -> Expr | None:
        """Return what stays of ``expr``."""
        if isinstance(expr, Argument) or expr in self._rows.writes:
            return None
        if any(t in self._new for t in results(expr)):
            return None
        return with_sources(expr, [self._now(t) for t in sources(expr)])

    def _now(self, tensor: TensorView) -> TensorView:
        """Return what stands for ``tensor`` in the end."""
        while tensor in self._new:
            tensor = self._new[tensor]
        return tensor


def _row_before(b: Builder, whole: TensorView, rows: Rows, lag: int) -> TensorView:
    """Return the row that lies ``lag`` turns before the first one."""
    part, place = rows.part, rows.first - rows.step * lag
    if b.ask(less(place, 0)):
        place = place + whole.shape[rows.axis]
    starts, shape = list(part.starts), list(part.shape)
    starts[rows.axis], shape[rows.axis] = place, sc.const(1)
    row = sliced(b, whole, starts, shape, part.steps)
    return drop(b, row, tuple(sorted((rows.axis, *part.dropped))))


def _assigned(b: Builder, stacked: _Stacked) -> TensorView:
    """Put all rows into the array, and return what it is then."""
    whole, rows = stacked.whole, stacked.rows
    value = moveaxis(b, stacked.stack, 0, rows.kept_axis)
    value = expand_dims(b, value, rows.part.dropped)
    starts, steps = list(rows.part.starts), list(rows.part.steps)
    starts[rows.axis], steps[rows.axis] = rows.first, rows.step
    own = b.point("copy", whole)  # which is that array, if it is written to next
    result = b.new(whole.shape, whole.dtype)
    b.emit(Assign(own, value, result, tuple(starts), tuple(steps)))
    return result
