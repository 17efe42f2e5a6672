# SPDX-License-Identifier: Apache-2.0
"""Statements of a host program whose sizes are scalars.

Tensors are those of the IR: their extents are sizes of the inputs, integers that the
caller passes, loop indices, and what is computed of them. A statement that gives a
tensor which already has memory writes there; else it makes a new array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never, cast, get_args

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.scalar import Scalar
from nfuser.compiler.ir.tensor import SourceLine, TensorView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Operand: TypeAlias = TensorView | Scalar | bool | int | float | complex
_SCALARS: tuple[type, ...] = get_args(Scalar)


@node
class Input:
    """What the caller passes under ``name``: an array, or an integer."""

    name: str
    value: TensorView | Scalar


@node
class HostStream:
    """A stream: number ``index`` of the evaluator's, or the one that GetStream met."""

    index: Scalar | None = None


@node
class Event:
    """A point in the work of a stream."""


@node
class Allocate:
    """Make an array for ``result``; nothing is known of its elements."""

    result: TensorView
    line: SourceLine | None = None


@node
class Free:
    """Let go of ``source``, which no later statement names."""

    source: TensorView
    line: SourceLine | None = None


@node
class Launch:
    """Run ``function``, a fusion or what runs one, on tensors and integers."""

    function: object
    operands: tuple[Operand, ...]
    results: tuple[TensorView, ...]
    line: SourceLine | None = None


@node
class Set:
    """Copy the elements of ``source``."""

    source: TensorView
    result: TensorView
    line: SourceLine | None = None


@node
class UnaryOp:
    """NumPy's function ``name`` of one operand."""

    name: str
    source: TensorView
    result: TensorView
    line: SourceLine | None = None


@node
class BinaryOp:
    """NumPy's function ``name`` of two operands, one of which may be a number."""

    name: str
    lhs: Operand
    rhs: Operand
    result: TensorView
    line: SourceLine | None = None


@node
class ReductionOp:
    """Fold ``axes``; they are gone from the result."""

    name: str
    source: TensorView
    axes: tuple[int, ...]
    result: TensorView
    line: SourceLine | None = None


@node
class MatmulOp:
    """The product of matrices, by the array library."""

    lhs: TensorView
    rhs: TensorView
    result: TensorView
    line: SourceLine | None = None


@node
class SelectOp:
    """The elements at ``index`` along ``axis``, which is gone from the result."""

    source: TensorView
    axis: int
    index: Scalar
    result: TensorView
    line: SourceLine | None = None


@node
class AliasSelect:
    """A Select that always shares memory with its source: it may be written."""

    source: TensorView
    axis: int
    index: Scalar
    result: TensorView
    line: SourceLine | None = None


@node
class SliceOp:
    """Element i along each axis is element ``start + step * i``, below ``stop``."""

    source: TensorView
    starts: tuple[Scalar, ...]
    stops: tuple[Scalar, ...]
    steps: tuple[int, ...]
    result: TensorView
    line: SourceLine | None = None


@node
class PermuteOp:
    """Axis k of the result is axis ``order[k]`` of the source."""

    source: TensorView
    order: tuple[int, ...]
    result: TensorView
    line: SourceLine | None = None


@node
class ReshapeOp:
    """The same elements in C order; a copy where no strides can say so.

    One that ``shares`` memory is an error there: what is written to it must arrive.
    """

    source: TensorView
    result: TensorView
    line: SourceLine | None = None
    shares: bool = False


@node
class ForLoop:
    """Run ``body`` for each index; what it defines is gone afterwards.

    Iterations of a ``parallel`` one depend on each other only where they share a
    stream. So it is enough that each stream waits for the caller's once, and that one
    for each in the end: else every iteration would wait for the one before.
    """

    index: Scalar
    start: Scalar
    stop: Scalar
    step: int
    body: tuple[Statement, ...]
    line: SourceLine | None = None
    parallel: bool = False


@node
class IfThenElse:
    """Run ``body`` if ``condition`` is not 0, else ``orelse``."""

    condition: Scalar
    body: tuple[Statement, ...]
    orelse: tuple[Statement, ...] = ()
    line: SourceLine | None = None


@node
class GetStream:
    """Remember the current stream as ``result``."""

    result: HostStream
    line: SourceLine | None = None


@node
class SetStream:
    """Run what follows on ``stream``."""

    stream: HostStream
    line: SourceLine | None = None


@node
class Synchronize:
    """Let the current stream wait for all that ``stream`` was given so far."""

    stream: HostStream
    line: SourceLine | None = None


@node
class RecordEvent:
    """Mark this point of the current stream as ``result``."""

    result: Event
    line: SourceLine | None = None


@node
class Wait:
    """Let the current stream wait for ``event``."""

    event: Event
    line: SourceLine | None = None


@node
class Communicate:
    """Exchange ``source`` with other ranks by the collective ``kind``.

    ``axes`` are those that are gathered or scattered. The ranks of ``mesh`` that differ
    only ``along`` some of its dimensions do it among them; without a mesh all do.
    ``ends`` are the places among them that have all, or that get it.
    """

    kind: str
    source: TensorView
    axes: tuple[int, ...]
    result: TensorView
    line: SourceLine | None = None
    ends: tuple[int, ...] = ()
    mesh: tuple[int, ...] = ()
    along: tuple[int, ...] = ()


View: TypeAlias = SelectOp | AliasSelect | SliceOp | PermuteOp | ReshapeOp
Compute: TypeAlias = Set | UnaryOp | BinaryOp | ReductionOp | MatmulOp | Communicate
Order: TypeAlias = GetStream | SetStream | Synchronize | RecordEvent | Wait
Statement: TypeAlias = (
    Allocate | Free | Launch | Compute | View | ForLoop | IfThenElse | Order
)


def reads(stmt: Statement) -> tuple[TensorView, ...]:
    """Return the tensors that ``stmt`` itself reads, without those of its body."""
    match stmt:
        case Launch(_, operands):
            return tuple(x for x in operands if isinstance(x, TensorView))
        case BinaryOp(_, lhs, rhs):
            return tuple(x for x in (lhs, rhs) if isinstance(x, TensorView))
        case MatmulOp(lhs, rhs):
            return (lhs, rhs)
        case Allocate() | ForLoop() | IfThenElse():
            return ()
        case GetStream() | SetStream() | Synchronize() | RecordEvent() | Wait():
            return ()
        case (
            Set()
            | UnaryOp()
            | ReductionOp()
            | SelectOp()
            | AliasSelect()
            | SliceOp()
            | PermuteOp()
            | ReshapeOp()
            | Communicate()
            | Free()
        ):
            return (stmt.source,)
        case _:
            assert_never(stmt)


def writes(stmt: Statement) -> tuple[TensorView, ...]:
    """Return the tensors that ``stmt`` gives, without those of its body."""
    if isinstance(stmt, Launch):
        return stmt.results
    if isinstance(
        stmt, Free | ForLoop | IfThenElse | GetStream | SetStream | Synchronize
    ):
        return ()
    return () if isinstance(stmt, RecordEvent | Wait) else (stmt.result,)


def blocks(stmt: Statement) -> tuple[tuple[Statement, ...], ...]:
    """Return the bodies inside ``stmt``."""
    if isinstance(stmt, ForLoop):
        return (stmt.body,)
    return (stmt.body, stmt.orelse) if isinstance(stmt, IfThenElse) else ()


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield the statements of ``body`` and of what lies inside, in order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block)


def scalars(operands: Sequence[Operand]) -> list[Scalar]:
    """Return the integer expressions among ``operands``."""
    return [cast("Scalar", x) for x in operands if isinstance(x, _SCALARS)]


def line_of(stmt: Statement) -> str:
    """Return the end of an error message that shows the user's line, if known."""
    return "" if stmt.line is None else stmt.line.note
