# SPDX-License-Identifier: Apache-2.0
"""Which variables get a new name at each assignment.

Numba brings a source into static single assignment name by name: each that is assigned
twice costs a walk over the whole kernel.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Datum, Scalar
from nfuser.compiler.lower.kernel.kernel_ir import For, If, Let, Stmt, Value, Var
from nfuser.compiler.lower.kernel.walk import every

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def renewed(body: tuple[Stmt, ...], given: Iterable[Var]) -> set[Var]:
    """Return the variables whose values all go from an assignment straight to a use.

    A value that a loop hands on, or a branch may leave as it was, needs one name.
    ``given`` have their values before ``body``.
    """
    found = _Assignments(given)
    found.block(body)
    again = found.again - found.joined
    if any(not var.dtype.is_float for var in again):
        again.difference_update(_read_by_indices(body))
    return again


class _Assignments:
    def __init__(self, given: Iterable[Var]) -> None:
        self.depth = dict.fromkeys(given, 0)  # of the block that assigned what is seen
        self.once: set[Var] = set()
        self.again: set[Var] = set()
        self.joined = set(self.depth)

    def block(self, body: tuple[Stmt, ...], depth: int = 1) -> None:
        own: list[Var] = []
        for stmt in body:
            if isinstance(stmt, Let):
                self._use(stmt.value)
                self._assign(stmt.var, depth, own)
            elif isinstance(stmt, (For, If)):
                if isinstance(stmt, If):
                    self._use(stmt.condition)
                self.block(stmt.body, depth + 1)
                if isinstance(stmt, For) and stmt.going is not None:
                    self.joined.add(stmt.going)
            else:
                self._use(stmt)
        for var in own:
            del self.depth[var]

    def _assign(self, var: Var, depth: int, own: list[Var]) -> None:
        (self.again if var in self.once else self.once).add(var)
        before = self.depth.get(var)
        if before is None:
            self.depth[var] = depth
            own.append(var)
        elif before != depth:
            self.joined.add(var)

    def _use(self, item: Stmt | Value | Scalar) -> None:
        for part in every([item]):
            if isinstance(part, Var) and part not in self.depth:
                self.joined.add(part)


def _read_by_indices(body: tuple[Stmt, ...]) -> Iterator[Var]:
    for part in every(body):
        held: list[Any] = [getattr(part, field.name) for field in fields(part)]
        for x in scalar_walk.every([x for x in held if isinstance(x, Scalar)]):
            if isinstance(x, Datum) and isinstance(x.tensor, Var):
                yield x.tensor
