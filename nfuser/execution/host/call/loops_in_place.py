# SPDX-License-Identifier: Apache-2.0
"""Let loops change an array where it lies, not a copy that goes back to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallLibrary,
    CallProgram,
    FreeSlot,
    LaunchKernel,
    Repeat,
    slots_of,
)
from nfuser.execution.host.call.reuse_slots import renamed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from nfuser.execution.host.call.program import HostStmt, Slot, SlotPart


def loops_in_place(program: CallProgram, odd: Collection[Slot]) -> CallProgram:
    """Return ``program`` without copies of arrays that loops have to themselves.

    Such an array is copied before a loop, has what the loop leaves copied into it
    afterwards, and if a turn fails, too. Nothing else reads or writes it in between, so
    that the loop may have the array itself, if kernels may take it for the copy: those
    at ``odd`` addresses are not.
    """
    body = program.body
    kept = {*program.inputs, *program.outputs}
    for first, last in _pairs(body):
        array, copy = _slots(first)
        if array not in odd and copy not in kept and _is_as_good(body, first, last):
            rest = (s for s in body if s not in (first, last))
            rest = (s for s in rest if not _is_about(s, copy))
            found = tuple(_without_home(renamed(s, {copy: array})) for s in rest)
            return loops_in_place(replace(program, body=found), odd)
    return program


def _pairs(body: Sequence[HostStmt]) -> Iterator[tuple[LaunchKernel, LaunchKernel]]:
    """Yield what copies an array, and what copies its copy back."""
    begun: dict[tuple[Slot, Slot], LaunchKernel] = {}
    for stmt in body:
        if isinstance(stmt, LaunchKernel) and _copies_alike(stmt):
            source, target = _slots(stmt)
            if (target, source) in begun:
                yield begun[target, source], stmt
            begun[source, target] = stmt


def _copies_alike(launch: LaunchKernel) -> bool:
    """Tell whether a whole array is copied to one of the same form."""
    if not launch.is_copy:
        return False
    source, target = (cast("SlotPart", a) for a in launch.arguments[:2])
    one, other = source.slot, target.slot
    return not (source.offset or target.offset or target.step) and (
        one.shape,
        one.strides,
        one.dtype,
    ) == (other.shape, other.strides, other.dtype)


def _slots(launch: LaunchKernel) -> tuple[Slot, Slot]:
    """Return what a copy reads and what it writes."""
    source, target = (cast("SlotPart", a).slot for a in launch.arguments[:2])
    return source, target


def _is_about(stmt: HostStmt, slot: Slot) -> bool:
    return isinstance(stmt, AllocateSlot | FreeSlot) and stmt.slot is slot


def _is_as_good(
    body: Sequence[HostStmt], first: LaunchKernel, last: LaunchKernel
) -> bool:
    """Tell whether an array may stand for its copy, which begins and ends as it.

    Once the copy may have changed, nothing fails but loops that would give it back.
    """
    array, copy = _slots(first)
    begin, end = body.index(first), body.index(last)
    changed = looped = False
    for at, stmt in enumerate(body):
        if stmt in (first, last) or isinstance(stmt, AllocateSlot | FreeSlot):
            continue
        named = slots_of(stmt)
        if not begin < at < end:
            if copy in named:
                return False
        elif isinstance(stmt, Repeat) and _gives_back(stmt, copy, array):
            changed = looped = True
        else:
            changed = changed or copy in named
            may_fail = isinstance(stmt, Repeat | CallLibrary)
            if array in named or (changed and may_fail):
                return False
    return looped


def _gives_back(stmt: Repeat, copy: Slot, array: Slot) -> bool:
    """Tell whether a loop has ``copy`` in one place, and nothing of ``array``."""
    homes = [(own, home) for own, home in stmt.homes if home.slot is array]
    inside = {slot for inner in stmt.body for slot in slots_of(inner)}
    return (
        [(own, home.offset) for own, home in homes] == [(copy, 0)]
        and array not in inside
        and copy not in _swapped(stmt)
    )


def _swapped(stmt: Repeat) -> Iterator[Slot]:
    """Yield the slots that change places in a loop, and in those inside."""
    for pair in stmt.swaps:
        yield from pair
    for inner in stmt.body:
        if isinstance(inner, Repeat):
            yield from _swapped(inner)


def _without_home(stmt: HostStmt) -> HostStmt:
    """Return ``stmt`` without what would copy an array to itself."""
    if not isinstance(stmt, Repeat):
        return stmt
    homes = tuple((own, home) for own, home in stmt.homes if own is not home.slot)
    return stmt if len(homes) == len(stmt.homes) else replace(stmt, homes=homes)
