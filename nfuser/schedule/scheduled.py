# SPDX-License-Identifier: Apache-2.0
"""A segment with its loops chosen; what a scheduler gives and lowering takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from nfuser.ir.base import node, value
from nfuser.segment import Rejection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.domains.space import Space
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.facts import Facts, Target
    from nfuser.schedule.layout import Groups, Scattered, Step
    from nfuser.schedule.nest import Nest

Patterns: TypeAlias = "tuple[tuple[Step, ...], ...]"


@value
class PointwiseHeuristic:
    """How a fusion without reductions runs."""

    groups: Groups
    patterns: Patterns
    width: int
    threads: int
    wide_index: bool
    scattered: Scattered = frozenset()

    def __str__(self) -> str:
        return f"pointwise(width={self.width}, threads={self.threads})"


@value
class ReductionHeuristic:
    """How a fusion with reductions runs.

    ``inner``: the reduced loops run along memory. ``fold_threads`` threads share one
    row and ``keep_threads`` rows (or packets of columns) share one block. ``steps``
    bounds how often a thread goes on along its row, where what is computed once is
    kept; 0 is the looped form. ``splits`` blocks share one row. A CPU adds up at most
    ``chunk`` elements before it adds their sum to the row's (0: all at once); across
    memory, where each lane adds up a column, it keeps what rounding takes away instead.
    ``scattered`` accesses go element by element where others go in packets.
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
    scattered: Scattered = frozenset()

    @property
    def is_persistent(self) -> bool:
        """Whether rows are kept between the reductions over them."""
        return self.steps > 0

    def __str__(self) -> str:
        form = f"kept in {self.steps} steps" if self.is_persistent else "looped"
        way = "inner" if self.inner else "outer"
        return (
            f"reduction({way}, {form}, width={self.width}, "
            f"threads={self.fold_threads}x{self.keep_threads}, splits={self.splits})"
        )


Heuristic: TypeAlias = PointwiseHeuristic | ReductionHeuristic


@node
class Scheduled:
    """A fusion, the space and nest it runs in, and how its tensors lie in memory."""

    fusion: Fusion
    space: Space
    nest: Nest
    strides: Mapping[TensorView, tuple[Scalar, ...]]
    heuristic: Heuristic
    target: Target

    @property
    def is_wide(self) -> bool:
        """Whether indices have 64 bits."""
        return self.heuristic.wide_index or self.target.kind == "cpu"


class Scheduler(Protocol):
    """Three functions and a name."""

    name: str

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Return why ``fusion`` cannot run this way, or None if it can."""
        ...

    def heuristic(self, fusion: Fusion, facts: Facts) -> Heuristic:
        """Choose, from the numbers of one call, what the schedule depends on."""
        ...

    def apply(self, fusion: Fusion, heuristic: Heuristic, target: Target) -> Scheduled:
        """Build the schedule; it depends on nothing but its arguments."""
        ...


__all__ = [
    "Heuristic",
    "PointwiseHeuristic",
    "ReductionHeuristic",
    "Rejection",
    "Scheduled",
    "Scheduler",
]
