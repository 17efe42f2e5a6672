# SPDX-License-Identifier: Apache-2.0
"""What is decided of a CPU kernel: pieces of work, and how its loops meet memory."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.facts.layout import Groups, Packed, Patterns


CHUNK = 8192
"""Elements of one piece of work, at most: they and their kin stay in L1 or L2."""


class OnCpu:
    """What only a GPU has a choice of: there are no packets, and no blocks."""

    __slots__ = ()
    width: ClassVar[int] = 1
    most_threads: ClassVar[int] = 1
    blocks: ClassVar[int] = 0
    wide_index: ClassVar[bool] = True
    packed: ClassVar[Packed] = frozenset()


@value
class CpuPointwise(OnCpu):
    """How a CPU runs a fusion without reductions: in pieces of the last group.

    Where something lies in memory along the group ``across``, it runs in tiles of both;
    that is -1 where all lies along the last. What is ``staged`` of it is copied to the
    stack, a tile at a time, and read there. Rows that are ``short`` it takes as they
    are, not in pieces; a ``piece`` has so many elements. It walks through ``streams``
    places of memory at once, and stores past the cache if it is to ``bypass`` it.
    """

    groups: Groups
    patterns: Patterns
    across: int = -1
    staged: Packed = frozenset()
    short: bool = False
    streams: int = 1
    bypass: bool = False
    piece: int = CHUNK
    knobs: ClassVar[Mapping[Scalar, int]] = {}  # given at the launch

    def __str__(self) -> str:
        form = f"tiles, across={self.across}" if self.across >= 0 else "pieces"
        form += f", staged={len(self.staged)}" if self.staged else ""
        form = "short rows" if self.short else form
        return f"pointwise({form}{_ways(self.streams, bypass=self.bypass)})"


@value
class StagedColumns:
    """What a thread copies to its stack, as its columns run, for rows that share it.

    These are ``rounds`` rows that follow each other along the kept group ``across``;
    their number is given at the launch.
    """

    accesses: Packed
    across: int
    rounds: int = field(default=1, compare=False)

    @property
    def rounds_knob(self) -> Scalar:
        """The number of rows, as kernels know it."""
        return scalar_symbols.knob("rounds")


@value
class CpuReduction(OnCpu):
    """How a CPU runs a fusion with reductions.

    ``inner``: the reduced loops run along memory, else ``columns`` are folded side by
    side. Up to ``room`` elements that are computed once are kept on the stack of a
    thread; 0 is the looped form. A row is cut into ``parts``, of which the last to
    finish joins what all have folded. If more is to be done with the result, rows go
    in ``phases``: a launch for each pass, in which every part first joins what all
    have folded before. At most ``chunk`` elements are added up before
    their sum is added to the row's, or the column's (0: all at once). Long chains of
    one accumulator are ``compensated``: they keep what rounding takes away. A thread
    walks through ``streams`` pieces of a row, or rows of its columns, at once, and
    stores rows past the cache if it is to ``bypass`` it. Rows that are
    ``short`` are a few whole vectors, of which it takes one after the other.
    """

    kept: Groups
    reduced: Groups
    patterns: Patterns
    inner: bool
    columns: int = 1
    room: int = 0
    parts: int = 1
    phases: bool = False
    chunk: int = 0
    compensated: bool = False
    streams: int = 1
    bypass: bool = False
    staged: StagedColumns | None = None
    short: bool = False

    @property
    def is_split(self) -> bool:
        """Whether several threads share a row."""
        return self.parts > 1

    @property
    def is_persistent(self) -> bool:
        """Whether rows are kept between the reductions over them."""
        return self.room > 0

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        staged = self.staged
        return {staged.rounds_knob: staged.rounds} if staged else {}

    def __str__(self) -> str:
        way = "inner" if self.inner else f"outer, columns={self.columns}"
        form = "kept" if self.is_persistent else "looped"
        form += ", short" if self.short else ""
        form += f", parts={self.parts}" if self.is_split else ""
        form += " in phases" if self.phases else ""
        form += f", chunk={self.chunk}" if self.chunk else ""
        form += f", staged={len(self.staged.accesses)}" if self.staged else ""
        return f"reduction({way}, {form}{_ways(self.streams, bypass=self.bypass)})"


def _ways(streams: int, *, bypass: bool) -> str:
    text = f", streams={streams}" if streams > 1 else ""
    return text + (", bypass" if bypass else "")
