# SPDX-License-Identifier: Apache-2.0
"""Loops of a CPU kernel that go through several places of memory side by side."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from nfuser.dtypes import DType
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.scalar import Scalar
from nfuser.lower.cpu.lanes import has_narrow_work
from nfuser.lower.kernel.kernel_ir import (
    Array,
    Buffer,
    Call,
    FindLine,
    For,
    If,
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
from nfuser.lower.kernel.parameters import scalars_in
from nfuser.lower.kernel.walk import PARTS, every
from nfuser.schedule.pointwise.interleave import LINE, PIECE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.lower.kernel.kernel_ir import Value
    from nfuser.lower.values import Values
    from nfuser.schedule.scheduled import Walk

T = TypeVar("T")

_GRAIN = 16  # pieces have a multiple of so many elements, so most loads are aligned
_NARROW_GRAIN = 64  # lanes times what is interleaved: a loop told its lanes leaves none
_EACH, _BLOCK, _REST, _GROUP, _FIRST = range(3000, 3005)
_SCALARS = get_args(Scalar)
_NONE: Mapping[Any, Any] = {}


@node
class Folded:
    """A variable that a loop folds into: what it begins with, and how two become one.

    ``join`` takes two of them in any order and grouping.
    """

    begin: Value
    join: str


def in_pieces(
    loop: For,
    walk: Walk,
    folded: Mapping[Var, Folded],
    values: Values,
) -> tuple[Stmt, ...]:
    """Return ``loop`` as pieces that run side by side, and what they leave.

    Each piece folds into variables of its own, and they come together at the end. What
    goes past the cache is stored a line at a time.
    """
    if gathers(loop.body):
        return (loop,)
    lined = _lined_stores(loop) if walk.bypass else {}
    reads = any(isinstance(x, Load) for x in every(loop.body))
    count = walk.streams if reads else 1
    if isinstance(loop.stop, sc.Const) and loop.stop.value < count * PIECE:
        count = 1
    narrow = not lined and has_narrow_work(loop)
    if count == 1 and not lined and not narrow:
        return (loop,)
    begin, first = _up_to_a_line(loop, lined)
    grain = LINE if lined else _NARROW_GRAIN if narrow else _GRAIN
    is_checked = count > 1 or narrow
    blocks, set_blocks = _blocks(loop.stop - first, count, grain, is_checked)
    begin += set_blocks
    length = blocks * grain
    own = [{var: replace(var) for var in folded} for _ in range(count - 1)]
    begin += [Let(names[v], f.begin) for names in own for v, f in folded.items()]
    pieces = [(first + length * k, names) for k, names in enumerate([{}, *own])]
    if lined:
        lines = {b: values.array(b.dtype, LINE) for b in lined}
        block = sc.loop_index(_BLOCK, blocks)
        starts = [(start + block * LINE, names) for start, names in pieces]
        parts = (_block(loop, start, names, lines) for start, names in starts)
        main = For(block, blocks, sum(parts, ()))
    else:
        each = sc.loop_index(_EACH, length)
        bodies = (
            changed(loop.body, {loop.index: start + each}, names)
            for start, names in pieces
        )
        main = For(each, length, sum(bodies, ()), narrow)
    join = [
        Let(v, Call(f.join, (v, names[v]), v.dtype))
        for names in own
        for v, f in folded.items()
    ]
    left = _rest(loop, first + length * count)
    return (*begin, main, *join, left)


def jammed(outer: For, count: int) -> tuple[Stmt, ...]:
    """Return ``outer`` with ``count`` turns in each turn of the loops inside it."""
    nested = all(isinstance(s, For) for s in outer.body)
    if count == 1 or not nested or gathers(outer.body):
        return (outer,)
    groups = outer.stop // count
    group = sc.loop_index(_GROUP, groups)
    inner: list[Stmt] = []
    for loop in outer.body:
        assert isinstance(loop, For)
        turns = (
            changed(loop.body, {outer.index: group * count + k}) for k in range(count)
        )
        inner.append(For(loop.index, loop.stop, sum(turns, ())))
    return For(group, groups, tuple(inner)), _rest(outer, groups * count)


def peeled(loop: Stmt, plain: Stmt, full: Scalar) -> tuple[Stmt, ...]:
    """Return ``loop``, of which the first ``full`` turns may run as ``plain`` does."""
    assert isinstance(loop, For)
    assert isinstance(plain, For)
    return replace(plain, stop=full), _rest(loop, full)


def parted(loop: For, count: int) -> tuple[For, For]:
    """Return the first ``count`` turns of ``loop``, and those after them."""
    body = changed(loop.body, {loop.index: loop.index + count})
    first = For(loop.index, sc.const(count), loop.body, loop.narrow)
    return first, For(loop.index, loop.stop - count, body, loop.narrow)


def gathers(body: tuple[Stmt, ...]) -> bool:
    """Tell whether variables of ``body`` are in indices: it has to stay one of a kind.

    Indices that are computed of a variable are computed once.
    """
    every = scalar_walk.every(list(scalars_in(body)))
    return any(isinstance(x, sc.Datum) for x in every)


def _rest(loop: For, start: Scalar) -> For:
    """Return what is left of ``loop`` from ``start`` on."""
    rest = sc.loop_index(_REST, loop.stop - start)
    return For(rest, rest.extent, changed(loop.body, {loop.index: start + rest}))


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
    loop: For, lined: Mapping[Buffer, Scalar]
) -> tuple[list[Stmt], Scalar]:
    """Return the turns of ``loop`` before it comes to a line, and how many they are."""
    if not lined:
        return [], sc.const(0)
    buffer, index = next(iter(lined.items()))
    found = Var(DType.I64)
    first = sc.datum(found, (), sc.const(LINE))
    each = sc.loop_index(_FIRST, first)
    body = changed(loop.body, {loop.index: each})
    return [FindLine(found, buffer, index, loop.stop), For(each, first, body)], first


def _blocks(
    length: Scalar, count: int, grain: int, is_checked: bool
) -> tuple[Scalar, list[Stmt]]:
    """Return how many blocks a piece has, and what sets it: none in short pieces."""
    if not is_checked:
        return length // grain, []
    found = Var(DType.I64)
    most = Number(count * PIECE, DType.I64)
    is_short = Call("less", (IndexValue(length, DType.I64), most), DType.BOOL)
    number = IndexValue(length // (count * grain), DType.I64)
    chosen = Call("select", (is_short, Number(0, DType.I64), number), DType.I64)
    return sc.datum(found, (), length), [Let(found, chosen)]


def _block(
    loop: For, start: Scalar, names: Mapping[Var, Var], lines: Mapping[Buffer, Array]
) -> tuple[Stmt, ...]:
    """Return what computes a line from ``start`` on, and what stores it."""
    each = sc.loop_index(_EACH, LINE)
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


def changed(
    body: T, indices: Mapping[Scalar, Scalar], names: Mapping[Var, Var] = _NONE
) -> T:
    """Return ``body`` with other indices and variables in it."""
    every_one = list(dict.fromkeys(scalars_in((body,))))
    new = scalar_walk.substitute(every_one, indices)
    return _rebuilt(body, {**dict(zip(every_one, new, strict=True)), **names})


def _rebuilt(item: Any, by: Mapping[Any, Any]) -> Any:
    if isinstance(item, (*_SCALARS, Var)):
        return by.get(item, item)
    if isinstance(item, tuple):
        parts = (_rebuilt(part, by) for part in cast("tuple[Any, ...]", item))
        return tuple(x for part in parts for x in _settled(part))
    if isinstance(item, PARTS):
        held = {f.name: getattr(item, f.name) for f in fields(item)}
        made = replace(item, **{n: _rebuilt(part, by) for n, part in held.items()})
        return _folded(made)
    return item


def _folded(item: Any) -> Any:
    """Return what ``item`` comes to where the new indices decide a condition."""
    match item:
        case IndexValue(sc.Const(known), dtype) if dtype.is_bool:
            return Number(bool(known), dtype)
        case Call("select", (Number(known), then, other)):
            return then if known else other
        case Call("bit_and", (Number(known), other) | (other, Number(known)), dtype):
            return (other if known else Number(False, dtype)) if dtype.is_bool else item
        case _:
            return item


def _settled(item: Any) -> tuple[Any, ...]:
    """Return what stands for ``item``, whose condition the new indices may decide."""
    match item:
        case If(sc.Const() as known, body):
            return body if known.value else ()
        case _:
            return (item,)
