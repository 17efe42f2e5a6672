# SPDX-License-Identifier: Apache-2.0
"""Where a row lies while it is folded once or several times.

A GPU thread keeps whatever it can. Where blocks share a row there are registers for
what was read, and for little more; where a block keeps a row as it is stored, what else
it needs is computed again. A CPU reads its cache again unless a value was dear.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads, roots
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.walk import toposort
from nfuser.compiler.schedule.facts.facts import address
from nfuser.compiler.schedule.facts.layout import packets
from nfuser.compiler.schedule.heuristics.cpu import CpuReduction
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.compiler.schedule.nest import Binding
from nfuser.compiler.schedule.placement.kept_values import (
    is_cheap,
    is_costly,
    loaded_again,
    read_again,
)
from nfuser.compiler.schedule.placement.placement import (
    LeftOut,
    Placement,
    Route,
    Where,
)
from nfuser.compiler.schedule.placement.row_passes import RowPasses
from nfuser.compiler.schedule.reduction.both_ways import (
    blocks_of_parts,
    has_registers,
    summed_in_shared_memory,
)
from nfuser.compiler.schedule.reduction.row_shape import COPIED_BYTES
from nfuser.compiler.schedule.scheduled import Meeting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.schedule.heuristics.heuristics import ReductionHeuristic
    from nfuser.compiler.schedule.placement.varying import Varying
    from nfuser.compiler.schedule.scheduled import RowFolding, Scheduled

SPARE_BYTES = 1024 + 8 * 1024
"""Of a block's shared memory: what the system takes, and states that pass through."""


def place_rows(
    scheduled: Scheduled, rows: RowFolding, heuristic: ReductionHeuristic
) -> Scheduled:
    """Return ``scheduled`` with all that its passes leave for each other placed."""
    fusion, space, varying = scheduled.fusion, scheduled.space, scheduled.varying()
    passes = RowPasses(fusion, space).roots()
    placed: dict[Read, Placement] = {}
    left_out: tuple[LeftOut, ...] = ()
    if isinstance(heuristic, CpuReduction):
        placed |= _staged(scheduled, heuristic)
        if rows.keeps:
            again = read_again(fusion, varying, passes)
            costly = (key for key in again if is_costly(varying, key))
            placed |= dict.fromkeys(costly, Placement(Where.STACK))
    elif heuristic.as_stored:
        copied = loaded_again(fusion, varying, passes, scheduled.is_packed_input)
        placed |= dict.fromkeys(copied, Placement(Where.SHARED, Route.COPIED))
    elif rows.keeps:
        kept, left_out = _taken_in_turn(scheduled, heuristic, varying, passes), ()
        if not kept:
            kept, left_out = _kept(scheduled, heuristic, varying, passes)
        placed |= kept
    if fusion.partial_sums:
        placed |= _added(scheduled, rows, heuristic, placed.values())
    if rows.meeting is not Meeting.ALONE:
        parts = ((r.result, space.points[r.result]) for r in fusion.reductions)
        placed |= dict.fromkeys(parts, Placement(Where.GLOBAL))
    return replace(scheduled, rows=rows, placements=placed, left_out=left_out)


def _staged(scheduled: Scheduled, heuristic: CpuReduction) -> dict[Read, Placement]:
    """Return what a CPU thread copies to its stack as its columns run."""
    if heuristic.staged is None:
        return {}
    found = reads(scheduled.fusion, roots(scheduled.fusion, scheduled.space))
    accesses = heuristic.staged.accesses
    staged = (key for key in found if scheduled.is_input(key, accesses))
    return dict.fromkeys(staged, Placement(Where.STACK, Route.LAID))


def _added(
    scheduled: Scheduled,
    rows: RowFolding,
    heuristic: ReductionHeuristic,
    placed: Iterable[Placement],
) -> dict[Read, Placement]:
    """Return where sums across rows lie: with a thread of a GPU, if it has room."""
    fusion, where = scheduled.fusion, Where.GLOBAL
    if isinstance(heuristic, CudaReduction) and rows.keeps:
        is_apart = any(placement.route is Route.TURNS for placement in placed)
        is_large = summed_in_shared_memory(fusion, heuristic) > 0
        where = Where.SHARED if is_large and not is_apart else Where.REGISTERS
    points = scheduled.space.points
    sums = ((p.result, points[p.result]) for p in fusion.partial_sums)
    return dict.fromkeys(sums, Placement(where, Route.ADDED))


def _kept(
    scheduled: Scheduled,
    heuristic: CudaReduction,
    varying: Varying,
    passes: list[list[Read]],
) -> tuple[dict[Read, Placement], tuple[LeftOut, ...]]:
    """Return what GPU threads keep in registers, and what blocks copy ahead."""
    fusion = scheduled.fusion
    kept = again = read_again(fusion, varying, passes)
    if heuristic.is_shared:
        kept = [key for key in again if not is_cheap(varying, key, again)]
    placed = dict.fromkeys(kept, Placement(Where.REGISTERS))
    shared = summed_in_shared_memory(fusion, heuristic)
    ahead, left_out = _ahead(scheduled, heuristic, varying, passes[0], shared)
    for key in ahead:
        where = placed[key].where if key in placed else Where.SHARED
        placed[key] = Placement(where, Route.AHEAD)
    return placed, left_out


def _taken_in_turn(
    scheduled: Scheduled,
    heuristic: CudaReduction,
    varying: Varying,
    passes: list[list[Read]],
) -> dict[Read, Placement]:
    """Return rows that are copied ahead to two places, and what registers keep then."""
    fusion = scheduled.fusion
    turns = _in_turn(scheduled, heuristic, varying, passes)
    if not turns:
        return {}
    placed = dict.fromkeys(turns, Placement(Where.SHARED, Route.TURNS))
    again = read_again(fusion, varying, passes)
    if has_registers(fusion, heuristic, [key[0] for key in again]):
        for key in again:
            route = Route.TURNS if key in placed else Route.MADE
            placed[key] = Placement(Where.REGISTERS, route)
        return placed
    dear = [k for k in again if k not in turns and is_costly(varying, k)]
    if has_registers(fusion, heuristic, [key[0] for key in dear]):
        placed |= dict.fromkeys(dear, Placement(Where.REGISTERS))
    return placed


def _in_turn(
    scheduled: Scheduled,
    heuristic: CudaReduction,
    varying: Varying,
    passes: list[list[Read]],
) -> list[Read]:
    """Return the rows that a block copies while it works on those before them.

    Shared memory holds two of each, as they are stored, and all passes take them from
    there: registers are left for the sums across rows.
    """
    fusion, nest = scheduled.fusion, scheduled.nest
    if not fusion.partial_sums or nest.lane is None or not nest.lane_reduces:
        return []
    if not has_registers(fusion, heuristic):
        return []
    roots = [key for found in passes for key in found]
    rows = [
        key
        for key in toposort(roots, varying.needs)
        if scheduled.is_input(key)
        and varying.place(key).in_tile
        and _differs_by_row(scheduled, key)
    ]
    is_whole = all(
        _is_packet(scheduled, varying, key) and not (key[1].guard or data_of(key[1]))
        for key in rows
    )
    sizes = [_bytes(scheduled, key) for key in rows]
    if not is_whole or not all(len(s) == 1 and s[0] in COPIED_BYTES for s in sizes):
        return []
    slots = heuristic.most_threads * heuristic.steps
    taken = 2 * slots * sum(map(sum, sizes)) + SPARE_BYTES
    blocks = blocks_of_parts(scheduled.target, heuristic.most_threads)
    return rows if taken * blocks <= scheduled.target.shared_bytes else []


def _differs_by_row(scheduled: Scheduled, key: Read) -> bool:
    """Tell whether rows have elements of ``key`` of their own."""
    where = address(key[1], scheduled.strides[key[0]])
    return not set(scheduled.space.kept).isdisjoint(scalar_walk.loops_in(where))


def _ahead(
    scheduled: Scheduled,
    heuristic: CudaReduction,
    varying: Varying,
    roots: list[Read],
    shared: int,
) -> tuple[list[Read], tuple[LeftOut, ...]]:
    """Return what a block copies of its next row, and what it would if it had room.

    All that the first pass loads goes so, or nothing does: the threads wait once. Of
    shared memory ``shared`` bytes are taken.
    """
    nest = scheduled.nest
    turns = any(leaf.binding is Binding.SERIAL for leaf in nest.kept)
    together = nest.leaf(Binding.UNROLLED)
    if not turns or together is None or nest.lane is None:
        return [], ()
    loaded = [
        key
        for key in toposort(roots, varying.needs)
        if scheduled.is_input(key)
        and varying.place(key).in_tile
        and not (key[1].guard or data_of(key[1]))
        and _is_packet(scheduled, varying, key)
    ]
    sizes = [_bytes(scheduled, key) for key in loaded]
    if not loaded or not all(size in COPIED_BYTES for pair in sizes for size in pair):
        return [], ()
    assert isinstance(together.extent, sc.Const)
    slots = heuristic.most_threads * together.extent.value
    taken = slots * sum(sum(pair) for pair in sizes) + shared
    room = scheduled.target.shared_bytes // max(heuristic.blocks, 1)
    if taken + SPARE_BYTES <= room:
        return loaded, ()
    reason = f"{taken + SPARE_BYTES} bytes, of which a block has {room}"
    wanted = Placement(Where.SHARED, Route.AHEAD)
    return [], tuple(LeftOut(key[0], wanted, reason) for key in loaded)


def _is_packet(scheduled: Scheduled, varying: Varying, key: Read) -> bool:
    """Tell whether ``key`` is loaded in packets that move with the lane."""
    lane = scheduled.nest.lane
    assert lane is not None
    if not (varying.place(key).in_lane and scheduled.is_packed_input(key)):
        return False
    where = address(key[1], scheduled.strides[key[0]])
    (moved,) = scalar_walk.substitute([where], scheduled.nest.index_of)
    return lane.index not in scalar_walk.loops_in(moved - lane.index)


def _bytes(scheduled: Scheduled, key: Read) -> list[int]:
    """Return the bytes of each access that one packet of ``key`` takes."""
    assert scheduled.nest.lane is not None
    assert isinstance(scheduled.nest.lane.extent, sc.Const)
    dtype, width = key[0].dtype, scheduled.nest.lane.extent.value
    return [length * dtype.itemsize for _, length in packets(dtype, width)]
