# SPDX-License-Identifier: Apache-2.0
"""Loops that end where a turn goes wrong, and one look after them, which raises.

A loop that reads an array until a condition of its elements holds may read beyond it,
and kernels read the nearest element then: it might never end. A loop that writes single
elements may write beyond an array. Such a loop carries what went wrong, and where. No
turn calls anybody: who looks stands after all loops.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    Assign,
    Called,
    Loop,
    Pointwise,
    Scatter,
    ScatterOp,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_sources
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.ops.loops.asked_for import AskedFor
from nfuser.compiler.ops.loops.inside import around, has_elements, is_read_inside
from nfuser.compiler.ops.loops.seen_writes import seen_writes
from nfuser.compiler.ops.shapes.gather import take
from nfuser.compiler.ops.shapes.scatter import flat_index, indices_of
from nfuser.compiler.ops.shapes.views import sliced
from nfuser.compiler.ops.unread import live_or_checked

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder
    from nfuser.compiler.ops.loops.asked_for import Condition
    from nfuser.compiler.ops.loops.index_ranges import Ranges

    _Place: TypeAlias = Take | Scatter

LOOK = "indexing"  # the function that raises where something went wrong
MOST = 255  # of the places that are told apart


def ending_where_wrong(
    b: Builder, loop: Loop
) -> tuple[Loop, Callable[[], Called] | None]:
    """Return ``loop``, which carries what goes wrong in its turns, and who looks.

    That is to be written down after it. The loop is as it was if nothing may go wrong.
    """
    nest = _Nest(b)
    ranges = around(b)
    bodies = nest.bodies([loop], ranges)
    read = _read_for_flags(ranges.definition, [loop])
    reads = nest.open_reads(read, ranges)
    if not bodies and not reads:
        return loop, None
    if not bodies:
        bodies = {loop: nest.carrying(loop, ranges.inside(loop), {}, [], always=True)}
    turn = _Turn(b, nest, [*read, loop], loop.results, reads, bodies, ranges)
    (*_, found), wrong = turn.run(None)
    assert isinstance(found, Loop)
    assert wrong is not None
    return found, partial(nest.look, wrong)


class _Nest:
    """Loops within each other, and what is told of each place that they may read.

    What went wrong first is one integer: 0 where nothing did, else the number of a
    place, from 1 on, and the index there in the bits above.
    """

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._told: list[tuple[int, int, str]] = []
        self._extents: list[Scalar] = []

    def tell(self, expr: _Place, axis: int) -> int:
        """Return the number of a place: its axis, its size, its line are told."""
        line, extent = expr.result.source, expr.source.shape[axis]
        if extent not in self._extents:
            self._extents.append(extent)
        size = self._extents.index(extent)
        self._told.append((axis, size, line.note if line else ""))
        return min(len(self._told), MOST)

    def look(self, wrong: TensorView) -> Called:
        """Return what raises if something went wrong."""
        b = self._b
        operands = wrong, *(b.from_scalar(x, DType.I64) for x in self._extents)
        made = replace(b.new((), DType.I64), source=None)  # places have lines
        kinds = (DType.I64,) * len(operands)
        options = (("places", tuple(self._told)), ("apart", MOST + 1))
        return Called(LOOK, operands, (made,), kinds, kinds[:1], options, True)

    def open_reads(self, exprs: Iterable[Expr], ranges: Ranges) -> list[_Place]:
        """Return what reads at numbers that may name no element."""
        return [
            expr
            for expr in exprs
            if isinstance(expr, Take)
            and not (expr.inside or expr.along or expr.index.ndim)
            and not is_read_inside(self._b, expr, ranges, from_end=True)
        ]

    def open_writes(self, loop: Loop) -> list[_Place]:
        """Return what writes single elements at numbers that may name none.

        Arrays without elements, where no number names one, are left to who raises.
        """
        return [
            expr
            for expr in loop.body.exprs
            if isinstance(expr, Scatter)
            and expr.op is ScatterOp.SET
            and not (expr.inside or expr.complaint or expr.value.ndim)
            and _numbers_of(expr, loop.body.definition)
            and has_elements(self._b, expr.source.shape)
        ]

    def bodies(self, loops: Iterable[Loop], ranges: Ranges) -> dict[Loop, Fusion]:
        """Return the bodies of those of ``loops`` that may go wrong.

        They carry on what did, after all else that they carry.
        """
        found: dict[Loop, Fusion] = {}
        for loop in loops:
            own = ranges.inside(loop)
            bodies = self.bodies(loop.body.loops, own)
            read: Sequence[Expr] = loop.body.exprs
            if loop.flag is None:  # it ends, whatever it reads
                read = _read_for_flags(loop.body.definition, loop.body.loops)
            places = self.open_reads(read, own) + self.open_writes(loop)
            if not bodies and not places:
                continue
            body = self.carrying(loop, own, bodies, places)
            if body is not loop.body:
                found[loop] = body
        return found

    def carrying(
        self,
        loop: Loop,
        ranges: Ranges,
        bodies: dict[Loop, Fusion],
        places: Sequence[_Place],
        *,
        always: bool = False,
    ) -> Fusion:
        """Return the body of ``loop``, which carries on what goes wrong in a turn.

        It is as it was if none does, and not ``always`` wanted so.
        """
        b, body, count = self._b, loop.body, loop.carried
        held = b.new((), DType.I64)
        begun = held if loop.flag is None else None  # what went wrong has no turn more
        outputs = list(body.outputs)
        with _beside(b) as made:
            turn = _Turn(b, self, body.exprs, outputs, places, bodies, ranges)
            if not (turn.may_go_wrong or always):
                return body
            exprs, wrong = turn.run(begun)
            wrong = wrong or held
            if loop.flag is not None and wrong is not held and not loop.is_choice:
                goes = outputs[loop.flag]
                outputs[loop.flag] = b.point("bit_and", goes, turn.is_right(wrong))
        outputs.insert(count, wrong)
        given = [e for e in exprs if isinstance(e, Argument)]
        given = [replace(a, slot=a.slot + (a.slot >= count)) for a in given]
        given = sorted([*given, Argument(count, held)], key=lambda a: a.slot)
        others: list[Expr] = [e for e in (*exprs, *made) if not isinstance(e, Argument)]
        definition: dict[TensorView, Expr] = {
            t: e for e in (*given, *others) for t in results(e)
        }
        live = set(live_or_checked(outputs, others, definition))

        def read(expr: Expr) -> list[Expr]:
            return [definition[t] for t in sources(expr)]

        listed = toposort(others, read)
        kept = [e for e in listed if e in live and not isinstance(e, Argument)]
        return Fusion(body.name, [*given, *kept], outputs)


class _Turn:
    """The expressions of a turn, one after another: some of them may go wrong.

    ``places`` are those that read or write somewhere, and ``bodies`` those of the loops
    inside.
    """

    def __init__(
        self,
        b: Builder,
        nest: _Nest,
        exprs: Sequence[Expr],
        outputs: Sequence[TensorView],
        places: Sequence[_Place],
        bodies: dict[Loop, Fusion],
        ranges: Ranges,
    ) -> None:
        self._b, self._nest, self._exprs = b, nest, exprs
        self._bodies, self._ranges = dict(bodies), ranges
        self._places: set[Expr] = set(places)
        self._definition = {t: e for e in exprs for t in results(e)}
        self._writes = seen_writes(exprs)
        stages = {*bodies, *self._writes}
        begin = len(b.exprs)
        self._asked = AskedFor(b, exprs, outputs, stages)
        self._where = self._asked_where(stages)
        known = ranges.beside(b.exprs[begin:])
        for place in places:
            where = self._where.get(place.result)
            if where is None or isinstance(place, Scatter):
                continue
            if is_read_inside(b, place, known, where=where, from_end=True):
                del self._where[place.result]

    @property
    def may_go_wrong(self) -> bool:
        """Whether some of what may go wrong is asked for."""
        return bool(self._where)

    def _asked_where(self, stages: set[Expr]) -> dict[TensorView, Condition]:
        """Return where what may go wrong is asked for."""
        after: dict[int, list[TensorView]] = {}
        count = 0
        for expr in self._exprs:
            if expr in self._places or expr in self._bodies:
                after.setdefault(count, []).extend(results(expr))
            count += expr in stages
        found: dict[TensorView, Condition] = {}
        for stage, tensors in after.items():
            found |= self._asked.where(tensors, stage)
        return found

    def run(self, wrong: Condition) -> tuple[list[Expr], Condition]:
        """Return the expressions as they are now, and what went wrong in the end.

        ``wrong`` is what went wrong before, and None where nothing has.
        """
        found: list[Expr] = []
        for expr in self._exprs:
            asked = [self._where[t] for t in results(expr) if t in self._where]
            if not asked:
                found.append(expr if wrong is None else self._kept(expr, wrong))
                continue
            where = self._asked.any_of(asked)
            if isinstance(expr, Loop):
                made, wrong = self._ran(expr, where, wrong)
                found.append(made)
                continue
            if isinstance(expr, Scatter):
                expr, wrong = self._written(expr, where, wrong)
            else:
                assert isinstance(expr, Take)
                index = self._b.cast(expr.index, DType.I64)
                extent = expr.source.shape[expr.axis]
                is_beyond = self._beyond(self._from_front(index, extent), extent)
                number = self._nest.tell(expr, expr.axis)
                wrong = self._told(is_beyond, index, number, where, wrong)
            found.append(expr)
        return found, wrong

    def is_right(self, wrong: TensorView) -> TensorView:
        """Return whether nothing went wrong."""
        return self._b.point("equal", wrong, self._number(0))

    def _number(self, number: Scalar | int) -> TensorView:
        return self._b.from_scalar(number, DType.I64)

    def _from_front(self, index: TensorView, extent: Scalar) -> TensorView:
        """Return an index that is counted from the front."""
        b = self._b
        behind = b.point("add", index, self._number(extent))
        is_behind = b.point("less", index, self._number(0))
        return b.point("select", is_behind, behind, index)

    def _beyond(self, own: TensorView, extent: Scalar) -> TensorView:
        """Return whether an index, counted from the front, names no element."""
        sides = own, self._number(extent)
        # Without their signs, numbers below 0 are beyond all others.
        casts = (self._b.cast(t, DType.U64) for t in sides)
        return self._b.point("greater_equal", *casts)

    def _told(
        self,
        is_beyond: TensorView,
        index: TensorView,
        number: int,
        where: Condition,
        wrong: TensorView | None,
    ) -> TensorView:
        """Return what went wrong after an index was looked at, which may be beyond."""
        b = self._b
        is_wrong = is_beyond if where is None else b.point("bit_and", where, is_beyond)
        if wrong is not None:
            is_wrong = b.point("bit_and", self.is_right(wrong), is_wrong)
        above = b.point("multiply", index, self._number(MOST + 1))
        found = b.point("add", above, self._number(number))
        return b.point("select", is_wrong, found, wrong or self._number(0))

    def _written(
        self, expr: Scatter, where: Condition, wrong: TensorView | None
    ) -> tuple[Scatter, TensorView]:
        """Return a write that is inside, and what went wrong after it.

        Where its numbers name no element, the nearest one is left as it was.
        """
        b, extents = self._b, expr.source.shape
        places: list[TensorView] = []
        numbers = _numbers_of(expr, self._definition)
        old = expr.source
        for axis, (index, extent) in enumerate(zip(numbers, extents, strict=True)):
            own, number = self._from_front(index, extent), self._nest.tell(expr, axis)
            wrong = self._told(self._beyond(own, extent), index, number, where, wrong)
            first = b.point("maximum", own, self._number(0))
            places.append(b.point("minimum", first, self._number(extent - 1)))
            old = take(b, old, places[-1], 0)
        assert wrong is not None
        value = b.point("select", self.is_right(wrong), expr.value, old)
        index = flat_index(b, places, extents)
        return replace(expr, index=index, value=value, inside=True), wrong

    def _ran(
        self, loop: Loop, where: Condition, wrong: TensorView | None
    ) -> tuple[Loop, TensorView]:
        """Return a loop inside, which has no turn once something went wrong."""
        b, count = self._b, loop.carried
        operands, begun = list(loop.operands), wrong or self._number(0)
        if loop.flag is not None and wrong is not None:
            goes = operands[loop.flag]
            operands[loop.flag] = b.point("bit_and", goes, self.is_right(wrong))
        left, found = replace(begun), list(loop.results)
        operands.insert(count, begun)
        found.insert(count, left)
        made = replace(
            loop,
            operands=tuple(operands),
            body=self._bodies[loop],
            results=tuple(found),
            carried=count + 1,
        )
        return made, left if where is None else b.point("select", where, left, begun)

    def _stopped(self, loop: Loop, wrong: TensorView) -> Loop:
        """Return a loop, which itself never goes wrong, and writes nothing after that.

        One with a condition has no turn then; the turns of others keep what was there.
        """
        if loop.flag is None:
            own = self._ranges.inside(loop)
            body = self._nest.carrying(loop, own, {}, [], always=True)
            self._bodies[loop] = body
            return self._ran(loop, None, wrong)[0]
        operands = list(loop.operands)
        goes = operands[loop.flag]
        operands[loop.flag] = self._b.point("bit_and", goes, self.is_right(wrong))
        return replace(loop, operands=tuple(operands))

    def _kept(self, expr: Expr, wrong: TensorView) -> Expr:
        """Return a write that leaves what was there once something went wrong."""
        if expr not in self._writes:
            return expr
        b = self._b
        match expr:
            case Loop():
                return self._stopped(expr, wrong)
            case Assign(source, value, _, starts, steps):
                old = sliced(b, source, starts, value.shape, steps)
            case Scatter(_, old, _, value):
                numbers = _numbers_of(expr, self._definition)
                if not numbers:
                    return expr
                for t in numbers:
                    old = take(b, old, t, 0)
            case _:
                return expr
        kept = b.point("select", self.is_right(wrong), value, old)
        return with_sources(expr, [kept if t is value else t for t in sources(expr)])


def _numbers_of(
    expr: Scatter, definition: Mapping[TensorView, Expr]
) -> list[TensorView]:
    """Return the numbers that name the place of a write, if they are numbers."""
    found = indices_of(definition, expr.index, expr.source.shape[: expr.lead])
    return found if found and not any(t.ndim for t in found) else []


def _read_for_flags(
    definition: Mapping[TensorView, Expr], loops: Iterable[Loop]
) -> list[Expr]:
    """Return what says whether ``loops`` have a first turn, as far as it is numbers."""

    def read(expr: Expr) -> list[Expr]:
        if not isinstance(expr, (Pointwise, Take, *VIEWS)):
            return []
        found = (definition.get(t) for t in sources(expr))
        return [e for e in found if e is not None]

    flags = (x.operands[x.flag] for x in loops if x.flag is not None)
    roots = (definition.get(t) for t in flags)
    return toposort([e for e in roots if e is not None], read)


@contextmanager
def _beside(b: Builder) -> Generator[list[Expr]]:
    """Give what is written meanwhile, which is unwritten then."""
    begin, constants = len(b.exprs), dict(b.constants)
    made: list[Expr] = []
    b.constants.clear()
    try:
        yield made
    finally:
        made += b.exprs[begin:]
        del b.exprs[begin:]
        b.constants.clear()
        b.constants.update(constants)
