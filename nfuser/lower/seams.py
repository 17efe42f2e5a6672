# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel end where a condition on their index begins or ceases to hold.

What was concatenated or padded lies in several pieces. One loop over all of them has to
compare each index, and reads under masks; one for each piece reads as it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.scalar import Binary, Op, Scalar
from nfuser.lower.kernel_ir import For, If, Let, SetElement, Stmt, Store, Var
from nfuser.lower.parameters import scalars_in
from nfuser.lower.streams import changed, gathers
from nfuser.lower.walk import every

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.ir.scalar import LoopIndex

_PIECE = 3100  # number of loops made here
_MOST = 2  # seams; more are left to masks


def at_seams(loop: For) -> tuple[For, ...]:
    """Return ``loop`` in pieces in which each condition holds for all turns or none."""
    if gathers(loop.body):
        return (loop,)
    seams = _seams(loop)
    ordered = _ordered(list(seams))
    if not seams or len(seams) > _MOST or ordered is None:
        return (loop,)
    ends = [_within(seam, loop.stop) for seam in ordered]
    pieces: list[For] = []
    for number, (begin, end) in enumerate(
        zip([sc.const(0), *ends], [*ends, loop.stop], strict=True)
    ):
        index = sc.loop_index(_PIECE + number, end - begin)
        known: dict[Scalar, Scalar] = {
            condition: sc.const(int(begins == (ordered.index(seam) < number)))
            for seam, conditions in seams.items()
            for condition, begins in conditions.items()
        }
        body = changed(loop.body, known)
        body = changed(body, {loop.index: begin + index})
        pieces.append(replace(loop, index=index, stop=index.extent, body=_used(body)))
    return tuple(pieces)


def _seams(loop: For) -> dict[Scalar, dict[Scalar, bool]]:
    """Return the turns at which conditions begin (True) or cease to hold."""
    inner = {stmt.index for stmt in every(loop.body) if isinstance(stmt, For)}
    seams: dict[Scalar, dict[Scalar, bool]] = {}
    for condition in scalar_walk.every(scalars_in(loop.body)):
        found = _seam(condition, loop.index)
        if found is None:
            continue
        where, begins = found
        if inner.isdisjoint(scalar_walk.loops_in(where)):
            seams.setdefault(where, {})[condition] = begins
    return seams


def _seam(condition: Scalar, index: LoopIndex) -> tuple[Scalar, bool] | None:
    """Return the turn at which ``condition`` begins to hold, or ceases to."""
    if not (isinstance(condition, Binary) and condition.op is Op.LT):
        return None
    gap = condition.rhs - condition.lhs  # above 0 where it holds
    if index not in scalar_walk.loops_in(gap):
        return None
    if index not in scalar_walk.loops_in(end := gap + index):
        return end, False
    if index not in scalar_walk.loops_in(rest := gap - index):
        return 1 - rest, True
    return None


def _ordered(seams: list[Scalar]) -> list[Scalar] | None:
    """Return ``seams`` in the order of their turns, if the sizes leave only one."""
    if len(seams) == 2 and not sc.is_natural(seams[1] - seams[0]):
        turned = seams[::-1]
        return turned if sc.is_natural(turned[1] - turned[0]) else None
    return seams


def _within(turn: Scalar, stop: Scalar) -> Scalar:
    return sc.minimum(sc.maximum(turn, 0), stop)


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
