# SPDX-License-Identifier: Apache-2.0
"""Rows of a CPU kernel that lie apart: each asks for the memory of one that follows.

A processor guesses what is read next from what lies beside it, within a page. Rows of a
part of an array, as chunks of its columns are, begin anew every few lines, and each
would wait for memory by itself: so a row asks for the first lines of another, a few
rows ahead. Past the last row that is memory which nobody reads; to ask for it is no
access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import minimum
from nfuser.compiler.lower.kernel.additions import Additions
from nfuser.compiler.lower.kernel.kernel_ir import BOUND_NAMES, Fetch, For, Load
from nfuser.compiler.lower.kernel.loop_edits import gathers
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Buffer, Kernel, Stmt

ROWS_AHEAD = 8
"""A row of 128 elements takes 20 to 100 ns, memory 100 to 300 ns to answer."""

MOST_LINES = 16
"""A kilobyte, after which the processor has guessed the rest of a row."""


def fetch_ahead(kernel: Kernel) -> Kernel:
    """Let rows that lie apart ask for the memory of rows that follow."""
    rows = [x for x, name in kernel.bound if name == BOUND_NAMES[Binding.PARALLEL]]
    if len(rows) != 1:
        return kernel
    made = Additions(kernel)
    found: dict[tuple[Buffer, Scalar], Scalar] = {}
    for loop in every(kernel.body):
        if isinstance(loop, For) and loop.lane is not None and not gathers(loop.body):
            _collect(loop, rows[0], found)
    begin: list[Stmt] = []
    line_bytes = kernel.scheduled.target.line_bytes
    for (buffer, first), stop in found.items():
        lane = line_bytes // buffer.dtype.itemsize
        # Short rows lie on lines with their neighbours.
        lines = made.loops.make(minimum(stop // lane, MOST_LINES))
        place = first + lines * lane
        begin.append(For(lines, lines.extent, (Fetch(buffer, place, 1),)))
    return made.to((*begin, *kernel.body) if begin else kernel.body)


def _collect(
    loop: For, row: LoopIndex, found: dict[tuple[Buffer, Scalar], Scalar]
) -> None:
    """Add what ``loop`` reads of rows apart: where one begins, a few rows ahead."""
    for load in every(loop.body):
        if not (isinstance(load, Load) and load.buffer.role == "in"):
            continue
        step = _step(load.index, loop.index, row)
        if step is not None:
            first = step * row + step * ROWS_AHEAD
            found.setdefault((load.buffer, first), loop.stop)


def _step(index: Scalar, lane: LoopIndex, row: LoopIndex) -> Scalar | None:
    """Return what lies between rows if each is read from its begin, side by side."""
    rest = index - lane
    match list(sc.terms_of(rest).items()):
        case [(product, 1)] if len(product) == 2 and row in product:
            (step,) = (x for x in product if x is not row)
            is_apart = isinstance(step, sc.Stride)
            return step if is_apart and lane not in scalar_walk.loops_in(rest) else None
        case _:
            return None
