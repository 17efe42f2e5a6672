# SPDX-License-Identifier: Apache-2.0
"""Drop what does nothing."""

from __future__ import annotations

from dataclasses import replace
from operator import is_
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars.scalar import const
from nfuser.compiler.lower.kernel.kernel_ir import For, If

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import Kernel, Stmt


def prune(kernel: Kernel) -> Kernel:
    """Drop loops and branches without statements, and loops that never turn."""
    body = _pruned(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _pruned(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    kept: list[Stmt] = []
    for stmt in body:
        if not isinstance(stmt, For | If):
            kept.append(stmt)
            continue
        runs = not isinstance(stmt, For) or stmt.stop != const(0)
        if runs and (inside := _pruned(stmt.body)):
            same = inside is stmt.body
            kept.append(stmt if same else replace(stmt, body=inside))
    same = len(kept) == len(body) and all(map(is_, kept, body))
    return body if same else tuple(kept)
