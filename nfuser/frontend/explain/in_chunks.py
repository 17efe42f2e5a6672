# SPDX-License-Identifier: Apache-2.0
"""What ``explain`` returns for arrays in chunks: tasks, bytes between them, reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value

if TYPE_CHECKING:
    from nfuser.execution.chunks.steps import Step


@value
class ChunkedExplanation:
    """The steps of a call on arrays in chunks, in order, and the chunks of results."""

    name: str
    steps: tuple[Step, ...]
    chunks: tuple[tuple[tuple[int, ...], ...], ...]

    @property
    def tasks(self) -> int:
        """The number of tasks beside those that make the arguments."""
        return sum(step.tasks for step in self.steps)

    def __str__(self) -> str:
        counts = [" x ".join(str(len(c)) for c in axes) or "1" for axes in self.chunks]
        head = f"{self.name}: {self.tasks} tasks, results in {', '.join(counts)} chunks"
        return "\n".join([head, *(f"  {step}" for step in self.steps)])

    __repr__ = __str__
