# SPDX-License-Identifier: Apache-2.0
"""What is known of axes in chunks while a fusion is walked.

The axes of a tensor are cut into chunks, or free: whatever chunks are asked for can be
made. A *flexible* axis can be computed in other chunks than its own, because what is
read along it can be. Where neither holds, the tensor is *kept*: computed chunk by
chunk, after which it can be read in any chunks, as arguments can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.expr import Expr, results, sources
from nfuser.execution.chunks.axes.chunkings import Chunks, is_cut, met
from nfuser.execution.chunks.jobs import Job, KeepJob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Axes: TypeAlias = "list[tuple[Chunks | None, bool]]"
"""The chunks of each axis, None where it is free; and whether it is flexible."""


class Known:
    """The chunks and the level of each tensor so far, and the jobs between levels."""

    def __init__(
        self,
        fusion: Fusion,
        shapes: Mapping[TensorView, tuple[int, ...]],
        values: Mapping[Scalar, int],
    ) -> None:
        self.fusion, self.shapes, self.values = fusion, shapes, values
        self.axes: dict[TensorView, Axes] = {}
        self.level: dict[TensorView, int] = {}
        self.jobs: list[tuple[int, Job]] = []
        self.reasons: list[tuple[TensorView, str]] = []
        self.kept: set[TensorView] = set()

    def chunks(self, t: TensorView, axis: int) -> Chunks:
        """Return the chunks of an axis; a free one is in one piece."""
        found = self.axes[t][axis][0]
        return (self.shapes[t][axis],) if found is None else found

    # -- what a tensor is asked for --------------------------------------------

    def keep(self, t: TensorView) -> None:
        """Have ``t`` computed in its own chunks, so that others can be read of it."""
        if t not in self.kept:
            self.kept.add(t)
            self.jobs.append((self.level[t], KeepJob(t)))
            self.level[t] += 1
            self.axes[t] = [(c, True) for c, _ in self.axes[t]]

    def whole(self, expr: Expr, t: TensorView, axis: int) -> None:
        """Say that ``expr`` reads all of ``axis`` at once."""
        chunks, is_flexible = self.axes[t][axis]
        if not is_cut(chunks):
            return
        if not is_flexible:
            self.keep(t)
        name = type(expr).__name__.lower()
        at = results(expr)[0].source
        where = f" ({at})" if at is not None else ""
        self.reasons.append((t, f"{name} reads all of axis {axis} at once{where}"))

    def reason(self, t: TensorView) -> str:
        """Return why more of ``t`` is read at once than lies in one chunk, if known."""
        for asked, why in reversed(self.reasons):
            stack, met_before = [asked], {asked}
            while stack:
                if (one := stack.pop()) is t:
                    return why
                made = self.fusion.definition.get(one)
                more = sources(made) if made is not None else ()
                stack += [x for x in more if x not in met_before]
                met_before.update(more)
        return ""

    def join(
        self, size: int, read: Sequence[tuple[TensorView, int]]
    ) -> tuple[Chunks | None, bool]:
        """Return the chunks in which axes of ``read`` meet."""
        if size == 1:
            return (1,), True
        found = [(t, *self.axes[t][k]) for t, k in read if self.shapes[t][k] == size]
        rigid = [(t, c) for t, c, is_flexible in found if not is_flexible]
        flexible = [c for _, c, f in found if f and c is not None]
        cuts = [c for _, c in rigid if is_cut(c)]
        if rigid and not cuts and any(map(is_cut, flexible)):
            for t, _ in rigid:
                self.keep(t)
            rigid = []
        if rigid:
            chosen = cuts[0] if cuts else rigid[0][1]
            for t, c in rigid:
                if c != chosen:
                    self.keep(t)
            return chosen, False
        return (met(flexible) if flexible else None), True
