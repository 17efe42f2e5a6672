# SPDX-License-Identifier: Apache-2.0
"""What a CPU thread copies to its stack once, for many rows.

In ``((x[:, None] - y) ** 2).sum(-1)`` vectors run along the columns of the result.
Elements of ``y`` that they need lie apart, and would be loaded one by one. They are the
same for all rows, so a tile of ``y`` is laid down first as the columns run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.ir.base import node
from nfuser.compiler.schedule.facts.layout import runs_along

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.schedule.facts.facts import Access
    from nfuser.compiler.schedule.reduction.row_shape import RowShape

COLUMNS = (256, 128, 64)  # of a tile: as many as there is room for
LEAST = (2, 8)  # rows that share, and columns: fewer fill no vector
INSTEAD = (8, 32)  # the same, where vectors could run along short rows
PIECES = 64  # of the whole work, at least: enough for the threads
ROWS = (8, 128)  # of a piece: what is copied pays, and costs little beside them


@node
class Staged:
    """What is copied, and the rows that share it: ``rounds`` along a kept group."""

    accesses: tuple[Access, ...]
    across: int
    columns: int
    rounds: int


def staged_columns(
    shape: RowShape, room: int, least: tuple[int, int] = LEAST
) -> Staged | None:
    """Return what goes through the stack, of ``room`` elements; None if nothing gains.

    All that is folded has to lie along the columns then, or not vary with them. There
    are ``least`` rows and columns.
    """
    if shape.length < 2 or len(shape.kept) < 2:
        return None
    lanes = shape.lane_group()
    folded = [a for a in shape.found if _moves(a, shape.space.reduced)]
    crossing = [a for a in folded if not runs_along(a, lanes[-1])]
    across = _across(shape, crossing)
    needed = len(crossing) * shape.length
    columns = next((n for n in COLUMNS if n * needed <= room), 0)
    is_plain = all(_is_plain(a, shape) for a in crossing)
    if across < 0 or not (crossing and columns and is_plain):
        return None
    rows, width = _rows(shape, across), shape.count(tuple(lanes))
    if rows < least[0] or width < least[1]:
        return None
    pieces = shape.rows // (rows * width) * -(-width // columns)
    rounds = _rounds(rows, pieces)
    return Staged(tuple(crossing), across, columns, rounds)


def _moves(access: Access, loops: Sequence[LoopIndex]) -> bool:
    return any(access.steps.get(x, 0) or x in access.irregular for x in loops)


def _is_plain(access: Access, shape: RowShape) -> bool:
    """Tell whether ``access`` is a read that needs nothing but its address."""
    is_read = access in shape.found[len(shape.outputs) :]
    return is_read and not access.point.guard and not data_of(access.point)


def _rows(shape: RowShape, group: int) -> int:
    return shape.count(tuple(shape.space.loops[k] for k in shape.kept[group]))


def _across(shape: RowShape, crossing: Sequence[Access]) -> int:
    """Return the longest group of kept loops that ``crossing`` is the same along."""
    found = [
        group
        for group, numbers in enumerate(shape.kept[:-1])
        if not any(_moves(a, [shape.space.loops[k] for k in numbers]) for a in crossing)
    ]
    return max(found, key=lambda group: _rows(shape, group), default=-1)


def _rounds(rows: int, pieces: int) -> int:
    """Return how many of ``rows`` follow each other; alone they make ``pieces``."""
    least, most = ROWS
    wanted = min(max(rows * pieces // PIECES, least), most)
    parts = -(-rows // wanted)
    return -(-rows // parts)
