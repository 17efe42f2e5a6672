# SPDX-License-Identifier: Apache-2.0
"""The printed form of a schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.ir.text import Names, fusion_lines

if TYPE_CHECKING:
    from nfuser.schedule.scheduled import Scheduled


def text(scheduled: Scheduled, names: Names | None = None) -> str:
    """Render the fusion and the loops it runs in."""
    names = names or Names()
    lines = fusion_lines(scheduled.fusion, names)
    leaves = [
        f"{names.scalar(leaf.extent)} @{leaf.binding.value}"
        for leaf in scheduled.nest.leaves
    ]
    lines.append(f"schedule {scheduled.heuristic}")
    lines.append(f"  loops [{', '.join(leaves)}]")
    return "\n".join(lines) + "\n"
