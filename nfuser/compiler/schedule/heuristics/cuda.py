# SPDX-License-Identifier: Apache-2.0
"""What is decided of a GPU kernel: packets, threads, blocks, and what these keep."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.facts.layout import Groups, Packed, Patterns


@value
class CudaPointwise:
    """How a GPU runs a fusion without reductions: ``items`` packets a thread.

    They follow each other along the group ``shared``, or anyhow where that is -1. Where
    ``in_turn``, ``near`` neighbouring blocks along the groups inside it are followed by
    those that share operands with them; ``near`` is given at the launch. Where blocks
    go ``from_last``, the first of them takes the last elements.
    """

    groups: Groups
    patterns: Patterns
    width: int
    threads: int
    wide_index: bool
    packed: Packed = frozenset()
    items: int = 1
    shared: int = -1
    in_turn: bool = False
    part: int = 0  # which of several that share a kernel
    from_last: bool = False
    near: int = field(default=1, compare=False)
    blocks: ClassVar[int] = 0

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        return {self.near_knob: self.near} if self.in_turn else {}

    @property
    def near_knob(self) -> Scalar:
        """The number of near blocks, as kernels know it."""
        return scalar_symbols.knob(f"near{self.part}" if self.part else "near")

    def __str__(self) -> str:
        items = f", items={self.items}" if self.items > 1 else ""
        items += " in turn" if self.in_turn else ""
        items += ", from the last" if self.from_last else ""
        return f"pointwise(width={self.width}, threads={self.threads}{items})"


@value
class TransposeHeuristic:
    """How a fusion without reductions runs whose accesses lie along different axes.

    Pairs are for the groups ``along`` and ``across``: the sides of a tile, and the
    elements of a packet. ``staged`` accesses go through shared memory, in packets along
    ``across``; the others go directly, in packets along ``along``. Those of either kind
    that are ``packed`` have packets, all others go element by element.
    """

    groups: Groups
    patterns: Patterns
    along: int
    across: int
    tile: tuple[int, int]
    widths: tuple[int, int]
    threads: int
    wide_index: bool
    packed: Packed
    staged: Packed
    blocks: int = 0  # that a multiprocessor holds at least
    knobs: ClassVar[Mapping[Scalar, int]] = {}  # given at the launch

    @property
    def width(self) -> int:
        """The elements of a packet along which the fusion runs."""
        return self.widths[0]

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads

    def __str__(self) -> str:
        tile, widths = ("x".join(map(str, x)) for x in (self.tile, self.widths))
        return (
            f"transpose(tile={tile}, widths={widths}, threads={self.threads}, "
            f"staged={len(self.staged)})"
        )


@value
class Geometry:
    """How threads and blocks share rows.

    ``fold`` threads share a row, ``keep`` rows (or packets of columns) share a block,
    and ``splits`` blocks share a row. A block takes ``rounds`` such rows after each
    other.
    """

    fold: int
    keep: int
    splits: int
    rounds: int = 1


@value
class CudaReduction:
    """How a GPU runs a fusion with reductions.

    ``inner``: the reduced loops run along memory. ``packed`` accesses go in packets of
    ``width`` elements, all others element by element. What is ``known`` of threads and
    blocks is part of the kernel; where it is 0, ``geometry`` gives the number at each
    launch, so one kernel serves rows of any length. A block has at most ``threads``
    threads.

    ``steps`` bounds how often a thread goes on along its row, where what is computed
    once is kept; 0 is the looped form, in which a thread has ``flight`` packets on
    their way at once. Where ``steps`` are ``exact``, all but the last of them lie
    within every row. Where ``as_stored``, a block keeps what it reads in shared memory
    as it was, and computes all else again in each pass: a 16-bit float takes two bytes,
    and no registers. An ``eager`` one loads what all rows share before its threads
    meet, not after it.

    Of blocks that share a row, looped ones leave the end to the last of them, or, in
    ``phases``, read their parts anew in a launch for each pass, which begins with what
    all have left in the one before. Those that keep their parts exchange what they fold
    and go on with it. They wait for each other, so they all run at once: a
    multiprocessor holds ``blocks`` of them at least. Where they are ``in_step`` with
    those of other rows, all wait at the same time, and let memory work meanwhile. Those
    of a ``cluster`` run together whatever else there is, and exchange what they fold
    through each other's shared memory, which no read of memory holds up. Long
    chains of one accumulator are ``compensated``: they keep what rounding takes away.
    Where blocks go ``from_last``, the first of them takes the last rows.

    Where rows begin anywhere between two packets, these are counted from the first
    boundary of those of one access, the ``leader``; the elements before and behind them
    go one by one. There is a boundary each ``line`` of elements. Reads ``across`` two
    packets take both.
    """

    kept: Groups
    reduced: Groups
    patterns: Patterns
    inner: bool
    width: int
    steps: int
    known: Geometry
    wide_index: bool
    compensated: bool = False
    packed: Packed = frozenset()
    leader: tuple[int, Point] | None = None
    line: int = 0
    across: Packed = frozenset()
    threads: int = 0
    flight: int = 1
    blocks: int = 0
    as_stored: bool = False
    eager: bool = False
    exact: bool = False
    in_step: bool = False
    cluster: bool = False
    phases: bool = False
    from_last: bool = False
    geometry: Geometry = field(default=Geometry(1, 1, 1), compare=False)

    @property
    def is_flexible(self) -> bool:
        """Whether the threads of a row are known at the launch only."""
        return self.known.fold == 0

    @property
    def fold(self) -> Scalar:
        """How many threads share a row."""
        return _known_or_knob(self.known.fold, "fold")

    @property
    def keep(self) -> Scalar:
        """How many rows, or packets of columns, share a block."""
        return _known_or_knob(self.known.keep, "keep")

    @property
    def splits(self) -> Scalar:
        """How many blocks share a row."""
        return _known_or_knob(self.known.splits, "splits")

    @property
    def rounds(self) -> Scalar:
        """How many rows, or tiles of columns, a block takes after each other."""
        return _known_or_knob(self.known.rounds, "rounds")

    @property
    def is_split(self) -> bool:
        """Whether several blocks share a row."""
        return self.known.splits != 1

    @property
    def is_persistent(self) -> bool:
        """Whether rows are kept between the reductions over them."""
        return self.steps > 0

    @property
    def is_shared(self) -> bool:
        """Whether several blocks share a row and keep their parts of it."""
        return self.is_split and self.is_persistent

    @property
    def room(self) -> int:
        """How many elements of a row a thread keeps."""
        return self.steps * self.width

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads or self.known.fold * self.known.keep

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        g = self.geometry
        numbers = {"fold": g.fold, "keep": g.keep, "splits": g.splits}
        numbers["rounds"] = g.rounds
        return {scalar_symbols.knob(name): n for name, n in numbers.items()}

    def __str__(self) -> str:
        known = self.known
        form = f"kept in {self.steps} steps" if self.is_persistent else "looped"
        form += " as stored" if self.as_stored else ""
        form += " in phases" if self.phases else ""
        way = "inner" if self.inner else "outer"
        threads, splits = f"{known.fold}x{known.keep}", str(known.splits or "any")
        if self.is_flexible:
            threads = f"up to {self.threads}"
        in_step = "in step, " if self.in_step else ""
        in_step = "in clusters, " if self.cluster else in_step
        width = f"{self.width} between ends" if self.leader else str(self.width)
        return (
            f"reduction({way}, {form}, width={width}, threads={threads}, "
            f"{in_step}splits={splits}{', from the last' if self.from_last else ''})"
        )


def _known_or_knob(known: int, name: str) -> Scalar:
    return sc.const(known) if known else scalar_symbols.knob(name)
