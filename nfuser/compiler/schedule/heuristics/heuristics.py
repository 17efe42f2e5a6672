# SPDX-License-Identifier: Apache-2.0
"""All heuristics: values that hold every decision, by which kernels are found again.

Each target has forms of its own, in ``cuda`` and ``cpu`` beside; here is what serves
both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

from nfuser.compiler.ir.base import value
from nfuser.compiler.schedule.heuristics.cpu import CpuPointwise, CpuReduction
from nfuser.compiler.schedule.heuristics.cuda import (
    CudaPointwise,
    CudaReduction,
    TransposeHeuristic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.schedule.facts.layout import Groups, Packed, Patterns


@value
class ScanHeuristic:
    """How a fusion with scans runs.

    ``inner``: the scanned loops run along memory. ``fold`` threads share one row and
    ``keep`` rows (or packets of columns) share one block; at each step along a row a
    thread takes ``items`` packets of it. A CPU thread takes a whole row.

    Where rows begin anywhere between two packets, these are counted from the first
    boundary of those of one access, the ``leader``.
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
    leader: tuple[int, Point] | None = None
    blocks: ClassVar[int] = 0
    knobs: ClassVar[Mapping[Scalar, int]] = {}  # given at the launch

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.fold * self.keep

    def __str__(self) -> str:
        way = "inner" if self.inner else "outer"
        width = f"{self.width} between ends" if self.leader else str(self.width)
        return (
            f"scan({way}, width={width}, threads={self.fold}x{self.keep}, "
            f"items={self.items})"
        )


@value
class SweepHeuristic:
    """How a loop runs inside a kernel: each thread takes its elements through it.

    A CPU thread takes ``lanes`` elements of the last group at once, that is how many
    lie side by side in what it carries, and where they come out ``even`` LLVM holds
    them in registers; a GPU's takes one, in blocks of ``threads``.
    """

    groups: Groups
    patterns: Patterns
    lanes: int
    threads: int
    wide_index: bool
    even: bool = False
    width: ClassVar[int] = 1
    blocks: ClassVar[int] = 0
    packed: ClassVar[Packed] = frozenset()
    knobs: ClassVar[Mapping[Scalar, int]] = {}  # given at the launch

    @property
    def most_threads(self) -> int:
        """How many threads a block may have."""
        return self.threads

    def __str__(self) -> str:
        form = f"lanes={self.lanes}" if self.threads == 1 else f"threads={self.threads}"
        return f"sweep({form})"


@value
class ChainHeuristic:
    """How loops over the same rows run in one kernel of a CPU.

    A thread takes ``lanes`` rows at once through all of them, as it takes elements
    through one. None fit where it is 0.
    """

    groups: Groups
    patterns: Patterns
    lanes: int
    even: bool
    wide_index: ClassVar[bool] = True
    most_threads: ClassVar[int] = 1
    knobs: ClassVar[Mapping[Scalar, int]] = {}  # given at the launch

    def of_link(self, tensors: int) -> SweepHeuristic:
        """Return how one link runs, which has so many ``tensors`` in memory."""
        return SweepHeuristic(
            self.groups, ((),) * tensors, self.lanes, 1, True, self.even
        )

    def __str__(self) -> str:
        return f"chain(lanes={self.lanes})"


FlatHeuristic: TypeAlias = CudaPointwise | CpuPointwise | TransposeHeuristic
ReductionHeuristic: TypeAlias = CudaReduction | CpuReduction
PartHeuristic: TypeAlias = (
    FlatHeuristic | ReductionHeuristic | ScanHeuristic | SweepHeuristic
)


@value
class HorizontalHeuristic:
    """How computations alike share a launch: each part as if it were alone."""

    parts: tuple[FlatHeuristic, ...]

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
        return f"horizontal({', '.join(map(str, self.parts))})"


@value
class SerialHeuristic:
    """How a loop runs that one thread takes: only how its arrays lie is asked.

    At a launch ``copies`` say which arrays are copied before the loop changes them.
    """

    patterns: Patterns
    copies: tuple[Scalar, ...]
    wide_index: ClassVar[bool] = True
    most_threads: ClassVar[int] = 1

    @property
    def knobs(self) -> dict[Scalar, int]:
        """The numbers that are given at the launch."""
        return dict.fromkeys(self.copies, 1)

    def __str__(self) -> str:
        return "serial()"


Heuristic: TypeAlias = (
    PartHeuristic | HorizontalHeuristic | ChainHeuristic | SerialHeuristic
)
