# SPDX-License-Identifier: Apache-2.0
"""Functions of what rows come to, as a logarithm of a sum, for many rows at once.

A row has one such number, which no vector helps with, and where rows are short it takes
as long as all else. What it needs is kept for some rows on the stack; a loop over them,
of which vectors are made, computes and stores the rest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.scalars.functions import minimum
from nfuser.compiler.lower.cpu.vectors.lanes import instructions, is_dear
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    IndexValue,
    Let,
    Load,
    LoadPacket,
    Number,
    SetElement,
    Store,
    StoreLine,
    StorePacket,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import changed, gathers
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.loops.draws import has_draws
from nfuser.compiler.schedule.scheduled import Scheduled

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Stmt

    Body: TypeAlias = tuple[Stmt, ...]

_ROWS = 64  # some vectors
_PLAIN = (Let, Store, Var, Number, IndexValue, Call, Load)
_OF_BUFFERS = (Load, LoadPacket, Store, StorePacket, StoreLine)


def finish_rows(kernel: Kernel) -> Kernel:
    """Let dear functions of what rows come to be computed for many rows at once.

    Rows may run in any order, so one may store its results after others are read.
    """
    scheduled = kernel.scheduled
    if not isinstance(scheduled, Scheduled) or has_draws(kernel):
        return kernel
    if scheduled.rows is None or scheduled.turns is not None:
        return kernel
    made = Additions(kernel)
    named = Counter(_variables(kernel.body))

    def change(loop: For) -> Body | None:
        work, rest = _parted(loop)
        is_plain = loop.going is None and not loop.backwards
        is_apart = is_plain and _is_dear(rest) and _may_wait(work, rest, named)
        return _in_two(loop, work, rest, made) if is_apart else None

    return made.to(each_loop(kernel.body, change))


def _parted(loop: For) -> tuple[Body, Body]:
    """Return what a turn does up to its last loop, and what comes after it."""
    count = len(loop.body)
    while count and isinstance(loop.body[count - 1], Let | Store):
        count -= 1
    work = loop.body[:count]
    has_loops = any(isinstance(stmt, For) for stmt in work)
    return (work, loop.body[count:]) if has_loops else (loop.body, ())


def _is_dear(rest: Body) -> bool:
    calls = [x for x in every(rest) if isinstance(x, Call) and x.dtype.is_float]
    return any(is_dear(x.op) and instructions(x) for x in calls)


def _may_wait(work: Body, rest: Body, named: Counter[Var]) -> bool:
    """Tell whether nothing but ``rest`` needs what it computes, and it needs no more.

    What it sets is named nowhere else, and what it reads and writes of memory is not
    written or read in between.
    """
    own = Counter(_variables(rest))
    is_own = all(own[s.var] == named[s.var] for s in rest if isinstance(s, Let))
    is_plain = all(isinstance(x, _PLAIN) for x in every(rest))
    is_fixed = gathers((*work, *rest))
    return is_own and is_plain and not is_fixed and not _meet(work, rest)


def _meet(work: Body, rest: Body) -> bool:
    """Tell whether one of two may write what the other reads or writes."""
    read = {x.buffer for x in every(rest) if isinstance(x, Load)}
    written = {x.buffer for x in rest if isinstance(x, Store)}
    before = [x for x in every(work) if isinstance(x, _OF_BUFFERS)]
    changed_before = {x.buffer for x in before if not isinstance(x, Load)}
    return bool(written & ({x.buffer for x in before} | read) or read & changed_before)


def _in_two(loop: For, work: Body, rest: Body, made: Additions) -> Body:
    """Return a loop over some rows at a time: their work, then what comes of it."""
    tile = made.loops.make((loop.stop + (_ROWS - 1)) // _ROWS)
    start = tile * _ROWS
    turns = minimum(_ROWS, loop.stop - start)
    row, late = made.loops.make(turns), made.loops.make(turns)
    set_before = {x.var: None for x in every(work) if isinstance(x, Let)}
    needed = [v for v in dict.fromkeys(_variables(rest)) if v in set_before]
    kept = {v: made.array(v.dtype, _ROWS) for v in needed}
    names = {v: replace(v) for v in needed}
    keep = (SetElement(kept[v], row, v) for v in needed)
    take = (Let(names[v], Element(kept[v], late)) for v in needed)
    first = (*changed(work, {loop.index: start + row}), *keep)
    last = (*take, *changed(rest, {loop.index: start + late}, names))
    both = replace(loop, index=row, stop=turns, body=first), For(late, turns, last)
    return (For(tile, tile.extent, both),)


def _variables(body: Body) -> list[Var]:
    return [x for x in every(body) if isinstance(x, Var)]
