# SPDX-License-Identifier: Apache-2.0
"""How the operations of one turn of a loop wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.base import value
from nfuser.compiler.lower.kernel.kernel_ir import Call, Let, SetElement, Store, Var
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.lower.kernel.kernel_ir import Stmt, Value


@value
class Chains:
    """Operations on floats in one turn, those of the longest chain among them.

    ``held`` are the most variables whose values are needed later at one time.
    """

    operations: int
    longest: int
    held: int


def chains_of(body: tuple[Stmt, ...]) -> Chains | None:
    """Return the chains of a body of floats; None if a turn waits for the last one.

    None as well where a body does more than compute and store.
    """
    lets = [x for x in body if isinstance(x, Let)]
    if not all(isinstance(x, (Let, Store)) for x in body) or _is_carried(body):
        return None
    calls = [x for x in every(body) if isinstance(x, Call)]
    dtypes = {let.var.dtype for let in lets} - {DType.BOOL}
    if not dtypes or not all(dtype.is_float for dtype in dtypes):
        return None
    return Chains(len(calls), longest_chain(body, lambda _: 1), _most_held(body))


def longest_chain(body: tuple[Stmt, ...], cost: Callable[[Call], int]) -> int:
    """Return what the operations cost of which each waits for the one before it."""
    depths: dict[Var, int] = {}
    longest = 0
    for stmt in body:
        if isinstance(stmt, (Let, Store, SetElement)):
            depth = _depth(stmt.value, depths, cost)
            longest = max(longest, depth)
            if isinstance(stmt, Let):
                depths[stmt.var] = depth
    return longest


def _is_carried(body: tuple[Stmt, ...]) -> bool:
    """Tell whether a turn reads a variable before it gives it a value."""
    given = {x.var for x in body if isinstance(x, Let)}
    known: set[Var] = set()
    for stmt in body:
        if any(var in given and var not in known for var in _read_by(stmt)):
            return True
        if isinstance(stmt, Let):
            known.add(stmt.var)
    return False


def _read_by(stmt: Stmt) -> list[Var]:
    items = [stmt.value] if isinstance(stmt, (Let, Store)) else [stmt]
    return [x for x in every(items) if isinstance(x, Var)]


def _depth(value: Value, depths: dict[Var, int], cost: Callable[[Call], int]) -> int:
    """Return what the operations cost that ``value`` has waited for."""
    match value:
        case Var():
            return depths.get(value, 0)
        case Call(operands=operands):
            before = (_depth(x, depths, cost) for x in operands)
            return cost(value) + max(before, default=0)
        case _:
            return 0


def _most_held(body: tuple[Stmt, ...]) -> int:
    """Return the most values that are needed after a statement, at least one."""
    most, held = 1, set[Var]()
    for stmt in reversed(body):
        if isinstance(stmt, Let):
            held.discard(stmt.var)
        held.update(_read_by(stmt))
        most = max(most, len(held))
    return most
