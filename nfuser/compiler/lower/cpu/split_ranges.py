# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel end where a condition on their index begins or ceases to hold.

What was concatenated or padded lies in several pieces. One loop over all of them has to
compare each index, and reads under masks; one for each piece reads as it is. So does a
loop over what is reflected, whose index is the lesser of two, one rising, one falling.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import maximum, minimum
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    For,
    If,
    Let,
    SetElement,
    Stmt,
    Store,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import changed, gathers
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, LoopCounter

_Sides: TypeAlias = "tuple[Scalar, Scalar]"  # what holds before a turn, and from it on
_STEPS = (1, 2)  # of what one side gains on the other in a turn: 2 where it turns back
_MOST = 2  # seams; more are left to masks


def split_ranges(kernel: Kernel) -> Kernel:
    """Cut loops over lanes where a condition on their index turns.

    What is in several pieces gains nothing where these go through memory side by side.
    """
    made = Additions(kernel)
    definition = kernel.scheduled.fusion.definition
    extents = {x for tensor in definition for x in tensor.shape}

    def change(loop: For) -> tuple[For, ...] | None:
        if loop.lane is None:
            return None
        pieces = at_seams(loop, made.loops, extents)
        if len(pieces) == 1:
            return None
        lane = replace(loop.lane, walk=replace(loop.lane.walk, streams=1))
        return tuple(replace(piece, lane=lane) for piece in pieces)

    return made.to(each_loop(kernel.body, change))


def at_seams(
    loop: For, loops: LoopCounter, natural: Container[Scalar] = frozenset[Scalar]()
) -> tuple[For, ...]:
    """Return ``loop`` in pieces in which each condition holds for all turns or none.

    ``natural`` are not negative in any call, though they look as if they might be:
    extents of what a slice takes.
    """
    if gathers(loop.body):
        return (loop,)
    seams = _seams(loop)
    ordered = _ordered(list(seams), natural)
    if not seams or len(seams) > _MOST or ordered is None:
        return (loop,)
    ends = [_within(seam, loop.stop) for seam in ordered]
    pieces: list[For] = []
    for number, (begin, end) in enumerate(
        zip([sc.const(0), *ends], [*ends, loop.stop], strict=True)
    ):
        index = loops.make(end - begin)
        known: dict[Scalar, Scalar] = {
            choice: sides[ordered.index(seam) < number]
            for seam, choices in seams.items()
            for choice, sides in choices.items()
        }
        body = changed(loop.body, known)
        body = changed(body, {loop.index: begin + index})
        pieces.append(replace(loop, index=index, stop=index.extent, body=_used(body)))
    return tuple(pieces)


def _seams(loop: For) -> dict[Scalar, dict[Scalar, _Sides]]:
    """Return turns, and for each what is one thing before it and another from it on."""
    inner = {stmt.index for stmt in every(loop.body) if isinstance(stmt, For)}
    seams: dict[Scalar, dict[Scalar, _Sides]] = {}
    for choice in scalar_walk.every(scalars_in(loop.body)):
        if not isinstance(choice, Binary) or choice.op not in _SIDES:
            continue
        found = _turn(choice, loop.index)
        if found is None:
            continue
        where, is_rising = found
        if inner.isdisjoint(scalar_walk.loops_in(where)):
            below, above = _SIDES[choice.op](choice)
            sides = (below, above) if is_rising else (above, below)
            seams.setdefault(where, {})[choice] = sides
    return seams


_SIDES: dict[Op, Callable[[Binary], _Sides]] = {
    Op.LT: lambda x: (sc.const(0), sc.const(1)),
    Op.MIN: lambda x: (x.rhs, x.lhs),
    Op.MAX: lambda x: (x.lhs, x.rhs),
}
"""What a choice is where its right side is below the left, and where it is above."""


def _turn(choice: Binary, index: LoopIndex) -> tuple[Scalar, bool] | None:
    """Return the turn at which the right side passes the left, and if it rises there.

    A condition holds where the right side is above, not where both are equal; which of
    two equal sides is taken makes no difference.
    """
    gap = choice.rhs - choice.lhs
    if index not in scalar_walk.loops_in(gap):
        return None
    for step in _STEPS:
        if index not in scalar_walk.loops_in(start := gap + index * step):
            # Natural numbers alone are divided.
            return maximum(start + (step - 1), 0) // step if step > 1 else start, False
        if index not in scalar_walk.loops_in(rest := gap - index * step):
            return maximum(step - rest, 0) // step if step > 1 else 1 - rest, True
    return None


def _ordered(seams: list[Scalar], natural: Container[Scalar]) -> list[Scalar] | None:
    """Return ``seams`` in the order of their turns, if the sizes leave only one."""
    if len(seams) != 2:
        return seams
    for before, after in (seams, seams[::-1]):
        gap = after - before
        if sc.is_natural(gap) or gap in natural:
            return [before, after]
    return None


def _within(turn: Scalar, stop: Scalar) -> Scalar:
    return minimum(maximum(turn, 0), stop)


def _used(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return ``body`` without what sets variables that nothing reads after it.

    A variable that is read before it is set comes from an earlier turn, and goes on.
    """
    carried = _carried(body)
    wanted = set(carried)
    kept: list[Stmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, Let):
            if stmt.var not in wanted:
                continue
            wanted.discard(stmt.var)
        wanted.update(_read(stmt))
        kept.append(stmt)
    return _without_copies(kept[::-1], carried)


def _carried(body: Iterable[Stmt]) -> set[Var]:
    """Return the variables that a turn begins with, or may leave as they were."""
    carried: set[Var] = set()
    own: set[Var] = set()
    for stmt in body:
        carried.update(var for var in _read(stmt) if var not in own)
        if isinstance(stmt, Let):
            own.add(stmt.var)
    return carried


def _without_copies(body: list[Stmt], carried: set[Var]) -> tuple[Stmt, ...]:
    """Return ``body`` with one name for what has two."""
    times = Counter(x.var for x in every(body) if isinstance(x, Let))
    once = {var for var, count in times.items() if count == 1} - carried
    names: dict[Var, Var] = {}
    kept: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(var, Var() as other) if var in once and other in once:
                names[var] = names.get(other, other)
            case _:
                kept.append(stmt)
    return changed(tuple(kept), {}, names)


def _read(stmt: Stmt) -> set[Var]:
    match stmt:
        case Let(_, value) | Store(_, _, value) | SetElement(_, _, value):
            parts: Iterable[object] = [value]
        case If(condition, body):
            parts = [condition, *body]
        case _:
            parts = [stmt]
    return {x for x in every(parts) if isinstance(x, Var)}
