# SPDX-License-Identifier: Apache-2.0
"""Which stream waits for which, and when memory may be given to others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import nfuser.execution.host.ir.statements as st
from nfuser.execution.host.call.program import (
    AllocateSlot,
    CallPython,
    FreeSlot,
    ViewSlot,
    slots_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.execution.host.call.program import HostStmt, OrderStreams, Slot
    from nfuser.execution.host.run.device_arrays import CupyArrays, TorchArrays


class StreamWaits:
    """What one run of a program knows of the streams of a device.

    Each array belongs to the stream on which it was made. Before its memory may be
    given to others, that stream waits for all other streams that used it.
    """

    def __init__(self, library: CupyArrays | TorchArrays) -> None:
        self.library = library
        self.origin = library.current()
        self.streams: dict[object, Any] = {}  # what GetStream and Record gave
        self.home: dict[Slot, Any] = {}
        # Streams are compared, not hashed: not every library's can be.
        self.used: dict[Slot, list[Any]] = {}
        self.pending: list[Any] = []  # streams that the caller's must wait for
        self.begin: tuple[Any, Any] | None = None  # of a parallel loop: stream, event
        self.joined: list[Any] = []  # streams that this loop gave work to
        self.held: list[tuple[Slot, Any]] = []  # what goes when this loop ends

    # -- what a program says -------------------------------------------------

    def follow(self, order: OrderStreams) -> None:
        """Do what a statement says."""
        library, stmt = self.library, order.stmt
        match stmt:
            case st.GetStream(result):
                self.streams[result] = library.current()
            case st.SetStream(stream):
                library.use(self._found(stream, order.number))
            case st.Synchronize(stream):
                self._join(self._found(stream, order.number))
            case st.RecordEvent(result):
                self.streams[result] = library.record()
            case st.Wait(event):
                library.wait(self.streams[event])
            case st.ForLoop() if order.ends:
                self.begin = None
                for stream in self.joined:
                    self._join(stream)
                while self.held:
                    self.drop(*self.held.pop())
            case st.ForLoop():
                self.begin = library.current(), library.record()
                self.joined.clear()

    def _found(self, stream: st.HostStream, number: int | None) -> Any:
        return self.streams[stream] if number is None else self.library.side(number)

    def _join(self, stream: Any) -> None:
        """Let the current stream wait for ``stream``."""
        here = self.library.current()
        if self.begin is not None:
            caller, event = self.begin
            if here == caller:
                return
            if stream == caller:
                if here not in self.joined:
                    self.library.wait(event)
                    self.joined.append(here)
                return
        self.library.join(stream)
        if here == self.origin and stream in self.pending:
            self.pending.remove(stream)
        for slot, used in self.used.items():
            if self.home.get(slot) == here and stream in used:
                used.remove(stream)

    # -- memory --------------------------------------------------------------

    def note(self, stmt: HostStmt) -> None:
        """Remember on which stream a statement has made arrays, and used others."""
        made: Iterable[Slot] = ()
        match stmt:
            case AllocateSlot(slot):
                made = (slot,)
            case CallPython(results=results):
                made = results
            case ViewSlot(source, slot):
                if source in self.home:
                    self.home[slot] = self.home[source]
                return
            case FreeSlot():
                return
            case _:
                pass
        stream = self.library.current()
        self.home |= dict.fromkeys(made, stream)
        if slots := slots_of(stmt):
            self._use(slots, stream)

    def _use(self, slots: Iterable[Slot], stream: Any) -> None:
        if stream != self.origin and stream not in self.pending:
            self.pending.append(stream)
        for slot in slots:
            if self.home.get(slot, stream) != stream:
                used = self.used.setdefault(slot, [])
                if stream not in used:
                    used.append(stream)

    def drop(self, slot: Slot, array: Any) -> None:
        """Let the stream of an array wait for those that used it, then let go of it."""
        others, home = self.used.get(slot), self.home.get(slot)
        if others and self.begin is not None and home == self.begin[0]:
            self.held.append((slot, array))  # the loop waits for all of them at its end
            return
        if others:
            self._wait(home, others)
        self.used.pop(slot, None)
        self.home.pop(slot, None)

    def _wait(self, home: Any, others: Iterable[Any]) -> None:
        here = self.library.current()
        self.library.use(home)
        for stream in others:
            self.library.join(stream)
            if home == self.origin and stream in self.pending:
                self.pending.remove(stream)
        self.library.use(here)

    # -- the end -------------------------------------------------------------

    def leave(self) -> None:
        """Go back to the caller's stream, which waits for all others."""
        self.library.use(self.origin)
        for stream in self.pending:
            self.library.join(stream)
        self.pending.clear()

    def lend(self, slot: Slot, array: Any) -> Any:
        """Return an output, which the caller uses and lets go on its own stream."""
        if self.home.get(slot, self.origin) == self.origin:
            return array
        lent = self.library.lend(array)
        if lent is not array:
            self._use([slot], self.library.current())
        return lent

    def finish(self) -> None:
        """Leave, and wait for all that used what is let go now."""
        self.leave()
        self.begin = None
        for slot in list(self.home):
            self.drop(slot, None)
        self.held.clear()
        self.streams.clear()
