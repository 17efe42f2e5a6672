# SPDX-License-Identifier: Apache-2.0
"""Tiles through shared memory, for accesses that run along different axes.

A tile is a rectangle of two groups of loops: ``along`` is where most bytes lie side by
side, ``across`` where the *staged* accesses do. A block reads what is staged in packets
along ``across``, lays it down in shared memory, and then runs the fusion along
``along``; staged outputs take the same way back. Everything else is read and written
where it is needed, as by the flat loop.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads, roots
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.facts.layout import is_unit, packed, packet_width
from nfuser.compiler.schedule.facts.memory import memory_tensors, needs_wide_index
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.facts.weight import limited, weight
from nfuser.compiler.schedule.heuristics.cuda import TransposeHeuristic
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder
from nfuser.compiler.schedule.placement.placement import Placement, Route, Where
from nfuser.compiler.schedule.scheduled import Tile
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.schedule.facts.facts import Access, Facts
    from nfuser.compiler.schedule.nest import LoopAxis, Nest
    from nfuser.compiler.schedule.pointwise.flat_shape import FlatShape
    from nfuser.compiler.schedule.scheduled import Scheduled

NAME = "transpose"
TILES = ((64, 128, 2), (64, 64, 4), (32, 32, 8))  # sides, and bytes of an element
NARROW = 8  # elements of the shortest side across
SHORT = 32  # elements along which the flat loop does as well
THREADS = 256  # at least, where a tile has packets for them
PER_THREAD = 16  # elements
RESIDENT_THREADS = 1024  # of a multiprocessor, where registers are short
MOST_RESIDENT = 2048  # where what is computed takes few
UNDER_WAY = 1 << 16  # bytes that a multiprocessor reads at once
LIGHT = 4  # weight of that, at most
LEAST_FILLED = 0.4  # share of the tiles' elements that are there
NEAR = 4  # elements of a step of which a sector of memory holds several
BANK = 4  # bytes of a bank of shared memory: CUDA's


def choose(fusion: Fusion, shape: FlatShape) -> TransposeHeuristic | Rejection:
    """Return how ``fusion`` runs in tiles, or why it should not.

    Read or written where it is needed, what crosses moves a sector of memory for each
    element; in tiles it costs a write and a read of shared memory. So tiles pay unless
    most of each would be empty, or rows along are so short that a block of the flat
    loop comes to the rest of its sectors itself: that reaches 0.89 to 0.97 of the copy
    bandwidth with up to 24 elements of f32, but 0.5 with 49.
    """
    found, facts = shape.found, shape.facts
    axes = _axes(shape)
    if isinstance(axes, Rejection):
        return axes
    along, across, staged = axes
    rows, columns = shape.group(along), shape.group(across)
    sizes = [_extent(x, facts) for x in (rows, columns)]
    if sizes[0] <= SHORT:
        return Rejection(NAME, "rows so short share their sectors", staged[0].tensor)
    tile = _sides(sizes, staged, facts.target.block_bytes)
    if tile is None:
        return Rejection(NAME, "its tiles would be mostly empty", staged[0].tensor)
    staged = _fitting(tile, staged, facts.target.block_bytes)
    direct = [a for a in found if a not in staged]
    widths = (
        limited(packet_width(rows, direct, facts), fusion),
        packet_width(columns, staged, facts),
    )
    tensors = memory_tensors(fusion)
    room = math.prod(tile)
    threads = min(max(room // PER_THREAD, THREADS), room // max(widths))
    return TransposeHeuristic(
        shape.groups,
        shape.patterns,
        along,
        across,
        tile,
        widths,
        threads,
        needs_wide_index(fusion, facts),
        packed(rows, direct, widths[0], facts, tensors)
        | packed(columns, staged, widths[1], facts, tensors),
        frozenset((tensors.index(a.tensor), a.point) for a in staged),
        blocks=_resident(fusion, found, widths, threads) if min(widths) == 1 else 0,
    )


def _resident(
    fusion: Fusion, found: Sequence[Access], widths: tuple[int, int], threads: int
) -> int:
    """Return the blocks of a multiprocessor, where elements go one by one.

    Each has an address. If these are all worked out before the first load, blocks are
    few. Where elements are so narrow that too little is on its way to memory then, a
    tile that is only moved, and written in packets, is read with fewer registers.
    """
    resident = RESIDENT_THREADS
    if len(found) == 2 and widths[0] > 1 and weight(fusion) <= LIGHT:
        size = min(a.tensor.dtype.itemsize for a in found)
        most = min(UNDER_WAY // (PER_THREAD * size), MOST_RESIDENT)
        resident = max(resident, most)
    return resident // threads


def _axes(shape: FlatShape) -> tuple[int, int, list[Access]] | Rejection:
    """Return the group that most bytes lie along, the next one, and what crosses."""
    found, facts, loops = shape.found, shape.facts, shape.loops
    lanes = [loops[group[-1]] for group in shape.groups]

    def weight(accesses: Sequence[Access]) -> int:
        return sum(a.tensor.dtype.itemsize * _count(a, loops, facts) for a in accesses)

    # The last group runs innermost in memory where all are alike.
    order = range(len(lanes) - 1, -1, -1)
    unit = [weight([a for a in found if is_unit(a, lane)]) for lane in lanes]
    along = max(order, key=lambda k: unit[k], default=0)
    crossing = {
        k: [a for a in found if _crosses(a, lanes[k], lanes[along])]
        for k in order
        if k != along
    }
    across = max(crossing, key=lambda k: weight(crossing[k]), default=along)
    if not crossing.get(across):
        return Rejection(NAME, "all accesses run along one axis")
    return along, across, crossing[across]


def _crosses(access: Access, lane: LoopIndex, other: LoopIndex) -> bool:
    """Tell whether ``access`` moves along both, in short steps along ``lane`` only.

    What is read under a guard, or where an index tensor says, stays where it is.
    """
    plain = not access.point.guard and not data_of(access.point)
    regular = access.irregular.isdisjoint((lane, other))
    short, long = (abs(access.steps.get(x, 0)) for x in (lane, other))
    return plain and regular and 0 < short <= NEAR < long


def _count(access: Access, loops: Sequence[LoopIndex], facts: Facts) -> int:
    moved = [x for x in loops if access.steps.get(x, 0) or x in access.irregular]
    return _extent(moved, facts)


def _extent(loops: Sequence[LoopIndex], facts: Facts) -> int:
    return math.prod(facts.size(loop.extent) for loop in loops)


def _sides(
    sizes: Sequence[int], staged: Sequence[Access], room: int
) -> tuple[int, int] | None:
    """Return the sides of a tile: whole cache lines at both ends, best two of them.

    The first that fits ``room`` bytes of shared memory; None where most of each tile
    would be empty.
    """
    widest = max(a.tensor.dtype.itemsize for a in staged)
    tiles = [_fitted(tile, sizes) for *tile, most in TILES if widest <= most]
    fitting = [t for t in tiles if _shared_bytes(t, staged) <= room]
    filled = (t for t in fitting or tiles[-1:] if _is_filled(sizes, t))
    return next(filled, None)


def _fitted(tile: Sequence[int], sizes: Sequence[int]) -> tuple[int, int]:
    """Return ``tile`` with sides that its axes fill; a narrow one is longer instead."""
    along, across = tile
    least = along * across // 2
    while across > NARROW and sizes[1] <= across // 2:
        across //= 2
    while along * across < least:
        along *= 2
    while along > WARP and sizes[0] <= along // 2:
        along //= 2
    return along, across


def _fitting(
    tile: tuple[int, int], staged: Sequence[Access], room: int
) -> list[Access]:
    """Return those of ``staged`` that ``room`` bytes hold, the first ones."""
    fitting: list[Access] = []
    for access in staged:
        if _shared_bytes(tile, [*fitting, access]) <= room:
            fitting.append(access)
    return fitting


def _shared_bytes(tile: tuple[int, int], staged: Sequence[Access]) -> int:
    sizes = (max(a.tensor.dtype.compute.itemsize, BANK) for a in staged)
    return _slots(tile) * sum(sizes)


def _slots(tile: tuple[int, int]) -> int:
    """Return how many elements the array of one tile has room for."""
    return tile[0] * (tile[1] + 1)


def _is_filled(sizes: Sequence[int], tile: tuple[int, int]) -> bool:
    """Tell whether the tiles over ``sizes`` have elements enough."""
    pairs = list(zip(sizes, tile, strict=True))
    room = math.prod(-(-n // side) * side for n, side in pairs)
    return math.prod(sizes) >= LEAST_FILLED * room > 0


def build(
    loops: Sequence[LoopIndex], heuristic: TransposeHeuristic
) -> tuple[Nest, Tile]:
    """Return the nest along the tile, and the tile with the nest across it."""
    along, place = _nest(loops, heuristic, is_across=False)
    across, other = _nest(loops, heuristic, is_across=True)
    return along, Tile(across, _slots(heuristic.tile), place, other)


def place_tiles(scheduled: Scheduled, heuristic: TransposeHeuristic) -> Scheduled:
    """Return ``scheduled`` with what is staged placed in shared memory."""
    fusion, space = scheduled.fusion, scheduled.space
    found = reads(fusion, roots(fusion, space))
    staged = [key for key in found if scheduled.is_input(key, heuristic.staged)]
    outputs = ((t, space.points[t]) for t in dict.fromkeys(fusion.outputs))
    staged += [key for key in outputs if scheduled.is_access(key, heuristic.staged)]
    placed = dict.fromkeys(staged, Placement(Where.SHARED, Route.LAID))
    return replace(scheduled, placements=placed)


@node
class _Side:
    """A group of loops in tiles, places within a tile, and elements of a packet."""

    tile: LoopAxis
    place: LoopAxis
    element: LoopAxis | None
    places: int
    size: int

    def rows(self, builder: NestBuilder, neighbours: int) -> list[LoopAxis]:
        """Return the positions within a tile as axes, outermost first.

        A warp runs through ``neighbours`` places of the other side; the positions that
        it takes beside them lie so far apart that their banks are the next ones.
        """
        elements = [self.element] if self.element else []
        if neighbours >= WARP or self.size < WARP:
            return [self.place, *elements]
        position = builder.merge([*elements, self.place])
        group, within = builder.split(position, WARP, LastTile.EXACT)
        step, rest = builder.split(within, neighbours, LastTile.EXACT)
        return [rest, group, step]


def _side(builder: NestBuilder, axis: LoopAxis, size: int, width: int) -> _Side:
    element = None
    if width > 1:
        axis, element = builder.split(axis, width, LastTile.EXACT)
    places = size // width
    tile, place = builder.split(axis, places, LastTile.CLAMP)
    return _Side(tile, place, element, places, size)


def _nest(
    loops: Sequence[LoopIndex], heuristic: TransposeHeuristic, *, is_across: bool
) -> tuple[Nest, Scalar]:
    """Return the nest one way through the tile, and where it stands in shared memory.

    Both nests have the same blocks and threads. The position along a side counts
    places first, then elements of packets; the rows of a tile's array begin in
    neighbouring banks.
    """
    builder = NestBuilder(loops, ())
    axes = builder.merged(heuristic.groups)
    tile, widths = heuristic.tile, heuristic.widths
    along = _side(builder, axes[heuristic.along], tile[0], widths[0])
    across = _side(builder, axes[heuristic.across], tile[1], widths[1])
    used = (heuristic.along, heuristic.across)
    rest = [axis for k, axis in enumerate(axes) if k not in used]
    block = builder.merge([*rest, across.tile, along.tile])
    rows, packets = (along, across) if is_across else (across, along)
    part = builder.merge([*rows.rows(builder, packets.places), packets.place])
    item, thread = builder.split(part, heuristic.threads, LastTile.EXACT)
    builder.bind(block, Binding.BLOCK_X)
    builder.bind(thread, Binding.THREAD_X)
    builder.bind(item, Binding.UNROLLED)
    if packets.element:
        builder.bind(packets.element, Binding.PACKET)
    nest = builder.freeze()

    def position(side: _Side) -> Scalar:
        element = builder.at(side.element) if side.element else sc.const(0)
        return element * side.places + builder.at(side.place)

    return nest, position(along) * (tile[1] + 1) + position(across)
