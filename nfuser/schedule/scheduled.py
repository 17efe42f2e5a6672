# SPDX-License-Identifier: Apache-2.0
"""A segment with its loops chosen; what a scheduler gives and lowering takes."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from nfuser.ir import scalar as sc
from nfuser.ir.base import node, value
from nfuser.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.domains.space import Space
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.facts import Facts, Target
    from nfuser.schedule.layout import Groups, Packed, Step
    from nfuser.schedule.nest import Nest

Patterns: TypeAlias = "tuple[tuple[Step, ...], ...]"


@value
class Geometry:
    """How many threads and blocks share a row, and how many rows share a block.

    A block takes ``rounds`` such rows after each other.
    """

    fold: int
    keep: int
    splits: int
    rounds: int = 1


@value
class PointwiseHeuristic:
    """How a fusion without reductions runs: each thread takes ``items`` packets.

    They follow each other along the group ``shared``, or anyhow where that is -1. Where
    ``in_turn``, ``near`` neighbouring blocks along the groups inside it are followed by
    those that share operands with them; ``near`` is given at the launch.
    A CPU runs in tiles of the last group and the one numbered ``across``, along which
    something lies in memory; -1 where all lies along the last. It walks through
    ``streams`` places of memory at once, stores past the cache if it is to ``bypass``
    it, and takes rows that are ``short`` as they are, not in pieces.
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
    across: int = -1
    streams: int = 1
    bypass: bool = False
    short: bool = False
    part: int = 0  # which of several that share a kernel
    near: int = field(default=1, compare=False)

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
        return sc.knob(f"near{self.part}" if self.part else "near")

    def __str__(self) -> str:
        items = f", items={self.items}" if self.items > 1 else ""
        items += " in turn" if self.in_turn else ""
        items += f", across={self.across}" if self.across >= 0 else ""
        items += f", streams={self.streams}" if self.streams > 1 else ""
        items += ", bypass" if self.bypass else ""
        items += ", short" if self.short else ""
        return f"pointwise(width={self.width}, threads={self.threads}{items})"


@value
class ReductionHeuristic:
    """How a fusion with reductions runs.

    ``inner``: the reduced loops run along memory. ``fold_threads`` threads share one
    row and ``keep_threads`` rows (or packets of columns) share one block. ``steps``
    bounds how often a thread goes on along its row, where what is computed once is
    kept; 0 is the looped form, in which a thread has ``flight`` packets on their way at
    once. ``splits`` blocks share one row: a looped one leaves the end to the last of
    them, those that keep their parts exchange what they fold and go on with it. They
    wait for each other, so they all run at once, and take ``rounds`` rows each; a
    multiprocessor then holds ``blocks`` of them at least. Where they are ``in_step``
    with those of other rows, all wait at the same time, and let memory work meanwhile.
    Where ``as_stored``, a block keeps what it reads in shared memory as it was, and
    computes all else again in each pass: a 16-bit float takes two bytes, and no
    registers. An ``eager`` one loads what all rows share before its threads meet, not
    after it. Where ``steps`` are ``exact``, all but the last of them lie within every
    row. A CPU adds up at most ``chunk`` elements before it adds their sum to the row's,
    or the column's (0: all at once). Long chains of one accumulator are
    ``compensated``: they keep what rounding takes away.
    ``packed`` accesses go in packets, all others element by element. Where
    ``fold_threads`` is 0 the numbers of threads are ``knobs``, as ``splits`` and
    ``rounds`` are where they are 0: they are given at each launch by ``geometry``,
    which is no part of the kernel: one kernel serves rows of any length. Its blocks
    have at most ``threads`` threads. A CPU walks through ``streams`` pieces of a row,
    or rows of its columns, at once, and stores rows past the cache if it is to
    ``bypass`` it. What is ``staged`` it copies to its stack, as its columns run, once
    for the ``rounds`` rows that follow each other along the kept group ``across``.
    """

    kept: Groups
    reduced: Groups
    patterns: Patterns
    inner: bool
    width: int
    fold_threads: int
    keep_threads: int
    steps: int
    splits: int
    wide_index: bool
    chunk: int = 0
    compensated: bool = False
    packed: Packed = frozenset()
    threads: int = 0
    flight: int = 1
    blocks: int = 0
    as_stored: bool = False
    eager: bool = False
    exact: bool = False
    rounds: int = 1
    in_step: bool = False
    streams: int = 1
    bypass: bool = False
    staged: Packed = frozenset()
    across: int = -1
    geometry: Geometry = field(default=Geometry(1, 1, 1), compare=False)

    @property
    def is_flexible(self) -> bool:
        """Whether threads and blocks are known at the launch only."""
        return self.fold_threads == 0

    @property
    def fold(self) -> Scalar:
        """How many threads share a row."""
        return sc.knob("fold") if self.is_flexible else sc.const(self.fold_threads)

    @property
    def keep(self) -> Scalar:
        """How many rows, or packets of columns, share a block."""
        return sc.knob("keep") if self.is_flexible else sc.const(self.keep_threads)

    @property
    def shares(self) -> Scalar:
        """How many blocks share a row."""
        return sc.const(self.splits) if self.splits else sc.knob("splits")

    @property
    def turns(self) -> Scalar:
        """How many rows, or tiles of columns, a block takes after each other."""
        return sc.const(self.rounds) if self.rounds else sc.knob("rounds")

    @property
    def is_split(self) -> bool:
        """Whether several blocks share a row."""
        return self.splits != 1

    @property
    def is_shared(self) -> bool:
        """Whether several blocks share a row and keep their parts of it."""
        return self.is_split and self.is_persistent

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads or self.fold_threads * self.keep_threads

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        g = self.geometry
        numbers = {"fold": g.fold, "keep": g.keep, "splits": g.splits}
        numbers["rounds"] = g.rounds
        return {sc.knob(name): n for name, n in numbers.items()}

    @property
    def is_persistent(self) -> bool:
        """Whether rows are kept between the reductions over them."""
        return self.steps > 0

    def __str__(self) -> str:
        form = f"kept in {self.steps} steps" if self.is_persistent else "looped"
        form += " as stored" if self.as_stored else ""
        way = "inner" if self.inner else "outer"
        threads, splits = f"{self.fold_threads}x{self.keep_threads}", str(self.splits)
        if self.is_flexible:
            threads = f"up to {self.threads}"
        if self.splits == 0:
            splits = "any"
        extra = f"streams={self.streams}, " if self.streams > 1 else ""
        extra += "bypass, " if self.bypass else ""
        extra += "in step, " if self.in_step else ""
        extra += f"staged={len(self.staged)}, " if self.staged else ""
        return (
            f"reduction({way}, {form}, width={self.width}, threads={threads}, "
            f"{extra}splits={splits})"
        )


@value
class ScanHeuristic:
    """How a fusion with scans runs.

    ``inner``: the scanned loops run along memory. ``fold`` threads share one row and
    ``keep`` rows (or packets of columns) share one block; at each step along a row a
    thread takes ``items`` packets of it. A CPU thread takes a whole row.
    """

    kept: Groups
    reduced: Groups
    patterns: Patterns
    inner: bool
    width: int
    fold: int
    keep: int
    items: int
    wide_index: bool
    packed: Packed = frozenset()

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.fold * self.keep

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        return {}

    def __str__(self) -> str:
        way = "inner" if self.inner else "outer"
        return (
            f"scan({way}, width={self.width}, threads={self.fold}x{self.keep}, "
            f"items={self.items})"
        )


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

    @property
    def width(self) -> int:
        """The elements of a packet along which the fusion runs."""
        return self.widths[0]

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        return {}

    def __str__(self) -> str:
        tile, widths = ("x".join(map(str, x)) for x in (self.tile, self.widths))
        return (
            f"transpose(tile={tile}, widths={widths}, threads={self.threads}, "
            f"staged={len(self.staged)})"
        )


@value
class BesideHeuristic:
    """How computations alike share a launch: each part as if it were alone."""

    parts: tuple[PointwiseHeuristic | TransposeHeuristic, ...]

    @property
    def wide_index(self) -> bool:
        """Whether indices need 64 bits; they do in all parts or in none."""
        return self.parts[0].wide_index

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.parts[0].most_threads

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        return {knob: n for part in self.parts for knob, n in part.knobs.items()}

    def __str__(self) -> str:
        return f"beside({', '.join(map(str, self.parts))})"


PartHeuristic: TypeAlias = (
    PointwiseHeuristic | ReductionHeuristic | ScanHeuristic | TransposeHeuristic
)
Heuristic: TypeAlias = PartHeuristic | BesideHeuristic


@node
class Tile:
    """The way across a tile: a nest with the same blocks and threads as the other one.

    ``size`` is the room that an array of the tile has; ``place`` the element of it
    where the other nest stands, ``other_place`` where this one does.
    """

    nest: Nest
    size: int
    place: Scalar
    other_place: Scalar


@node
class Scheduled:
    """A fusion, the space and nest it runs in, and how its tensors lie in memory."""

    fusion: Fusion
    space: Space
    nest: Nest
    strides: Mapping[TensorView, tuple[Scalar, ...]]
    heuristic: PartHeuristic
    target: Target
    tile: Tile | None = None

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index or self.target.kind == "cpu"


@node
class Joined:
    """A fusion whose parts run beside each other, each on blocks of its own."""

    fusion: Fusion
    parts: tuple[Scheduled, ...]
    heuristic: BesideHeuristic
    target: Target

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.parts[0].is_wide


Schedule: TypeAlias = Scheduled | Joined


class Scheduler(Protocol):
    """Three functions and a name."""

    name: str

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Return why ``fusion`` cannot run this way, or None if it can."""
        ...

    def heuristic(self, fusion: Fusion, facts: Facts) -> Heuristic:
        """Choose, from the numbers of one call, what the schedule depends on."""
        ...

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Schedule:
        """Build the schedule; it depends on nothing but its arguments."""
        ...


__all__ = [
    "BesideHeuristic",
    "Heuristic",
    "Joined",
    "PointwiseHeuristic",
    "ReductionHeuristic",
    "Rejection",
    "ScanHeuristic",
    "Schedule",
    "Scheduled",
    "Scheduler",
    "Tile",
    "TransposeHeuristic",
]
