# SPDX-License-Identifier: Apache-2.0
"""Rows as one call has them: numbers that a reduction's schedule is chosen on."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from nfuser.compiler.schedule.facts.layout import (
    across,
    grouped,
    is_packed,
    is_unit,
    leader_of,
    line_of,
    ordered,
    packed,
    packet_width,
    power_of_two,
    runs_along,
    runs_inside,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.domains.space import Space
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Access, Facts
    from nfuser.compiler.schedule.facts.layout import Packed

VECTOR, SEVERAL = 16, 64  # elements of f32 in the widest vector, and in four
COPIED_BYTES = (4, 8, 16)  # that one instruction copies to shared memory


class RowShape:
    """Numbers of one call that the choices are made on."""

    def __init__(
        self,
        facts: Facts,
        space: Space,
        found: list[Access],
        outputs: tuple[TensorView, ...],
        folded: frozenset[Read],
    ) -> None:
        kept = ordered(space.kept, found, facts)
        reduced = ordered(space.reduced, found, facts)
        self.facts, self.found, self.space, self.outputs = facts, found, space, outputs
        self.folded = folded  # what reductions are of
        self.target = facts.target
        self.inner = runs_inside(kept, reduced, found, facts)
        self.kept = grouped(kept, found, facts)
        self.reduced = grouped(reduced, found, facts)
        self.rows = self.count(space.kept)
        self.length = self.count(space.reduced)
        self._led = self._find_leader()

    def _find_leader(self) -> tuple[Access, int] | None:
        """Return whose packets are counted by where rows begin between two."""
        group = self.lane_group()
        is_alone = self.inner and len(self.reduced) == 1
        if not (self.target.has_blocks and is_alone):
            return None
        width = packet_width(group, self.found, self.facts)
        return leader_of(group, self.found, width, self.facts)

    def by_columns(self) -> RowShape:
        """Return the same rows, to be folded along the kept loops."""
        made = copy(self)
        made.inner, made._led = False, None
        return made

    def by_rows(self) -> RowShape:
        """Return the same rows, to be gone through along the reduced loops."""
        made = copy(self)
        made.inner, made._led = True, None
        return made

    def count(self, loops: tuple[LoopIndex, ...]) -> int:
        """Return how many elements ``loops`` run through."""
        total = 1
        for loop in loops:
            total *= self.facts.size(loop.extent)
        return total

    @property
    def is_short(self) -> bool:
        """Whether a row is whole vectors, too few to go side by side.

        Of others, what is left goes best in the narrower vectors that LLVM makes then.
        """
        return self.length < SEVERAL and self.length % VECTOR == 0

    def lane_group(self) -> list[LoopIndex]:
        """Return the loops that memory runs along."""
        groups = self.reduced if self.inner else self.kept
        return [self.space.loops[k] for k in groups[-1]] if groups else []

    def first_group(self) -> list[LoopIndex]:
        """Return the outermost reduced loops that are one to all tensors."""
        return [self.space.loops[k] for k in self.reduced[0]]

    def has_lanes(self) -> bool:
        """Tell whether neighbours lie side by side, so that vectors hold them.

        Where memory runs backwards its stride is a parameter, and there are none.
        """
        lane = self.lane_group()[-1:]
        return all(
            runs_along(a, x) and a.steps.get(x, 0) >= 0
            for x in lane
            for a in self.found
        )

    def steps(self, fold: int, width: int) -> int:
        """Return how often ``fold`` threads go along a row, as a power of two."""
        return power_of_two(self.least_steps(fold, width))

    def least_steps(self, fold: int, width: int) -> int:
        """Return how often ``fold`` threads go along a row of just this length."""
        along = max(self.length // width, 1) if self.inner else self.length
        return -(-along // fold)

    def kept_words(self, steps: int, width: int) -> int:
        """Return the registers that a thread needs to keep ``steps`` of a row."""
        sizes = (a.tensor.dtype.compute.itemsize for a in self._read_again())
        words = sum(max(size, 4) // 4 for size in sizes) or 1
        return steps * width * words

    def loaded_words(self, steps: int, width: int) -> int:
        """Return the registers that ``steps`` of a row take as they are loaded.

        Packets of narrow elements stay together until they are computed with.
        """
        if width == 1:
            return self.kept_words(steps, width)
        total = sum(a.tensor.dtype.itemsize for a in self._read_again())
        return -(-steps * width * (total or 4) // 4)

    def common_words(self, steps: int, width: int) -> int:
        """Return the registers of ``steps`` of what all rows share, as it is loaded."""
        total = 0
        for access in self.found[len(self.outputs) :]:
            along = any(access.steps.get(loop, 0) for loop in self.space.reduced)
            across = any(access.steps.get(loop, 0) for loop in self.space.kept)
            if along and not across:
                size = access.tensor.dtype.itemsize
                total += size if width > 1 else max(size, 4)
        return -(-steps * width * total // 4)

    def widest(self) -> int:
        """Return the bytes of the widest element that reductions read."""
        return max((a.tensor.dtype.itemsize for a in self._read_again()), default=4)

    def read_again_bytes(self) -> int:
        """Return the bytes of one element of all that reductions read."""
        return sum(a.tensor.dtype.itemsize for a in self._read_again()) or 4

    def widest_along(self) -> int:
        """Return the bytes of the widest element that lies along the lane."""
        lane = self.lane_group()[-1:]
        along = (
            a.tensor.dtype.itemsize for x in lane for a in self.found if is_unit(a, x)
        )
        return max(along, default=4)

    def _read_again(self) -> list[Access]:
        """Return the reads of rows that reductions need; what follows reads them again.

        What only the last pass reads is not kept.
        """
        kept, reduced = self.space.kept, self.space.reduced
        return [
            a
            for a in self.found[len(self.outputs) :]
            if (a.tensor, a.point) in self.folded
            and any(a.steps.get(loop, 0) for loop in reduced)
            and (not kept or any(a.steps.get(loop, 0) for loop in kept))
        ]

    def stored_bytes(self, width: int) -> int | None:
        """Return the bytes of one element of all that may be read in several passes.

        None where rows that are folded are not floats, in packets that can be copied.
        """
        lane, rows = self.lane_group(), self._read_again()
        total = 0
        for access in self.found[len(self.outputs) :]:
            # Without another output, what nothing folds is read by the last pass alone.
            is_folded = (access.tensor, access.point) in self.folded
            is_along = any(access.steps.get(loop, 0) for loop in self.space.reduced)
            if not is_along or not (is_folded or len(self.outputs) > 1):
                continue
            dtype = access.tensor.dtype
            if not is_packed(access, lane, width, self.facts, self.leader(width)):
                if access in rows:
                    return None
                continue
            can_be_copied = dtype.is_float and width * dtype.itemsize in COPIED_BYTES
            if access.guards or not can_be_copied:
                return None
            total += dtype.itemsize
        return total if total and width > 1 else None

    def width(self) -> int:
        """Return the packet width along the lane."""
        if self._led is not None:
            return self._led[1]
        group = self.lane_group()
        return packet_width(group, self.found, self.facts) if group else 1

    def packed(self, width: int, tensors: Sequence[TensorView]) -> Packed:
        """Return what goes in packets of ``width``."""
        group, leader = self.lane_group(), self.leader(width)
        return packed(group, self.found, width, self.facts, tensors, leader)

    def across(self, width: int, tensors: Sequence[TensorView]) -> Packed:
        """Return what is read in packets of ``width`` across two of memory's."""
        leader, found = self.leader(width), self.found[len(self.outputs) :]
        if leader is None:
            return frozenset()
        return across(self.lane_group(), found, width, self.facts, tensors, leader)

    def line(self, width: int, *, is_kept: bool) -> int:
        """Return how many elements lie between boundaries that packets begin at.

        A loop, which serves rows of any length, has those of packets.
        """
        leader = self.leader(width)
        if leader is None:
            return 0
        line_bytes = self.target.line_bytes
        return line_of(leader, width, self.length, line_bytes) if is_kept else width

    def leader(self, width: int) -> Access | None:
        """Return the access whose packets of ``width`` are counted by, if not rows."""
        return self._led[0] if self._led is not None and width > 1 else None
