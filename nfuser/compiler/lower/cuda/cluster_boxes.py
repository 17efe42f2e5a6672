# SPDX-License-Identifier: Apache-2.0
"""What blocks of a cluster send each other: words in boxes of the receiver's memory.

Boxes of two turns alternate. A block posts in a turn after all of its threads have met,
so after they have received what came in the turn before: who has received that finds
all boxes of two turns ago read. A block has received all that is posted to it when it
ends, so none is gone that another one posts to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.kernel.kernel_ir import (
    Array,
    Barrier,
    Memory,
    Number,
    Post,
    Receive,
    SetElement,
    Stmt,
    Value,
    guarded,
)

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.folds import fold


class ClusterBoxes:
    """The boxes of block ``block`` of a cluster of so many ``blocks``."""

    def __init__(
        self, values: Values, blocks: int, turn: Scalar, block: Scalar, thread: Scalar
    ) -> None:
        self.blocks = blocks
        self._values, self._thread = values, thread
        self._turn, self._block = turn, block
        self._arrays: list[Array] = []

    def post(self, states: dict[Reduce, fold.State]) -> dict[Reduce, list[Value]]:
        """Post ``states`` to all blocks; return what each lane receives of one.

        Every warp reads the boxes itself, and no barrier follows.
        """
        first, turn = self._turn % 2 * self.blocks, self._turn + 1
        lane = self._thread % self.blocks
        received: dict[Reduce, list[Value]] = {}
        posts: list[Stmt] = []
        for reduce, state in states.items():
            received[reduce] = []
            for own in state:
                words = 2 if own.dtype.itemsize == 8 else 1
                size = 2 * self.blocks * words
                boxes = self._values.array(DType.U64, size, Memory.SHARED)
                self._arrays.append(boxes)
                at = first + self._block
                posts.append(Post(boxes, at, own, self._thread, turn))
                received[reduce].append(Receive(boxes, first + lane, own.dtype, turn))
        own = guarded(less(self._thread, self.blocks), tuple(posts))
        self._values.emit_all(own)
        return received

    def emptied(self) -> tuple[Stmt, ...]:
        """Empty the boxes of all blocks before any of them posts."""
        empty = Number(0, DType.U64)
        stmts: list[Stmt] = []
        for boxes in self._arrays:
            own = (SetElement(boxes, self._thread, empty),)
            stmts += guarded(less(self._thread, boxes.size), own)
        return (*stmts, Barrier(of_cluster=True))
