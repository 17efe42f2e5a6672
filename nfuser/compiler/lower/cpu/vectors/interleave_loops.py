# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel that go through several places of memory side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.cpu.bound_angles import has_angles
from nfuser.compiler.lower.cpu.vectors.lanes import has_narrow_work
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Buffer,
    Call,
    FindLine,
    For,
    IndexValue,
    Let,
    Load,
    Number,
    SetElement,
    Stmt,
    Store,
    StoreLine,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import changed, gathers, rest_of
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.schedule.pointwise.interleave import LINE, PIECE
from nfuser.compiler.schedule.scheduled import Walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Lane, LoopCounter

_GRAIN = 16  # pieces have a multiple of so many elements, so most loads are aligned
_APART = 128
"""Elements that pieces leave for the end, where they store.

Pieces of whole pages would lie so that a processor that compares 12 bits of an address
takes what one loads for what the other has just stored, and waits.
"""

_NARROW_GRAIN = 64  # lanes times what is interleaved: a loop told its lanes leaves none


def interleave_loops(kernel: Kernel) -> Kernel:
    """Let loops over lanes go through as many places of memory as they are to.

    What computes sines gains nothing; and loops of one place can look at angles.
    """
    made = Additions(kernel)

    def change(loop: For) -> tuple[Stmt, ...] | None:
        if loop.lane is None:
            return None
        lane = loop.lane
        if has_angles(loop):
            lane = replace(lane, walk=Walk())
        return in_pieces(loop, lane, made)

    return made.to(each_loop(kernel.body, change))


def in_pieces(loop: For, lane: Lane, made: Additions) -> tuple[Stmt, ...] | None:
    """Return ``loop`` as pieces that run side by side, and what they leave.

    Each piece folds into variables of its own, and they come together at the end. What
    goes past the cache is stored a line at a time. None if the loop is to stay.
    """
    walk, folded = lane.walk, {f.var: f for f in lane.folded}
    if gathers(loop.body):
        return None
    lined = _lined_stores(loop) if walk.bypass else {}
    reads = any(isinstance(x, Load) for x in every(loop.body))
    count = walk.streams if reads else 1
    if isinstance(loop.stop, sc.Const) and loop.stop.value < count * PIECE:
        count = 1
    narrow = not lined and has_narrow_work(loop)
    if narrow and walk.short:
        return (replace(loop, narrow=True),)
    if count == 1 and not lined and not narrow:
        return None
    begin, first = _up_to_a_line(loop, lined, made.loops)
    grain = LINE if lined else _NARROW_GRAIN if narrow else _GRAIN
    is_checked = count > 1 or narrow
    apart = 0 if folded or count == 1 else _APART
    blocks, set_blocks = _blocks(loop.stop - first, count, grain, is_checked, apart)
    begin += set_blocks
    length = blocks * grain
    own = [{var: replace(var) for var in folded} for _ in range(count - 1)]
    begin += [Let(names[v], f.begin) for names in own for v, f in folded.items()]
    pieces = [(first + length * k, names) for k, names in enumerate([{}, *own])]
    if lined:
        lines = {b: made.array(b.dtype, LINE) for b in lined}
        block = made.loops.make(blocks)
        starts = [(start + block * LINE, names) for start, names in pieces]
        parts = (_block(loop, at, names, lines, made.loops) for at, names in starts)
        main = For(block, blocks, sum(parts, ()), lane=loop.lane)
    else:
        each = made.loops.make(length)
        bodies = (
            changed(loop.body, {loop.index: start + each}, names)
            for start, names in pieces
        )
        main = For(each, length, sum(bodies, ()), narrow, lane=loop.lane)
    join = [
        Let(v, Call(f.join, (v, names[v]), v.dtype))
        for names in own
        for v, f in folded.items()
    ]
    left = rest_of(loop, first + length * count, made.loops)
    return (*begin, main, *join, left)


def _lined_stores(loop: For) -> dict[Buffer, Scalar]:
    """Return where neighbours are stored as they are, each with its first index."""
    found: dict[Buffer, Scalar] = {}
    for stmt in loop.body:
        if isinstance(stmt, Store) and stmt.buffer.dtype.compute is stmt.buffer.dtype:
            base = stmt.index - loop.index
            if loop.index not in scalar_walk.loops_in(base):
                found[stmt.buffer] = base
    return {} if any(b.dtype.is_bool for b in found) else found


def _up_to_a_line(
    loop: For, lined: Mapping[Buffer, Scalar], loops: LoopCounter
) -> tuple[list[Stmt], Scalar]:
    """Return the turns of ``loop`` before it comes to a line, and how many they are."""
    if not lined:
        return [], sc.const(0)
    buffer, index = next(iter(lined.items()))
    found = Var(DType.I64)
    first = scalar_symbols.datum(found, (), sc.const(LINE))
    each = loops.make(first)
    body = changed(loop.body, {loop.index: each})
    turns = For(each, first, body, lane=loop.lane)
    return [FindLine(found, buffer, index, loop.stop), turns], first


def _blocks(
    length: Scalar, count: int, grain: int, is_checked: bool, apart: int
) -> tuple[Scalar, list[Stmt]]:
    """Return how many blocks a piece has, and what sets it: none in short pieces."""
    if not is_checked:
        return length // grain, []
    found = Var(DType.I64)
    most = Number(count * PIECE, DType.I64)
    is_short = Call("less", (IndexValue(length, DType.I64), most), DType.BOOL)
    number = IndexValue((length - apart) // (count * grain), DType.I64)
    chosen = Call("select", (is_short, Number(0, DType.I64), number), DType.I64)
    return scalar_symbols.datum(found, (), length), [Let(found, chosen)]


def _block(
    loop: For,
    start: Scalar,
    names: Mapping[Var, Var],
    lines: Mapping[Buffer, Array],
    loops: LoopCounter,
) -> tuple[Stmt, ...]:
    """Return what computes a line from ``start`` on, and what stores it."""
    each = loops.make(LINE)
    inside: list[Stmt] = []
    after: list[Stmt] = []
    for stmt in changed(loop.body, {loop.index: start + each}, names):
        if isinstance(stmt, Store) and stmt.buffer in lines:
            line, first = lines[stmt.buffer], stmt.index - each
            inside.append(SetElement(line, each, stmt.value))
            after.append(StoreLine(stmt.buffer, first, line))
        else:
            inside.append(stmt)
    return (For(each, each.extent, tuple(inside)), *after)
