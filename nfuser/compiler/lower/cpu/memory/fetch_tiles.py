# SPDX-License-Identifier: Apache-2.0
"""Tiles of a CPU kernel: while one is worked on, the memory of the next is asked for.

The rows of a tile lie apart, pages often, and are too short for a processor to guess
what follows: each would be waited for. So a turn of a tile's rows asks for those lines
of the next tile that the same turn will read and write. Past the last tile that is
memory which nobody reads; to ask for it is no access.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.kernel.additions import Additions, each_loop
from nfuser.compiler.lower.kernel.kernel_ir import (
    BOUND_NAMES,
    Fetch,
    For,
    Load,
    Store,
)
from nfuser.compiler.lower.kernel.walk import every
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.lower.kernel.kernel_ir import Buffer, Kernel, Stmt


def fetch_tiles(kernel: Kernel) -> Kernel:
    """Let the rows of a tile ask for the memory of the tile that follows."""
    numbers = [x for x, name in kernel.bound if name == BOUND_NAMES[Binding.PARALLEL]]
    if len(numbers) != 1:
        return kernel
    made = Additions(kernel)

    def ask(rows: For) -> tuple[Stmt, ...] | None:
        match rows.body:
            case (For() as row,) if _is_tile(rows) and _is_tile(row):
                asked = tuple(_lines(row, rows.index, numbers[0], made))
                return (replace(rows, body=(*asked, row)),) if asked else None
            case _:
                return None

    return made.to(each_loop(kernel.body, ask))


def _is_tile(loop: For) -> bool:
    """Tell whether a tile of a known size has the loop, which ends where that does."""
    return (
        isinstance(loop.index.extent, sc.Const) and loop.stop is not loop.index.extent
    )


def _lines(
    row: For, rows: LoopIndex, number: LoopIndex, made: Additions
) -> Iterator[Stmt]:
    """Yield what asks for the lines of the next tile that ``row`` will come to."""
    asked: set[tuple[Buffer, Scalar]] = set()
    for access in every(row.body):
        if not isinstance(access, Load | Store):
            continue
        buffer, begin = access.buffer, access.index - row.index
        around = scalar_walk.loops_in(begin)
        if row.index in around or rows not in around or (buffer, begin) in asked:
            continue
        asked.add((buffer, begin))
        (next_one,) = scalar_walk.substitute([begin], {number: number + 1})
        lane = made.kernel.scheduled.target.line_bytes // buffer.dtype.itemsize
        lines = made.loops.make(row.index.extent // lane)
        place = next_one + lines * lane
        yield For(lines, lines.extent, (Fetch(buffer, place, 2),))
