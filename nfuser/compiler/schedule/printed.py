# SPDX-License-Identifier: Apache-2.0
"""The printed form of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.text import Names, fusion_lines
from nfuser.compiler.schedule.placement.placement import described
from nfuser.compiler.schedule.scheduled import Joined, Serial

if TYPE_CHECKING:
    from nfuser.compiler.schedule.nest import Nest
    from nfuser.compiler.schedule.scheduled import Schedule


def text(scheduled: Schedule, names: Names | None = None) -> str:
    """Render the fusion, the loops it runs in, and what is placed between them."""
    names = names or Names()
    lines = fusion_lines(scheduled.fusion, names)
    lines.append(f"schedule {scheduled.heuristic}")
    if isinstance(scheduled, Serial):
        return "\n".join(lines) + "\n"
    parts = scheduled.parts if isinstance(scheduled, Joined) else (scheduled,)
    for part in parts:
        lines.append(f"  loops [{_leaves(part.nest, names)}]")
        if part.turns is not None:
            lines.append(f"  each for {names.scalar(part.turns.index.extent)} turns")
        placed = described(part.placements, part.left_out, names.tensor)
        lines += [f"  {line}" for line in placed]
    return "\n".join(lines) + "\n"


def _leaves(nest: Nest, names: Names) -> str:
    return ", ".join(
        f"{names.scalar(leaf.extent)} @{leaf.binding.value}" for leaf in nest.leaves
    )
