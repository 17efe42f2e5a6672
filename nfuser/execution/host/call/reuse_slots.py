# SPDX-License-Identifier: Apache-2.0
"""Let a value between kernels lie where one lay that is not read any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nfuser.execution.host.call.program import (
    AllocateSlot,
    Begin,
    CallLibrary,
    CallProgram,
    CallPython,
    End,
    FreeSlot,
    HostStmt,
    LaunchKernel,
    Operand,
    OrderStreams,
    ProgramNumber,
    Repeat,
    Slot,
    SlotPart,
    ViewSlot,
    slots_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.dtypes import DType

    Form: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], DType]


def reuse_slots(program: CallProgram) -> CallProgram:
    """Return ``program`` with fewer allocations: freed memory of the same form again.

    Statements run one after another on one stream, so what was freed is not in use. It
    is taken again only where nothing else was allocated since: the program never holds
    more than it did. What Python has seen, it may keep.
    """
    seen = [s for s in program.body if isinstance(s, CallPython | ViewSlot)]
    shared = {slot for stmt in seen for slot in slots_of(stmt)}
    kept = {*program.inputs, *program.outputs, *shared}
    free: dict[Form, list[Slot]] = {}
    new_of: dict[Slot, Slot] = {}
    body: list[HostStmt] = []
    for stmt in program.body:
        match stmt:
            case AllocateSlot(slot) if slot not in kept and free.get(_form(slot)):
                new_of[slot] = free[_form(slot)].pop()
            case AllocateSlot() | CallPython():
                free.clear()
                body.append(stmt)
            case FreeSlot(slot) if slot not in shared:
                free.setdefault(_form(slot), []).append(new_of.get(slot, slot))
                body.append(renamed(stmt, new_of))
            case _:
                body.append(renamed(stmt, new_of))
    if not new_of:
        return program
    return replace(program, body=tuple(_with_last_frees(body)))


def _form(slot: Slot) -> Form:
    return slot.shape, slot.strides, slot.dtype


def _with_last_frees(body: list[HostStmt]) -> list[HostStmt]:
    """Drop all frees of a slot but the last."""
    seen: set[Slot] = set()
    found: list[HostStmt] = []
    for stmt in reversed(body):
        if isinstance(stmt, FreeSlot):
            if stmt.slot in seen:
                continue
            seen.add(stmt.slot)
        found.append(stmt)
    found.reverse()
    return found


def renamed(stmt: HostStmt, new_of: Mapping[Slot, Slot]) -> HostStmt:
    """Return ``stmt`` naming new slots; itself where it names none."""
    match stmt:
        case LaunchKernel(arguments=arguments):
            own = tuple(
                _part(a, new_of) if isinstance(a, SlotPart) else a for a in arguments
            )
            return stmt if own == arguments else replace(stmt, arguments=own)
        case CallLibrary(_, operands, result):
            own = tuple(_operand(x, new_of) for x in operands)
            same = own == operands and result not in new_of
            target = new_of.get(result, result)
            if (function := stmt.function) is not None:
                groups = (
                    tuple(p and _part(p, new_of) for p in group)
                    for group in function.results
                )
                function = replace(function, results=tuple(groups))
                return replace(stmt, operands=own, result=target, function=function)
            return stmt if same else replace(stmt, operands=own, result=target)
        case Repeat(body, swaps):
            pairs = tuple((new_of.get(a, a), new_of.get(b, b)) for a, b in swaps)
            flag = stmt.flag and new_of.get(stmt.flag, stmt.flag)
            own = tuple(renamed(inner, new_of) for inner in body)
            homes = tuple((new_of.get(s, s), _part(p, new_of)) for s, p in stmt.homes)
            return replace(stmt, body=own, swaps=pairs, flag=flag, homes=homes)
        case CallPython() | ViewSlot() | Begin() | End() | OrderStreams():
            return stmt  # what they name keeps its own memory
        case _:
            known = new_of.get(stmt.slot)
            return stmt if known is None else replace(stmt, slot=known)


def _part(part: SlotPart, new_of: Mapping[Slot, Slot]) -> SlotPart:
    known = new_of.get(part.slot)
    return part if known is None else replace(part, slot=known)


def _operand(operand: Operand, new_of: Mapping[Slot, Slot]) -> Operand:
    if isinstance(operand.part, ProgramNumber):
        return operand
    part = _part(operand.part, new_of)
    return operand if part is operand.part else replace(operand, part=part)
