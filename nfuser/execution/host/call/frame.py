# SPDX-License-Identifier: Apache-2.0
"""What one run of a program knows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.call.program import Slot
    from nfuser.execution.host.call.stream_order import StreamWaits
    from nfuser.execution.host.ir.statements import Statement
    from nfuser.execution.host.run.timeline import StatementNotes

NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Frame:
    """What one run of a program knows."""

    __slots__ = (
        *("arrays", "at", "communicator", "given", "notes", "numbers", "order"),
        *("scalars", "storage", "stream", "turns", "written"),
    )

    def __init__(
        self,
        arrays: dict[Slot, tuple[Any, int]],
        numbers: Mapping[int, Any] = NOTHING,
        scalars: Mapping[Scalar, int] = NOTHING,
        given: Mapping[Slot, Any] = NOTHING,
    ) -> None:
        self.arrays = arrays
        self.given = given
        self.numbers = numbers
        self.scalars = scalars
        self.stream = 0
        self.storage: dict[Slot, Any] = {}  # the interpreter's
        self.turns: dict[int, int] = {}  # of the loops around, by depth
        self.written = set(arrays)
        # Of a host program: the statement, the ranks, the streams, who takes notes.
        self.at: Statement | None = None
        self.communicator: object = None
        self.order: StreamWaits | None = None
        self.notes: StatementNotes | None = None

    def swap(self, first: Slot, second: Slot) -> None:
        """Let two arrays change places; what is read next is what was written."""
        arrays, storage = self.arrays, self.storage
        arrays[first], arrays[second] = arrays[second], arrays[first]
        kept = storage.pop(first, None), storage.pop(second, None)
        pairs = zip((second, first), kept, strict=True)
        storage.update((s, k) for s, k in pairs if k is not None)
        if (first in self.written) != (second in self.written):
            self.written ^= {first, second}

    def result(self, slot: Slot) -> Any:
        """Return an output, for the stream of the caller."""
        array, _ = self.arrays[slot]
        return array if self.order is None else self.order.lend(slot, array)

    def drop(self, slot: Slot) -> None:
        """Let go of an array, when those are done that use it."""
        found = self.arrays.pop(slot, None)
        if self.order is not None and found is not None:
            self.order.drop(slot, found[0])

    def clear(self) -> None:
        """Let go of everything."""
        if self.order is not None:
            self.order.finish()
        self.arrays.clear()
        self.storage.clear()
