# SPDX-License-Identifier: Apache-2.0
"""A loop in two versions, and a look beforehand at what its elements come of."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.kernel.kernel_ir import (
    Call,
    For,
    If,
    Let,
    Number,
    SetElement,
    Store,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import scalars_in
from nfuser.compiler.lower.kernel.walk import PARTS, every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nfuser.compiler.lower.kernel.kernel_ir import Stmt, Value

T = TypeVar("T")


def chosen(
    loop: For,
    found: tuple[Stmt, ...],
    far: Mapping[Value, Value],
    near: For,
    otherwise: tuple[Stmt, ...],
) -> tuple[Stmt, ...]:
    """Return ``near`` where no condition holds in any turn of ``loop``.

    ``far`` has a condition for each value that is looked at, which ``found`` computes;
    where one holds, ``otherwise`` runs.
    """
    beyond = last = Var(DType.BOOL)
    looked: list[Stmt] = []

    def look(value: Value) -> None:
        nonlocal last
        either = Var(DType.BOOL)
        test = Call("bit_or", (last, far[value]), DType.BOOL)
        looked.append(Let(either, test))
        last = either

    set_here = {var for stmt in found for var in _defined(stmt)}
    for value in far:
        if value not in set_here:
            look(value)
    # A loop that goes through several places sets its variables once for each.
    for stmt in found:
        looked.append(stmt)
        for var in dict.fromkeys(_defined(stmt)):
            if var in far:
                look(var)
    looked.append(Let(beyond, last))
    within = Call("invert", (beyond,), DType.BOOL)
    return (
        Let(beyond, Number(False, DType.BOOL)),
        For(loop.index, loop.stop, tuple(looked)),
        If(within, (near,)),
        If(beyond, otherwise),
    )


def what_gives(
    wanted: Iterable[Value], body: tuple[Stmt, ...]
) -> tuple[Stmt, ...] | None:
    """Return the statements of ``body`` that ``wanted`` comes of; None if it folds."""
    needed = {x for x in wanted if isinstance(x, Var)}
    kept: list[Stmt] = []
    for stmt in reversed(body):
        defined = set(_defined(stmt))
        if isinstance(stmt, (Store, SetElement)) or not defined & needed:
            continue
        if not isinstance(stmt, (Let, If)):
            return None
        if isinstance(stmt, Let) and stmt.var in set(_variables(stmt.value)):
            return None
        kept.append(stmt)
        needed.update(_variables(stmt))
    return tuple(reversed(kept))


def is_indexed(body: tuple[Stmt, ...]) -> bool:
    """Tell whether what ``body`` computes is in its indices."""
    own = {x.var for x in every(body) if isinstance(x, Let)}
    inside = scalar_walk.every(scalars_in(body))
    return any(isinstance(x, sc.Datum) and x.tensor in own for x in inside)


def _defined(stmt: Stmt) -> Iterator[Var]:
    return (x.var for x in every([stmt]) if isinstance(x, Let))


def _variables(item: Stmt | Value) -> Iterator[Var]:
    return (x for x in every([item]) if isinstance(x, Var))


def renamed(item: T, name: Callable[[Call], str]) -> T:
    """Return ``item`` with the functions that ``name`` gives to its calls."""
    made: Any = item
    if isinstance(item, tuple):
        held = cast("tuple[Any, ...]", item)
        made = tuple(renamed(x, name) for x in held)
    elif isinstance(item, PARTS):
        held: Any = item
        parts = {f.name: renamed(getattr(held, f.name), name) for f in fields(held)}
        if isinstance(item, Call):
            parts["op"] = name(item)
        changed = any(parts[key] is not getattr(held, key) for key in parts)
        made = replace(held, **parts) if changed else item
    return made
