# SPDX-License-Identifier: Apache-2.0
"""Turns of a CPU loop that read one element, side by side.

What is repeated is read at a quotient of the index, what is stacked at a remainder.
Divided by a constant, both are known where as many turns become one, which begins at a
multiple: an element is read, and computed with, once for all of them. The turns of a
small group lie beside each other in one body, whose loads and stores LLVM puts together
in vectors; those of a large one are a loop of their own.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import minimum
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar
from nfuser.compiler.lower.cpu.vectors.lanes import is_dear
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    Element,
    For,
    If,
    Let,
    Number,
    Stmt,
    Store,
    Value,
    Var,
)
from nfuser.compiler.lower.kernel.loop_edits import changed, gathers
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.lower.loops.draws import has_draws
from nfuser.compiler.schedule.scheduled import Scheduled, Walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, LoopCounter

_MOST = 1024  # turns of a group
_MOST_ABREAST = 8  # elements apart of which LLVM puts vectors together
_MOST_BRANCHING = 16  # turns whose conditions are better known than computed
_ALWAYS_WORTH = 4  # elements apart of which LLVM makes vectors without being asked
_MOST_STATEMENTS = 96  # of the turns of a group
_VALUES = get_args(Value)


def group_turns(kernel: Kernel) -> Kernel:
    """Let loops over lanes that divide by a constant take so many turns at once."""
    if has_draws(kernel):  # neighbours of which share words
        return kernel
    made = Additions(kernel)
    scheduled = kernel.scheduled
    is_paired = isinstance(scheduled, Scheduled) and bool(scheduled.between)
    abreast = _MOST_ABREAST // 2 if is_paired else _MOST_ABREAST

    def change(loop: For) -> tuple[Stmt, ...] | None:
        return in_groups(loop, made.loops, abreast)

    return made.to(each_loop(kernel.body, change))


def in_groups(loop: For, loops: LoopCounter, abreast: int) -> tuple[For, ...] | None:
    """Return ``loop`` in groups of turns, with those before and after all whole ones.

    Up to ``abreast`` turns make one body. None if the loop is to stay.
    """
    divided = _divided(loop) if _is_plain(loop) else None
    if divided is None:
        return None
    lhs, size = divided
    base = lhs - loop.index
    to_multiple = (size - base % size) % size
    begins = to_multiple is sc.const(0)
    before = to_multiple if begins else minimum(to_multiple, loop.stop)
    groups, left = _divmod(loop.stop - before, size)
    group = loops.make(groups)
    quotient = (base + (size - 1)) // size + group

    def turn(place: Scalar) -> tuple[Stmt, ...]:
        known = _known(loop.body, lhs, size, quotient, place)
        index = before + group * size + place
        return changed(loop.body, {**known, loop.index: index})

    main = _beside(loop, group, size, turn, abreast)
    if main is None:
        main = _nested(loop, group, size, turn, loops)
    if main is None:
        return None
    head = _turns(loop, sc.const(0), before, loops)
    return (*head, main, *_turns(loop, before + groups * size, left, loops))


def _is_plain(loop: For) -> bool:
    """Tell whether ``loop`` runs over lanes that only load, compute and store."""
    if loop.lane is None or loop.lane.folded or loop.going is not None:
        return False
    inside = every(loop.body)
    if any(isinstance(x, Element) for x in inside) or gathers(loop.body):
        return False
    return all(isinstance(x, (Let, Store, If, *_VALUES)) for x in inside)


def _divided(loop: For) -> tuple[Scalar, int] | None:
    """Return the one sum that steps with ``loop`` and is divided, and its divisor.

    That is the largest, which the others have to divide.
    """
    found = {
        (x.lhs, x.rhs)
        for x in scalar_walk.every(scalars_in(loop.body))
        if isinstance(x, Binary)
        and x.op in (Op.MOD, Op.FLOORDIV)
        and loop.index in scalar_walk.loops_in(x)
    }
    sizes = [rhs.value for _, rhs in found if isinstance(rhs, sc.Const)]
    size = max(sizes, default=0)
    if len({lhs for lhs, _ in found}) != 1 or len(sizes) != len(found):
        return None
    if not 1 < size <= _MOST or any(size % k for k in sizes):
        return None
    lhs = next(iter(found))[0]
    base = lhs - loop.index
    is_still = loop.index not in scalar_walk.loops_in(base)
    return (lhs, size) if is_still and sc.is_natural(base) else None


def _known(
    body: tuple[Stmt, ...], lhs: Scalar, size: int, quotient: Scalar, place: Scalar
) -> dict[Scalar, Scalar]:
    """Return what ``lhs`` divided comes to at a ``place`` of a group."""
    known: dict[Scalar, Scalar] = {}
    for x in scalar_walk.every(scalars_in(body)):
        match x:
            case Binary(Op.FLOORDIV, dividend, sc.Const(by)) if dividend is lhs:
                known[x] = quotient * (size // by) + place // by
            case Binary(Op.MOD, dividend, sc.Const(by)) if dividend is lhs:
                known[x] = place % by
            case _:
                pass
    return known


def _divmod(x: Scalar, size: int) -> tuple[Scalar, Scalar]:
    """Return quotient and remainder: of the lesser of two multiples, of each."""
    match x:
        case Binary(Op.MIN, lhs, rhs):
            (one, rest), (other, other_rest) = _divmod(lhs, size), _divmod(rhs, size)
            if rest is other_rest is sc.const(0):
                return minimum(one, other), rest
        case _:
            pass
    return x // size, x % size


def _turns(
    loop: For, start: Scalar, count: Scalar, loops: LoopCounter
) -> tuple[For, ...]:
    """Return ``count`` turns of ``loop``, fewer than a group has, if there are any."""
    if count is sc.const(0):
        return ()
    index = loops.make(count)
    return (For(index, count, changed(loop.body, {loop.index: start + index})),)


def _beside(
    loop: For,
    group: sc.LoopIndex,
    size: int,
    turn: Callable[[Scalar], tuple[Stmt, ...]],
    abreast: int,
) -> For | None:
    """Return the loop over groups whose turns make one body, if that is short."""
    branches = any(isinstance(stmt, If) for stmt in loop.body)
    if size > (_MOST_BRANCHING if branches else abreast) or loop.lane is None:
        return None
    body = _side_by_side(turn(sc.const(k)) for k in range(size))
    if body is None or _dear(body) > _dear(loop.body) or len(body) > _MOST_STATEMENTS:
        return None
    lane = replace(loop.lane, walk=replace(loop.lane.walk, streams=1))
    wide = _ALWAYS_WORTH < size <= abreast
    return For(group, group.extent, body, narrow=wide, lane=lane)


def _nested(
    loop: For,
    group: sc.LoopIndex,
    size: int,
    turn: Callable[[Scalar], tuple[Stmt, ...]],
    loops: LoopCounter,
) -> For | None:
    """Return the loop over groups, each of which is a loop, unless that is too short.

    Functions fill vectors better in a loop over all.
    """
    if size <= _MOST_ABREAST or _dear(loop.body) or loop.lane is None:
        return None
    place = loops.make(size)
    lane = replace(loop.lane, walk=Walk())
    inner = For(place, place.extent, turn(place), rolled=True, lane=lane)
    return For(group, group.extent, (inner,))


def _side_by_side(turns: Iterable[tuple[Stmt, ...]]) -> tuple[Stmt, ...] | None:
    """Return all ``turns``, in which what is alike is computed once.

    Each value has a name of its own. None if a turn needs another, or has branches.
    """
    computed: dict[Any, Var] = {}
    made: list[Stmt] = []
    for body in turns:
        names: dict[Var, Var] = {}
        own = {stmt.var for stmt in body if isinstance(stmt, Let)}
        for given in body:
            if not isinstance(given, (Let, Store)):
                return None
            if any(x in own and x not in names for x in every([given.value])):
                return None
            (value,) = changed((given.value,), {}, names)
            if isinstance(given, Store):
                made.append(replace(given, value=value))
            elif isinstance(value, Var):
                names[given.var] = value
            else:
                form = _form(value)
                if form not in computed:
                    computed[form] = replace(given.var)
                    made.append(Let(computed[form], value))
                names[given.var] = computed[form]
    return _used(made)


def _form(item: Any) -> Any:
    """Return what is equal of two values that are computed alike."""
    if isinstance(item, tuple):
        return tuple(map(_form, cast("tuple[Any, ...]", item)))
    if isinstance(item, Var) or not isinstance(item, _VALUES):
        return item
    if isinstance(item, Number):  # of which two are equal that are not alike
        return Number, repr(item.value), item.dtype
    parts = (_form(getattr(item, field.name)) for field in fields(item))
    return type(item), *parts


def _used(made: list[Stmt]) -> tuple[Stmt, ...]:
    """Return what is stored, and what that is computed of."""
    wanted: set[Any] = set()
    kept: list[Stmt] = []
    for stmt in reversed(made):
        if isinstance(stmt, Store) or (isinstance(stmt, Let) and stmt.var in wanted):
            wanted.update(every([stmt.value]))
            kept.append(stmt)
    return tuple(kept[::-1])


def _dear(body: tuple[Stmt, ...]) -> int:
    return sum(isinstance(x, Call) and is_dear(x.op) for x in every(body))
