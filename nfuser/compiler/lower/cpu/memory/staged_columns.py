# SPDX-License-Identifier: Apache-2.0
"""Lay down on the stack, as columns run, what many rows of a CPU kernel share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.lower.kernel.kernel_ir import (
    Element,
    For,
    Let,
    Load,
    SetElement,
    Stmt,
    Var,
)
from nfuser.compiler.schedule.placement.placement import Route

if TYPE_CHECKING:
    from nfuser.compiler.lower.elements.values import Values


def stage_columns(values: Values, room: int) -> tuple[Stmt, ...]:
    """Let what is laid down be read from the stack; return what copies one step of it.

    All of it has ``room`` elements.
    """
    placements, lane = values.scheduled.placements, values.nest.lane
    staged = [key for key, p in placements.items() if p.route is Route.LAID]
    if not staged:
        return ()
    assert lane is not None
    size = room // len(staged)
    body: list[Stmt] = []
    for key in staged:
        tensor = key[0]
        place = Element(
            values.array(tensor.dtype.compute, size), values.kept_index(key)
        )
        values.staged[key] = place
        found = Var(place.dtype, tensor)
        load = Load(values.buffers[tensor], values.address(*key))
        body += [Let(found, load), SetElement(place.array, place.index, found)]
    return (For(lane.index, lane.stop, tuple(body)),)
