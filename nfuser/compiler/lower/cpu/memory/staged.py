# SPDX-License-Identifier: Apache-2.0
"""Lay down on the stack what a CPU kernel reads many times, or reads across rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.kernel.kernel_ir import (
    Element,
    For,
    Let,
    Load,
    SetElement,
    Stmt,
    Var,
)
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Route

if TYPE_CHECKING:
    from nfuser.compiler.domains.space import Read
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values


def stage_columns(values: Values, room: int) -> tuple[Stmt, ...]:
    """Let what rows share be read from the stack; return what copies one step of it.

    All of it has ``room`` elements.
    """
    staged = _staged(values)
    if not staged:
        return ()
    lane, size = values.nest.lane, room // len(staged)
    assert lane is not None
    copies = (_copied(values, key, size, values.kept_index(key)) for key in staged)
    return (For(lane.index, lane.stop, sum(copies, ())),)


def stage_tile(values: Values) -> tuple[Stmt, ...]:
    """Let what is crossed be read from the stack; return what copies a tile of it.

    It lies there as it does in memory, with rows that are a line of the cache longer:
    their elements of one column do not share their place in the nearest cache.
    """
    staged, lane = _staged(values), values.nest.lane
    rows = values.nest.leaf(Binding.SERIAL)
    if not (staged and rows and lane):
        return ()
    body: list[Stmt] = []
    line_bytes = values.scheduled.target.line_bytes
    for key in staged:
        pitch = _number(rows.extent) + line_bytes // key[0].dtype.compute.itemsize
        place = lane.index * pitch + rows.index
        copied = _copied(values, key, _number(lane.extent) * pitch, place)
        body.append(For(rows.index, rows.stop, copied))
    return (For(lane.index, lane.stop, tuple(body)),)


def _staged(values: Values) -> list[Read]:
    placements = values.scheduled.placements
    return [key for key, p in placements.items() if p.route is Route.LAID]


def _copied(values: Values, key: Read, size: int, place: Scalar) -> tuple[Stmt, ...]:
    """Let ``key`` be read from a new array; return what copies one element there."""
    dtype = key[0].dtype.compute
    element = Element(values.array(dtype, size), place)
    values.staged[key] = element
    found = Var(dtype, key[0])
    load = Load(values.buffers[key[0]], values.address(*key))
    return Let(found, load), SetElement(element.array, place, found)


def _number(extent: Scalar) -> int:
    assert isinstance(extent, sc.Const)
    return extent.value
