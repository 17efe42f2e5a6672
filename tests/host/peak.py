# SPDX-License-Identifier: Apache-2.0
"""Bytes that a program holds, and what the lifetimes of its tensors ask for."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.tensor import TensorView
from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallLibrary,
    CallProgram,
    FreeSlot,
    LaunchKernel,
    slots_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser import HostProgram
    from nfuser.execution.host.call.program import Slot


def size_of(slot: Slot) -> int:
    return prod(slot.shape) * slot.dtype.itemsize


def measured(program: CallProgram) -> int:
    """Return the most bytes that are allocated at once."""
    held = peak = 0
    for stmt in program.body:
        if isinstance(stmt, AllocateSlot):
            held += size_of(stmt.slot)
        elif isinstance(stmt, FreeSlot):
            held -= size_of(stmt.slot)
        peak = max(peak, held)
    return peak


def reference(program: CallProgram) -> int:
    """Return the most bytes alive at once, from first to last use.

    It looks at launches and products only; outputs live on, and those that none of them
    writes are empty.
    """
    uses = [
        _slots(s) for s in program.body if isinstance(s, LaunchKernel | CallLibrary)
    ]
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


def _slots(stmt: LaunchKernel | CallLibrary) -> set[Slot]:
    return set(slots_of(stmt))


def reference_of(program: HostProgram, sizes: Mapping[TensorView, int]) -> int:
    """Return the most bytes alive at once in a straight line of statements.

    Each array lives from the statement that makes it to the last that reads or writes
    it, or a view of it; ``sizes`` are the bytes of each.
    """
    inputs = {x.value for x in program.inputs if isinstance(x.value, TensorView)}
    memory = {t: t for t in inputs}
    first: dict[TensorView, int] = {}
    last: dict[TensorView, int] = {}
    for k, stmt in enumerate(program.body):
        if isinstance(stmt, st.Free):
            continue
        for t in st.writes(stmt):
            is_view = isinstance(stmt, st.SelectOp | st.SliceOp | st.PermuteOp)
            source = memory[st.reads(stmt)[0]] if is_view else t
            memory.setdefault(t, source)
        for t in (*st.reads(stmt), *st.writes(stmt)):
            own = memory[t]
            first.setdefault(own, k)
            last[own] = k
    last |= {memory[t]: len(program.body) for t in program.outputs}
    made = [t for t in first if t not in inputs]
    return max(
        sum(sizes[t] for t in made if first[t] <= k <= last[t])
        for k in range(len(program.body))
    )
