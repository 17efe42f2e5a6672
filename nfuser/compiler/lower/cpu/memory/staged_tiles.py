# SPDX-License-Identifier: Apache-2.0
"""Lay down on the stack, as it lies in memory, a tile of what a CPU kernel crosses."""

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
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values

LINE_BYTES = 64
"""What rows of a tile are longer by: their elements of one column lie on lines that do
not share their place in the nearest cache."""


def stage_tile(values: Values) -> tuple[Stmt, ...]:
    """Let what is laid down be read from the stack; return what copies a tile of it."""
    placements, lane = values.scheduled.placements, values.nest.lane
    staged = [key for key, p in placements.items() if p.route is Route.LAID]
    rows = values.nest.leaf(Binding.SERIAL)
    if not (staged and rows and lane):
        return ()
    body: list[Stmt] = []
    for key in staged:
        tensor, dtype = key[0], key[0].dtype.compute
        pitch = _number(rows.extent) + LINE_BYTES // dtype.itemsize
        array = values.array(dtype, _number(lane.extent) * pitch)
        values.staged[key] = Element(array, lane.index * pitch + rows.index)
        found = Var(dtype, tensor)
        load = Load(values.buffers[tensor], values.address(*key))
        copied = SetElement(array, values.staged[key].index, found)
        body.append(For(rows.index, rows.stop, (Let(found, load), copied)))
    return (For(lane.index, lane.stop, tuple(body)),)


def _number(extent: Scalar) -> int:
    assert isinstance(extent, sc.Const)
    return extent.value
