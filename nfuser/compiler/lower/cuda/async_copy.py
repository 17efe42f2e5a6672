# SPDX-License-Identifier: Apache-2.0
"""Copy packets of rows to shared memory as they are stored.

A block copies the next row's while it works on this row's, or keeps a row that is long.
Every packet has a place of its own for each thread and step, from which the thread that
copied it takes it: no barrier is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.lower.elements.loads import packet_start
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    CopyPacket,
    For,
    LoadPacket,
    Memory,
    Stmt,
    TakePacket,
)
from nfuser.compiler.lower.kernel.loop_edits import parted
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.placement import Route, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.schedule.nest import Leaf

DEALT = 0.9  # of a row's copies that begin in meetings, if there are two of these


@node
class Prefetch:
    """Loads of a row as copies, and what takes them."""

    copies: tuple[Stmt, ...]
    taken: tuple[Stmt, ...]
    shared_bytes: int


class _Landings:
    """Rows in shared memory, one behind the other; ``size`` bytes are taken."""

    def __init__(self, values: Values, size: int = 0) -> None:
        self._values = values
        self._arrays: dict[DType, Array] = {}
        self._slots = values.scheduled.threads * _steps(values)
        self.size = size

    def new(self, dtype: DType, width: int) -> tuple[Array, Scalar]:
        """Return the array in which a row lands, and where this thread's part does."""
        array = self._arrays.get(dtype) or self._values.array(dtype, 0, Memory.LANDING)
        self._arrays[dtype] = array
        at = _slot(self._values) * width + self.size // dtype.itemsize
        self.size += self._slots * width * dtype.itemsize
        return array, at


def prefetch(values: Values, loads: Sequence[Stmt], size: int = 0) -> Prefetch:
    """Return ``loads`` of one step by way of shared memory.

    The first ``size`` bytes of it are taken.
    """
    landings = _Landings(values, size)
    copies: list[Stmt] = []
    taken: list[Stmt] = []
    for load in loads:
        assert isinstance(load, LoadPacket)
        width = load.width
        landing, at = landings.new(load.buffer.dtype, width)
        copies.append(CopyPacket(landing, at, load.buffer, load.index, width))
        taken.append(TakePacket(load.array, load.at, landing, at, width))
    return Prefetch(tuple(copies), tuple(taken), landings.size)


def lies_across(stmt: Stmt) -> bool:
    """Tell whether ``stmt`` loads a packet out of two, which no copy does."""
    return isinstance(stmt, LoadPacket) and stmt.across


def in_turn(values: Values, turn: Leaf) -> Prefetch | None:
    """Let rows be taken from one of two places, and the next be copied to the other.

    Rows of a block are those of the loop ``turn``: odd ones lie behind even ones.
    """
    placements = values.scheduled.placements
    rows = [key for key, p in placements.items() if p.route is Route.TURNS]
    if not rows:
        return None
    width = values.lane_size
    slots = values.scheduled.threads * _steps(values)
    whole = slots * width * sum(key[0].dtype.itemsize for key in rows)
    landings = _Landings(values)
    copies: list[Stmt] = []
    for key in rows:
        tensor, dtype = key[0], key[0].dtype
        landing, at = landings.new(dtype, width)
        source = packet_start(values.address(*key), values.lane_index)
        place = at + turn.index % 2 * (whole // dtype.itemsize)
        buffer = values.buffers[tensor]
        copies.append(CopyPacket(landing, place, buffer, source, width))
        array = values.kept.get(key) or values.array(dtype.compute, width)
        taken = TakePacket(array, sc.const(0), landing, place, width)
        if placements[key].where is Where.REGISTERS:
            values.taken[key] = taken
        else:
            values.kept[key], values.landed[key] = array, taken
            values.filled.add(key)
            values.everywhere.add(key)
    return Prefetch(tuple(copies), (), 2 * landings.size)


def dealt(copies: tuple[Stmt, ...], meetings: int) -> list[tuple[Stmt, ...]]:
    """Return ``copies`` in pieces: one to begin in each of ``meetings``, and the rest.

    What blocks send each other queues behind copies. Those that begin while blocks wait
    for each other are about as many as memory brings in that time.
    """
    pieces: list[tuple[Stmt, ...]] = []
    match copies:
        case (For(stop=sc.Const(steps)) as rest,):
            share = int(DEALT / max(meetings, 2) * steps)
            for _ in range(meetings if share else 0):
                piece, rest = parted(rest, share)
                pieces.append((piece,))
            copies = (rest,)
        case _:
            pass
    return [*pieces, copies]


def land_rows(values: Values) -> int:
    """Keep what is copied in shared memory; return the bytes it takes."""
    placements = values.scheduled.placements
    copied = [key for key, p in placements.items() if p.route is Route.COPIED]
    if not copied:
        return 0
    width = values.lane_size
    landings = _Landings(values)
    for key in copied:
        dtype = key[0].dtype
        landing, at = landings.new(dtype, width)
        array = values.array(dtype.compute, width)
        values.kept[key] = array
        values.landed[key] = TakePacket(array, sc.const(0), landing, at, width)
    return landings.size


def _steps(values: Values) -> int:
    leaf = values.nest.leaf(Binding.UNROLLED)
    assert leaf is not None
    assert isinstance(leaf.extent, sc.Const)
    return leaf.extent.value


def _slot(values: Values) -> Scalar:
    """Return the number of this thread's place at this step; threads are neighbours."""
    index: dict[Binding, Scalar] = {}
    for leaf in values.nest.leaves:
        index[leaf.binding] = sc.const(0) if leaf.extent is sc.const(1) else leaf.index
    zero = sc.const(0)
    across = values.nest.leaf(Binding.THREAD_X)
    row = index.get(Binding.THREAD_Y, zero) * (across.extent if across else 1)
    thread = row + index.get(Binding.THREAD_X, zero)
    step = index.get(Binding.UNROLLED, zero)
    return step * values.scheduled.threads + thread
