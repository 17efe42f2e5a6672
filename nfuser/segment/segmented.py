# SPDX-License-Identifier: Apache-2.0
"""A fusion cut into pieces that one kernel each can run, with the reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.ir.base import node
from nfuser.ir.text import Names, fusion_lines

if TYPE_CHECKING:
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.tensor import TensorView
    from nfuser.schedule.scheduled import Rejection, Scheduler


@node
class Segment:
    """One piece: a fusion over the parent's tensors, and who schedules it.

    ``inputs`` are the parent's tensors in the order of the fusion's arguments.
    """

    fusion: Fusion
    inputs: tuple[TensorView, ...]
    scheduler: Scheduler


@node
class Cut:
    """Why two pieces stayed apart."""

    producer: TensorView
    reasons: tuple[Rejection, ...]


@node
class Segmented:
    """Pieces in an order in which they can run."""

    fusion: Fusion
    segments: tuple[Segment, ...]
    cuts: tuple[Cut, ...]


def text(segmented: Segmented) -> str:
    """Render the pieces and the reasons for the cuts between them."""
    names = Names()
    fusion_lines(segmented.fusion, names)
    lines: list[str] = []
    for number, segment in enumerate(segmented.segments):
        lines.append(f"segment {number} by {segment.scheduler.name}:")
        lines += [f"  {line}" for line in fusion_lines(segment.fusion, names)]
    for cut in segmented.cuts:
        reasons = "; ".join(dict.fromkeys(str(r) for r in cut.reasons))
        lines.append(f"cut at {names.tensor(cut.producer)}: {reasons}")
    return "\n".join(lines) + "\n"
