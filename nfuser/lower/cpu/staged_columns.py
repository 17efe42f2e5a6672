# SPDX-License-Identifier: Apache-2.0
"""Lay down on the stack, as columns run, what many rows of a CPU kernel share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.domains.space import reads, roots
from nfuser.lower.kernel.kernel_ir import Element, For, Let, Load, SetElement, Stmt, Var

if TYPE_CHECKING:
    from nfuser.lower.values import Values
    from nfuser.schedule.heuristics.cpu import StagedColumns


def stage_columns(values: Values, staged: StagedColumns, room: int) -> tuple[Stmt, ...]:
    """Let what is staged be read from the stack; return what copies one step of it.

    All of it has ``room`` elements.
    """
    scheduled, lane = values.scheduled, values.nest.lane
    assert lane is not None
    size = room // len(staged.accesses)
    body: list[Stmt] = []
    for key in reads(scheduled.fusion, roots(scheduled.fusion, scheduled.space)):
        tensor = key[0]
        if tensor not in values.buffers or values.numbered(key) not in staged.accesses:
            continue
        place = Element(
            values.array(tensor.dtype.compute, size), values.kept_index(key)
        )
        values.staged[key] = place
        found = Var(place.dtype, tensor)
        load = Load(values.buffers[tensor], values.address(*key))
        body += [Let(found, load), SetElement(place.array, place.index, found)]
    return (For(lane.index, lane.stop, tuple(body)),)
