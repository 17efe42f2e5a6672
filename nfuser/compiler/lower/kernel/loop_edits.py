# SPDX-License-Identifier: Apache-2.0
"""Loops cut, joined and begun elsewhere, and what becomes of their bodies."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Scalar
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    For,
    If,
    IndexValue,
    Let,
    Number,
    Stmt,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import PARTS, every

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.lower.kernel.kernel_ir import LoopCounter

T = TypeVar("T")

_SCALARS = get_args(Scalar)
_NONE: Mapping[Any, Any] = {}


def jammed(outer: For, count: int, loops: LoopCounter) -> tuple[Stmt, ...]:
    """Return ``outer`` with ``count`` turns in each turn of the loops inside it.

    What a turn sets before these loops is set for all of the turns before them.
    """
    sets = [s for s in outer.body if isinstance(s, Let)]
    nested = [s for s in outer.body if isinstance(s, For)]
    is_plain = (*sets, *nested) == outer.body and not _goes_on(sets)
    if count == 1 or not nested or not is_plain or gathers(outer.body):
        return (outer,)
    groups = outer.stop // count
    group = loops.make(groups)
    turns: list[tuple[dict[Scalar, Scalar], dict[Var, Var]]] = [
        ({outer.index: group * count + k}, {s.var: replace(s.var) for s in sets})
        for k in range(count)
    ]
    begun = [changed(tuple(sets), *turn) for turn in turns]
    inner: list[Stmt] = []
    for loop in nested:
        bodies = (changed(loop.body, *turn) for turn in turns)
        inner.append(For(loop.index, loop.stop, sum(bodies, ())))
    main = For(group, groups, (*sum(begun, ()), *inner))
    return main, rest_of(outer, groups * count, loops)


def _goes_on(sets: list[Let]) -> bool:
    """Tell whether one of ``sets`` begins with what the turn before has left."""
    unset = {s.var for s in sets}
    for s in sets:
        if any(x in unset for x in every([s.value]) if isinstance(x, Var)):
            return True
        unset.discard(s.var)
    return False


def peeled(
    loop: Stmt, plain: Stmt, full: Scalar, loops: LoopCounter
) -> tuple[Stmt, ...]:
    """Return ``loop``, of which the first ``full`` turns may run as ``plain`` does."""
    assert isinstance(loop, For)
    assert isinstance(plain, For)
    parts = replace(plain, stop=full), rest_of(loop, full, loops)
    return parts[::-1] if loop.backwards else parts


def parted(loop: For, count: int) -> tuple[For, For]:
    """Return the first ``count`` turns of ``loop``, and those after them."""
    body = changed(loop.body, {loop.index: loop.index + count})
    first = For(loop.index, sc.const(count), loop.body, loop.narrow)
    return first, For(loop.index, loop.stop - count, body, loop.narrow)


def rest_of(loop: For, start: Scalar, loops: LoopCounter) -> For:
    """Return what is left of ``loop`` from ``start`` on."""
    rest = loops.make(loop.stop - start)
    body = changed(loop.body, {loop.index: start + rest})
    return For(rest, rest.extent, body, lane=loop.lane, backwards=loop.backwards)


def gathers(body: tuple[Stmt, ...]) -> bool:
    """Tell whether variables of ``body`` are in indices: it has to stay one of a kind.

    Indices that are computed of a variable are computed once.
    """
    every = scalar_walk.every(scalars_in(body))
    return any(isinstance(x, sc.Datum) for x in every)


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
