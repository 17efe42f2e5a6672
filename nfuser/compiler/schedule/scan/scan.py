# SPDX-License-Identifier: Apache-2.0
"""Schedules for fusions with scans, and what is elementwise before and after them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import loops_of
from nfuser.compiler.domains.space import Mismatch, Space, find_space, space_of
from nfuser.compiler.schedule.facts.facts import accesses
from nfuser.compiler.schedule.facts.layout import (
    grouped,
    leader_of,
    ordered,
    packed,
    packet_width,
    power_of_two,
    runs_inside,
)
from nfuser.compiler.schedule.facts.memory import (
    memory_tensors,
    needs_wide_index,
    patterns,
    row_begin,
    strides,
)
from nfuser.compiler.schedule.facts.target import WARP
from nfuser.compiler.schedule.facts.weight import limited
from nfuser.compiler.schedule.heuristics.heuristics import ScanHeuristic
from nfuser.compiler.schedule.scan.scan_nest import cpu_nest, cuda_nest
from nfuser.compiler.schedule.scan.scan_passes import place_pieces
from nfuser.compiler.schedule.scheduled import Scheduled
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.schedule.facts.facts import Access, Facts
    from nfuser.compiler.schedule.facts.layout import Packed
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic

ROW_THREADS = 256  # threads of one row, where there are rows enough for all blocks
MOST_THREADS = 512  # of a row beside few others; a thread keeps registers enough
WORDS = 32  # registers of a thread that hold what it scans at each step
ITEMS = 8  # packets of a row that a thread has in flight
COLUMN_THREADS = 8  # threads of one column
COLUMN_ITEMS = 8  # rows of its column that a thread has in flight
LINE = 128  # bytes of a row that a warp reads where it runs across columns


class Scans:
    """Rows scanned once, in steps: each thread a piece, then what lies before it."""

    name = "scan"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take what scans along one axis, and reads nothing scanned elsewhere."""
        if not fusion.scans:
            return Rejection(self.name, "it does not scan", is_other=True)
        if fusion.reductions:
            return Rejection(self.name, "it reduces", fusion.reductions[0].result)
        if fusion.partial_sums:
            return Rejection(self.name, "it adds up", fusion.partial_sums[0].result)
        space = find_space(fusion)
        if isinstance(space, Mismatch):
            return Rejection(self.name, space.reason, space.tensor)
        return self._short_output(fusion, space)

    def _short_output(self, fusion: Fusion, space: Space) -> Rejection | None:
        """Refuse outputs without the scanned axis: each step stores a piece of all."""
        full = set(space.loops)
        for output in fusion.outputs:
            if set(loops_of(space.points[output])) != full:
                return Rejection(self.name, "it runs over fewer axes", output)
        return None

    def heuristic(self, fusion: Fusion, facts: Facts) -> ScanHeuristic:
        """Choose the way memory runs, and the threads of a row."""
        space = space_of(fusion)
        found = accesses(fusion, facts, strides(fusion, patterns(fusion, facts)))
        kept = ordered(space.kept, found, facts)
        inner = runs_inside(kept, space.reduced, found, facts)
        groups = grouped(space.reduced if inner else kept, found, facts)
        lanes = [space.loops[k] for k in groups[-1]]
        is_one = inner and len(groups) == 1
        shape = _Shape(fusion, facts, found, space, lanes, is_one=is_one)
        is_alone = not facts.target.has_blocks
        if is_alone:
            width, fold, keep, items = 1, 1, 1, 1
        else:
            width, fold, keep, items = shape.rows() if inner else shape.columns()
        return ScanHeuristic(
            grouped(kept, found, facts),
            grouped(space.reduced, found, facts),
            patterns(fusion, facts),
            inner,
            width,
            fold,
            keep,
            items,
            is_alone or needs_wide_index(fusion, facts),
            *shape.packed(width),
        )

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Build the nest."""
        assert isinstance(heuristic, ScanHeuristic)
        space = space_of(fusion)
        found = strides(fusion, heuristic.patterns)
        if not target.has_blocks:
            nest = cpu_nest(space, heuristic)
            return Scheduled(fusion, space, nest, found, heuristic, target)
        begin = row_begin(fusion, space, heuristic.leader, found)
        nest = cuda_nest(space, heuristic, begin)
        made = Scheduled(fusion, space, nest, found, heuristic, target)
        return place_pieces(made)


class _Shape:
    """Numbers of one call, and what a GPU makes of them."""

    def __init__(
        self,
        fusion: Fusion,
        facts: Facts,
        found: list[Access],
        space: Space,
        lanes: list[LoopIndex],
        *,
        is_one: bool,
    ) -> None:
        self._lanes, self._is_one = lanes, is_one  # one group, of memory's rows
        self._fusion, self._facts, self._found = fusion, facts, found
        self._leader: Access | None = None
        self._length = self._count(space.reduced)
        self._rows = self._count(space.kept)
        # A thread holds a piece of what is scanned, and of what is read beside it.
        read = found[len(set(fusion.outputs)) :]
        scanned = [scan.result.dtype for scan in fusion.scans]
        self._held = max(_words(scanned), _words([a.tensor.dtype for a in read]))

    def _count(self, loops: Sequence[LoopIndex]) -> int:
        total = 1
        for loop in loops:
            total *= self._facts.size(loop.extent)
        return total

    def _width(self) -> int:
        width = packet_width(self._lanes, self._found, self._facts)
        return limited(width, self._fusion)

    def _led_width(self) -> int:
        """Return the width of packets that begin in rows, wherever these do."""
        width = packet_width(self._lanes, self._found, self._facts)
        led = leader_of(self._lanes, self._found, width, self._facts)
        if not self._is_one or led is None or limited(led[1], self._fusion) < led[1]:
            return self._width()
        self._leader, wide = led
        return wide

    def packed(self, width: int) -> tuple[Packed, tuple[int, Point] | None]:
        """Return what goes in packets of ``width``, and whose these are counted by."""
        tensors, led = memory_tensors(self._fusion), self._leader
        found = packed(self._lanes, self._found, width, self._facts, tensors, led)
        return found, led and (tensors.index(led.tensor), led.point)

    def rows(self) -> tuple[int, int, int, int]:
        """Return the packet, the threads of a row, the rows of a block, the items."""
        width = self._led_width()
        packets = max(self._length // width, 1)
        crowded = self._rows >= 2 * self._facts.target.multiprocessors
        most = ROW_THREADS if crowded else MOST_THREADS
        # A block of so many threads leaves each half the registers.
        words = WORDS if crowded else WORDS // 2
        items = max(min(ITEMS, words // (width * self._held)), 1)
        items = min(items, power_of_two(-(-packets // WARP)))
        fold = min(power_of_two(-(-packets // items)), most)
        # More than a warp for a row, and rows would share what their warps leave.
        rows = max(power_of_two(self._rows), WARP // fold)  # a warp is whole
        keep = min(128 // fold, rows) if fold <= WARP else 1
        return width, fold, keep, items

    def columns(self) -> tuple[int, int, int, int]:
        """Return the packet, the threads of a column, columns of a block, items."""
        size = max(a.tensor.dtype.itemsize for a in self._found)
        width = min(self._width(), max(LINE // (WARP * size), 1))
        items = max(COLUMN_ITEMS // self._held, 1)
        items = min(items, power_of_two(self._length))
        fold = min(power_of_two(-(-self._length // items)), COLUMN_THREADS)
        return width, fold, WARP, items


def _words(dtypes: list[DType]) -> int:
    """Return the registers that one element of each takes."""
    return sum(max(dtype.compute.itemsize, 4) // 4 for dtype in dtypes)
