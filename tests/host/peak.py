# SPDX-License-Identifier: Apache-2.0
"""Bytes that a call's program holds, and what the lifetimes of its tensors ask for."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from nfuser.host.program import Allocate, CallProgram, Free, Launch, Matmul, Part

if TYPE_CHECKING:
    from nfuser.host.program import Slot


def size_of(slot: Slot) -> int:
    return prod(slot.shape) * slot.dtype.itemsize


def measured(program: CallProgram) -> int:
    """Return the most bytes that are allocated at once."""
    held = peak = 0
    for stmt in program.body:
        if isinstance(stmt, Allocate):
            held += size_of(stmt.slot)
        elif isinstance(stmt, Free):
            held -= size_of(stmt.slot)
        peak = max(peak, held)
    return peak


def reference(program: CallProgram) -> int:
    """Return the most bytes alive at once, from first to last use.

    It looks at launches and products only; outputs live on, and those that none of them
    writes are empty.
    """
    uses = [_slots(s) for s in program.body if isinstance(s, Launch | Matmul)]
    used = [slots - {*program.inputs} for slots in uses]
    first: dict[Slot, int] = {}
    last: dict[Slot, int] = {}
    for k, slots in enumerate(used):
        for slot in slots:
            first.setdefault(slot, k)
            last[slot] = k
    last |= {slot: len(used) for slot in program.outputs}
    return max(
        (
            sum(size_of(s) for s in first if first[s] <= k <= last[s])
            for k in range(len(used))
        ),
        default=0,
    )


def _slots(stmt: Launch | Matmul) -> set[Slot]:
    if isinstance(stmt, Matmul):
        return {stmt.lhs.part.slot, stmt.rhs.part.slot, stmt.result}
    return {a.slot for a in stmt.arguments if isinstance(a, Part)}
