# SPDX-License-Identifier: Apache-2.0
"""Which indices of a kernel are worth a name, and where they stand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, LoopIndex, Scalar, Select
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.lower.kernel.kernel_ir import (
    Fetch,
    FindFirst,
    FindLine,
    For,
    If,
    IndexValue,
    Let,
    Load,
    LoadPacket,
    Stmt,
    Store,
    StoreLine,
    StorePacket,
    TakeTicket,
    Var,
)
from nfuser.compiler.lower.kernel.parameters import computed_from, is_host
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

_DIVISIONS = (Op.FLOORDIV, Op.MOD)
_WORTH_A_BASE = 2  # factors, in one product or in a sum


def divides_below_zero(x: Scalar) -> bool:
    """Tell whether ``x`` holds a quotient of what may be negative."""
    return any(
        isinstance(part, Binary)
        and part.op in _DIVISIONS
        and not sc.is_natural(part.lhs)
        for part in scalar_walk.every([x])
    )


def divides(x: Scalar, named: Container[Scalar]) -> bool:
    """Tell whether ``x`` is computed by a division, but of what has a name."""

    def parts(y: Scalar) -> tuple[Scalar, ...]:
        return () if y in named else computed_from(y)

    new = (y for y in toposort([x], parts) if y not in named and not is_host(y))
    return any(isinstance(y, Binary) and y.op in _DIVISIONS for y in new)


def indices_of(stmt: Stmt, *, guarded: bool = False) -> list[Scalar]:
    """Return the indices of ``stmt``, those inside its body too.

    ``guarded`` ones are those that have no sense but under the condition they stand
    under: they count where the target wants them, inside a loop.
    """
    match stmt:
        case Let(_, Load(_, index)):
            return [index]
        case (
            Store(_, index)
            | LoadPacket(_, _, _, index)
            | StorePacket(_, index)
            | StoreLine(_, index)
            | Fetch(_, index, _)
        ):
            return [index]
        case FindLine(_, _, index, most) | FindFirst(_, Load(_, index), most):
            return [index, most]
        case For(_, stop, body):
            return [stop, *_inner_indices(body, guarded=guarded)]
        case If(condition, body):
            own: list[Scalar] = [condition] if isinstance(condition, Binary) else []
            if _only_lets(body) and not guarded:
                return own
            return [*own, *_inner_indices(body, guarded=guarded)]
        case _:
            return []


def _inner_indices(body: tuple[Stmt, ...], *, guarded: bool = False) -> list[Scalar]:
    return [x for s in body for x in indices_of(s, guarded=guarded)]


def _only_lets(body: tuple[Stmt, ...]) -> bool:
    """Tell whether ``body`` computes under a guard what has no sense without it."""
    return all(
        isinstance(s, (LoadPacket, Let)) or (isinstance(s, If) and _only_lets(s.body))
        for s in body
    )


def guards_loads(stmt: Stmt) -> bool:
    """Tell whether ``stmt`` is a condition for nothing but variables."""
    return isinstance(stmt, If) and _only_lets(stmt.body)


def computed(stmt: Stmt) -> list[Scalar]:
    """Return what the value of ``stmt`` is computed from besides arrays."""
    if not isinstance(stmt, Let):
        return []
    return [x.scalar for x in every([stmt.value]) if isinstance(x, IndexValue)]


def _own_indices(stmt: Stmt) -> list[Scalar]:
    if isinstance(stmt, For):
        return [stmt.stop]
    return [] if isinstance(stmt, If) else [*computed(stmt), *indices_of(stmt)]


def _walk(body: tuple[Stmt, ...], visit: Callable[[Stmt], None]) -> None:
    for stmt in body:
        visit(stmt)
        if isinstance(stmt, (For, If)):
            _walk(stmt.body, visit)


def repeated_indices(body: tuple[Stmt, ...]) -> set[Scalar]:
    """Return indices, and bounds in them, that stand in several places."""
    counts: Counter[Scalar] = Counter()

    def count(stmt: Stmt) -> None:
        for index in _own_indices(stmt):
            if isinstance(index, sc.Poly):
                counts[index] += 1
            counts.update(x for x in scalar_walk.every([index]) if _is_bound(x))

    _walk(body, count)
    return {x for x, n in counts.items() if n > 1}


def _is_bound(x: Scalar) -> bool:
    return isinstance(x, Binary) and x.op in (Op.MIN, Op.MAX)


def shared_parts(body: tuple[Stmt, ...], given: Iterable[Var]) -> set[Scalar]:
    """Return what several indices and conditions are computed from.

    What stands in one place of a shared part alone is not shared, however often the
    part is. Nothing is that reads a variable whose value changes; ``given`` have theirs
    before ``body``.
    """
    uses: Counter[Scalar] = Counter()
    values = Counter(given)

    def count(stmt: Stmt) -> None:
        uses.update([*_own_indices(stmt), *_conditions(stmt)])
        if isinstance(stmt, (Let, FindLine, FindFirst, TakeTicket)):
            values[stmt.var] += 1

    _walk(body, count)
    for part in toposort(list(uses), computed_from):
        uses.update(set(computed_from(part)))
    shared = (x for x, n in uses.items() if n > 1 and _takes_work(x))
    return {x for x in shared if all(values[var] < 2 for var in _read(x))}


def _conditions(stmt: Stmt) -> list[Scalar]:
    condition = stmt.condition if isinstance(stmt, If) else None
    return [condition] if isinstance(condition, Scalar) else []


def _takes_work(x: Scalar) -> bool:
    if not isinstance(x, (Binary, Select, sc.Poly)) or is_host(x):
        return False
    return not (isinstance(x, Binary) and x.op in (Op.MULTIPLIER, Op.SHIFT))


def _read(x: Scalar) -> list[Var]:
    """Return the variables that hold what ``x`` is computed from."""
    data = (y.tensor for y in scalar_walk.every([x]) if isinstance(y, sc.Datum))
    return [var for var in data if isinstance(var, Var)]


def worth_naming(index: Scalar, repeats: set[Scalar], *, nested: bool) -> list[Scalar]:
    """Return quotients and remainders in ``index``, and what of it repeats.

    ``nested``: what is part of another comes before it, whichever of these it is.
    """
    parts = [x for x in toposort([index], computed_from) if not is_host(x)]
    found = [x for x in parts if _is_divided(x)]
    if nested:
        return [x for x in parts if x in found or x in repeats]
    # A remainder is printed in terms of its quotient, if that has a name.
    found.sort(key=lambda x: isinstance(x, Binary) and x.op is Op.MOD)
    return [*found, *(x for x in parts if x in repeats)]


def _is_divided(x: Scalar) -> bool:
    if not isinstance(x, Binary) or x.op not in _DIVISIONS:
        return False
    return not (isinstance(x.rhs, sc.Const) and isinstance(x.lhs, LoopIndex))


def base_of(index: Scalar, is_known: Callable[[Scalar], bool]) -> Scalar | None:
    """Return the terms of ``index`` that are known, if it takes work to add them up.

    A constant is left to the index: neighbours share what else they have.
    """
    terms = {m: c for m, c in sc.terms_of(index).items() if m}
    known = {m: c for m, c in terms.items() if all(is_known(atom) for atom in m)}
    if len(known) == len(terms) or sum(map(len, known)) < _WORTH_A_BASE:
        return None
    return sc.from_terms(known)
