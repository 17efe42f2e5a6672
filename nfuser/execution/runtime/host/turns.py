# SPDX-License-Identifier: Apache-2.0
"""Turns of a long loop of a host program, as a loop that the linked program repeats.

Three turns are written out: the first two, and the last. Where the same kernels run in
each, and all that depends on the index is linear in it, the turns between lie on the
same line.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import nfuser.execution.host.call.program as flat
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import const, terms_of

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.runtime.host.locations import Location

    _Swaps: TypeAlias = tuple[tuple[flat.Slot, flat.Slot], ...]

LONG = 128
"""How many statements a line has at least that is worth a loop."""


class NotRepeatedError(Exception):
    """The turns differ in more than where rows lie."""


class TurnWritten(NamedTuple):
    """What one turn does; each of ``moved`` lies elsewhere behind it than before."""

    body: list[flat.HostStmt]
    moved: list[tuple[Location, Location]]


def is_linear(x: Scalar, index: Scalar) -> bool:
    """Tell whether ``x`` grows by the same number from turn to turn, if it grows.

    >>> from nfuser.compiler.ir.scalars.symbols import loop_index, size
    >>> n = size(0, 0)
    >>> i = loop_index(0, n)
    >>> is_linear(i * n + n * n, i), is_linear(i * i, i), is_linear(i // 2, i)
    (True, False, False)
    """
    for monomial in terms_of(x):
        moving = [atom for atom in monomial if index in scalar_walk.loops_in(atom)]
        if moving and moving != [index]:
            return False
    return True


def is_computed_with(body: Sequence[st.Statement], index: Scalar) -> bool:
    """Tell whether the index is more than a place: a number, or what is asked."""
    numbers: list[Scalar] = []
    for stmt in st.walk(body):
        match stmt:
            case st.Launch(_, operands):
                numbers += st.scalars(operands)
            case st.BinaryOp(_, lhs, rhs):
                numbers += st.scalars((lhs, rhs))
            case st.IfThenElse(condition):
                numbers.append(condition)
            case _:
                pass
    return any(index in scalar_walk.loops_in(x) for x in numbers)


def turn_of(
    body: list[flat.HostStmt],
    before: Mapping[TensorView, Location],
    behind: Mapping[TensorView, Location],
    given: Container[flat.Slot],
) -> TurnWritten:
    """Return what a turn does, if it leaves what is ``given`` where it was."""
    if before.keys() != behind.keys():
        raise NotRepeatedError
    pairs = ((x, behind[t]) for t, x in before.items())
    moved = [(x, y) for x, y in pairs if x is not y]
    if any(x.slot in given for x, _ in moved):
        raise NotRepeatedError
    return TurnWritten(body, moved)


def repeated(
    turns: Sequence[TurnWritten], count: int, depth: int, alignment: int
) -> list[flat.HostStmt]:
    """Return what does ``count`` turns like these, inside ``depth`` loops.

    What turns allocate has no value from one to the next: all have it in common. Rows
    lie a multiple of the ``alignment`` apart, or other turns might run other kernels.
    """
    paired = _Paired(count, depth, alignment)
    body = paired.body([turn.body for turn in turns])
    swaps = paired.swaps([tuple(map(_swapped, t.moved)) for t in turns])
    paired.check_apart(swaps)
    trips = flat.HostScalar(const(count), count, is_dynamic=False)
    return [*paired.made, flat.Repeat(body, swaps, trips, None, depth)]


def _swapped(moved: tuple[Location, Location]) -> tuple[flat.Slot, flat.Slot]:
    """Return two arrays that are one form: what was read, and what was written."""
    before, after = moved
    forms = {_form(before.slot), _form(after.slot)}
    if not (before.is_whole and after.is_whole) or len(forms) > 1:
        raise NotRepeatedError
    return before.slot, after.slot


_form = attrgetter("shape", "strides", "dtype")
_kernel = attrgetter(*{*flat.LaunchKernel.__match_args__} - {"arguments"})


class _Paired:
    """Statements of the first two turns and the last, which do the same."""

    def __init__(self, count: int, depth: int, alignment: int) -> None:
        self._alignment = alignment
        self._last = count - 1
        self._depth = depth
        self._own: dict[flat.Slot, flat.Slot] = {}  # of later turns: the first's
        self.made: list[flat.HostStmt] = []

    def body(
        self, bodies: Sequence[Sequence[flat.HostStmt]]
    ) -> tuple[flat.HostStmt, ...]:
        if len({*map(len, bodies)}) > 1:
            raise NotRepeatedError
        found = (self._statement(*x) for x in zip(*bodies, strict=True))
        return tuple(x for x in found if x is not None)

    def swaps(self, swaps: Sequence[_Swaps]) -> _Swaps:
        if len({*map(len, swaps)}) > 1:
            raise NotRepeatedError
        for pairs in zip(*swaps, strict=True):
            for slots in zip(*pairs, strict=True):
                self._same(*slots)
        return swaps[0]

    def check_apart(self, swaps: _Swaps) -> None:
        """Let only what a turn has made change places, and with one array each."""
        named = {slot for pair in swaps for slot in pair}
        own = {*self._own.values()}
        if len(named) < 2 * len(swaps) or not own.issuperset(new for _, new in swaps):
            raise NotRepeatedError

    def _same(self, first: flat.Slot, *others: flat.Slot) -> None:
        if any(self._own.get(x, x) is not first for x in others):
            raise NotRepeatedError

    def _statement(
        self, first: flat.HostStmt, second: flat.HostStmt, last: flat.HostStmt
    ) -> flat.HostStmt | None:
        match first, second, last:
            case flat.Begin(a), flat.Begin(b), flat.Begin(c) if a is b is c:
                return first
            case flat.AllocateSlot(a), flat.AllocateSlot(b), flat.AllocateSlot(c):
                if not _form(a) == _form(b) == _form(c):
                    raise NotRepeatedError
                self._own |= {b: a, c: a}
                self.made.append(first)
                return None
            case flat.Clear(a), flat.Clear(b), flat.Clear(c):
                self._same(a, b, c)
                return first
            case flat.LaunchKernel(), flat.LaunchKernel(), flat.LaunchKernel():
                if not _kernel(first) == _kernel(second) == _kernel(last):
                    raise NotRepeatedError
                given = (first.arguments, second.arguments, last.arguments)
                own = tuple(self._argument(*x) for x in zip(*given, strict=True))
                return replace(first, arguments=own)
            case flat.Repeat(trips=a), flat.Repeat(trips=b), flat.Repeat(trips=c):
                if not (a and b and c and a.value == b.value == c.value):
                    raise NotRepeatedError
                body = self.body((first.body, second.body, last.body))
                self.swaps((first.swaps, second.swaps, last.swaps))
                return replace(first, body=body)
            case _:
                raise NotRepeatedError

    def _argument(
        self, first: flat.Argument, second: flat.Argument, last: flat.Argument
    ) -> flat.Argument:
        match first, second, last:
            case flat.SlotPart(), flat.SlotPart(), flat.SlotPart():
                self._same(first.slot, second.slot, last.slot)
                step = second.offset - first.offset
                is_line = last.offset - first.offset == step * self._last
                inner = {(x.step, x.depth) for x in (first, second, last)}
                if not is_line or step % self._alignment or len(inner) > 1:
                    raise NotRepeatedError
                if step and first.step:
                    raise NotRepeatedError
                moves = {"step": step, "depth": self._depth}
                return replace(first, **moves) if step else first
            case flat.HostScalar(_, a, False), flat.HostScalar(), flat.HostScalar():
                others = {(repr(x.value), x.dtype) for x in (second, last)}
                if others != {(repr(a), first.dtype)}:
                    raise NotRepeatedError
                return first
            case _:
                raise NotRepeatedError
