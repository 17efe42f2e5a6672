# SPDX-License-Identifier: Apache-2.0
"""A loop that one kernel can run: what one of its turns does, element by element.

A turn may read what the turn before has left only at the place where it leaves the same
itself. Then no element waits for another: each thread takes some of them through all
turns, and holds what is carried in registers. What the first turn does, as a fusion
without a loop, says where a thread reads and writes; the other turns do the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.domains.maps import Point, data_of, datum_point, source_points
from nfuser.compiler.domains.space import Mismatch, find_space
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    FOLDING,
    Argument,
    Assign,
    ExpandDims,
    Expr,
    FromScalar,
    Loop,
    Permute,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, remembered, with_sources
from nfuser.compiler.ir.point_op import COPY, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import TensorView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.domains.space import Space


# What a carried value is before the loop, in a turn, after that, and after the loop.
Carried: TypeAlias = "tuple[TensorView, TensorView, TensorView, TensorView]"


@node
class HeldState:
    """A carried value at the ``point`` where a thread holds it.

    ``before`` is what it is at first, ``held`` what a turn reads, ``after`` what the
    turn leaves, and ``left`` what the loop leaves.
    """

    before: TensorView
    held: TensorView
    after: TensorView
    left: TensorView
    point: Point


@node
class Row:
    """What a turn stores: its part of ``whole``, in which turns lie along ``axis``."""

    whole: TensorView
    axis: int


@node
class FirstTurn:
    """The first turn of a loop as a ``fusion``, with all around the loop.

    ``rows`` are those of its outputs that each turn stores. ``turn`` is the number of a
    turn, if that is asked for; of the ``states`` none is there for nothing. ``reads``
    are all places where a thread reads something, and what it is.
    """

    fusion: Fusion
    space: Space
    loop: Loop
    states: tuple[HeldState, ...]
    rows: Mapping[TensorView, Row]
    turn: TensorView | None
    reads: tuple[Read, ...]


@remembered
def first_turn(fusion: Fusion) -> FirstTurn | Mismatch:
    """Return the first turn of the only loop of ``fusion``, or why it takes kernels."""
    reason = _foreign(fusion)
    if reason is not None:
        return reason
    (loop,) = fusion.loops
    opened = _Opened(fusion, loop)
    reason = opened.run()
    if reason is not None:
        return reason
    flat = opened.fusion()
    space = find_space(flat)
    if isinstance(space, Mismatch):
        return space
    found = _states(flat, space, opened.carried)
    if isinstance(found, Mismatch):
        return found
    states, reads = found
    return FirstTurn(flat, space, loop, states, opened.stored(), opened.turn, reads)


def turn_of(fusion: Fusion) -> FirstTurn:
    """Return the first turn of a fusion that has one."""
    found = first_turn(fusion)
    assert isinstance(found, FirstTurn)
    return found


def _foreign(fusion: Fusion) -> Mismatch | None:
    """Return what no kernel does within its turns, or around them."""
    if len(fusion.loops) != 1:
        return Mismatch("one kernel runs one loop")
    (loop,) = fusion.loops
    if loop.trips is None or loop.flag is not None:
        return Mismatch("whether it goes on is known to all threads only", loop.result)
    for expr in (*fusion.exprs, *loop.body.exprs):
        inside = isinstance(expr, (*FOLDING, Assign)) or (
            isinstance(expr, Loop) and expr is not loop
        )
        if inside:
            reason = "it computes each element of what it reads at one place"
            return Mismatch(reason, results(expr)[0])
    return None


class _Opened:
    """A fusion whose loop is written down as one turn."""

    def __init__(self, fusion: Fusion, loop: Loop) -> None:
        self._old, self._loop = fusion, loop
        self._exprs: list[Expr] = []
        self._new: dict[TensorView, TensorView] = {}
        self._rows: dict[TensorView, tuple[TensorView, int]] = {}
        self.carried: list[Carried] = []
        self.turn = loop.turn

    def run(self) -> Mismatch | None:
        """Write everything down, or return what reads rows otherwise than in order."""
        for expr in self._old.exprs:
            if expr is self._loop:
                self._open()
            elif any(t in self._rows for t in sources(expr)):
                if not self._ordered(expr):
                    reason = "others read what all turns have left"
                    return Mismatch(reason, results(expr)[0])
            else:
                self._exprs.append(expr)
        return None

    def fusion(self) -> Fusion:
        """Return the first turn: of what turns add, the outputs are their rows."""
        outputs = [self._rows.get(t, (t, 0))[0] for t in self._old.outputs]
        return Fusion(self._old.name, self._exprs, outputs)

    def stored(self) -> dict[TensorView, Row]:
        """Return the outputs that each turn stores."""
        wholes = (t for t in self._old.outputs if t in self._rows)
        return {self._rows[t][0]: Row(t, self._rows[t][1]) for t in wholes}

    def _open(self) -> None:
        loop = self._loop
        for argument in loop.body.arguments:
            held, slot = argument.result, argument.slot
            if held is loop.turn:
                self._exprs.append(FromScalar(sc.const(0), held))
            elif slot < loop.carried:
                self._copy(loop.operands[slot], held)
            else:
                self._new[held] = loop.operands[slot]
        held_in = {a.slot: a.result for a in loop.body.arguments}
        for expr in loop.body.exprs:
            if not isinstance(expr, Argument):
                read = [self._new.get(t, t) for t in sources(expr)]
                self._exprs.append(with_sources(expr, read))
        for slot, (before, after, left) in enumerate(loop.pairs):
            made = self._new.get(after, after)
            self._copy(made, left)
            if slot in held_in:
                self.carried.append((before, held_in[slot], made, left))
            else:  # nothing reads it in the loop
                self.carried.append((before, replace(left), made, left))
        for row, whole in loop.added:
            own = replace(row)
            self._copy(self._new.get(row, row), own)
            self._rows[whole] = own, 0

    def _copy(self, source: TensorView, result: TensorView) -> None:
        self._exprs.append(Pointwise(COPY, (source,), result))

    def _ordered(self, expr: Expr) -> bool:
        """Let rows lie in the order in which ``expr`` reads them, if it is but that."""
        if isinstance(expr, Pointwise) and is_copy(expr.op):
            row, axis = self._rows[expr.operands[0]]
            own = replace(row)
            self._copy(row, own)
            self._rows[expr.result] = own, axis
            return True
        if isinstance(expr, ExpandDims):
            row, axis = self._rows[expr.source]
            kept = [k for k in range(expr.result.ndim) if k not in expr.axes]
            place = kept[axis]
            self._with_row(expr.result, place, row, expr)
            return True
        if not isinstance(expr, Permute):
            return False
        row, axis = self._rows[expr.source]
        self._with_row(expr.result, expr.order.index(axis), row, expr)
        return True

    def _with_row(
        self, whole: TensorView, place: int, row: TensorView, expr: Permute | ExpandDims
    ) -> None:
        """Write down what ``expr`` makes of a row; turns lie along axis ``place``."""
        kept = [k for k in range(whole.ndim) if k != place]
        own = replace(whole, axes=tuple(whole.axes[k] for k in kept))
        if isinstance(expr, ExpandDims):
            added = tuple(k - (k > place) for k in expr.axes)
            self._exprs.append(ExpandDims(row, own, added))
        else:
            axis = expr.order[place]
            order = tuple(expr.order[k] - (expr.order[k] > axis) for k in kept)
            self._exprs.append(Permute(row, own, order))
        self._rows[whole] = own, place


def _states(
    flat: Fusion, space: Space, carried: Sequence[Carried]
) -> tuple[tuple[HeldState, ...], tuple[Read, ...]] | Mismatch:
    """Return what a thread holds, and all that it reads.

    It holds each value at one place, and inside of its array.
    """
    number = {
        t: k for k, (_, held, _, left) in enumerate(carried) for t in (held, left)
    }
    points: dict[int, Point] = {}
    stack: list[Read] = [(t, space.points[t]) for t in reversed(flat.outputs)]
    seen = dict.fromkeys(stack)
    while stack:
        tensor, point = stack.pop()
        if tensor not in number:
            more = [*source_points(flat.definition[tensor], point)]
            for chosen in data_of(point):
                assert isinstance(chosen.tensor, TensorView)
                more.append((chosen.tensor, datum_point(chosen, point)))
        else:
            before, held, after, _ = carried[number[tensor]]
            own = Point(point.index)
            if points.setdefault(number[tensor], own) != own:
                return Mismatch("a turn reads the one before at other places", held)
            if not _is_inside(held, own):
                return Mismatch("a turn reads the one before at another place", held)
            more = [(before, own), (after, own)]
        fresh = [read for read in more if read not in seen]
        seen.update(dict.fromkeys(fresh))
        stack += fresh
    states = tuple(HeldState(*carried[k], points[k]) for k in sorted(points))
    return states, tuple(seen)


def _is_inside(tensor: TensorView, point: Point) -> bool:
    """Tell whether ``point`` names an element whatever the loops of its kernel do."""
    pairs = zip(point, tensor.shape, strict=True)
    return all(sc.lies_below(index, extent) for index, extent in pairs)
