# SPDX-License-Identifier: Apache-2.0
"""Let go of what a program made after its last use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.execution.host.ir.memory import MemoryOwners

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.statements import Statement


def insert_frees(program: HostProgram) -> HostProgram:
    """Return ``program`` with a Free after the last statement that names each array.

    What a block defines is freed in that block; inputs and outputs are left alone, and
    so is what has a Free already.
    """
    memory = MemoryOwners(program)
    kept = {x.value for x in program.inputs} | {memory.root(t) for t in program.outputs}
    body = _freed(program.body, memory, kept)
    return program if body == program.body else replace(program, body=body)


def _freed(
    body: tuple[Statement, ...], memory: MemoryOwners, kept: AbstractSet[object]
) -> tuple[Statement, ...]:
    defined = set(_roots(body, memory))
    # Outside of a loop everything else lives on: the next iteration may read it.
    outside = {*kept, *defined}
    seen: set[object] = set(kept)
    result: list[Statement] = []
    for stmt in reversed(body):
        inside = [s for block in st.blocks(stmt) for s in st.walk(block)]
        used = _roots([stmt, *inside], memory)
        fresh = [t for t in used if t not in seen and t in defined]
        seen.update(used)
        is_free = isinstance(stmt, st.Free)
        result += [] if is_free else [st.Free(t, stmt.line) for t in fresh]
        result.append(_inside(stmt, memory, outside))
    result.reverse()
    return tuple(result)


def _inside(
    stmt: Statement, memory: MemoryOwners, kept: AbstractSet[object]
) -> Statement:
    match stmt:
        case st.ForLoop(body=body):
            new = _freed(body, memory, kept)
            return stmt if new == body else replace(stmt, body=new)
        case st.IfThenElse(body=body, orelse=orelse):
            parts = _freed(body, memory, kept), _freed(orelse, memory, kept)
            if parts == (body, orelse):
                return stmt
            return replace(stmt, body=parts[0], orelse=parts[1])
        case _:
            return stmt


def _roots(body: Sequence[Statement], memory: MemoryOwners) -> list[TensorView]:
    """Return whose memory ``body`` itself names, each once."""
    named = (t for s in body for t in (*st.writes(s), *st.reads(s)))
    return list(dict.fromkeys(memory.root(t) for t in named))
