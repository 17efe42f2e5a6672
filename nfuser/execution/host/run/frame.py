# SPDX-License-Identifier: Apache-2.0
"""What one run of a host program knows: arrays, integers, streams, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.host.mesh.communicator import Communicator
    from nfuser.execution.host.run.arrays import Arrays
    from nfuser.execution.host.run.timeline import TimelineNotes

    Read = Callable[["RunFrame"], int]


class RunFrame:
    """The state of one run.

    On a device each array belongs to the stream on which it was made. Before its memory
    may be given to others, that stream waits for all other streams that used it.
    """

    __slots__ = (
        "arrays",
        "begin",
        "communicator",
        "home",
        "inputs_meet",
        "is_serial",
        "joined",
        "library",
        "made",
        "origin",
        "peak",
        "pending",
        "size",
        "streams",
        "tracer",
        "used",
        "values",
    )

    def __init__(self, library: Arrays, communicator: Communicator | None) -> None:
        self.arrays: dict[TensorView, Any] = {}
        self.values: dict[Scalar, int] = {}
        self.library = library
        self.communicator = communicator
        self.origin = library.current()
        self.streams: dict[object, Any] = {}  # what GetStream and Record gave
        self.home: dict[TensorView, Any] = {}
        # Streams are compared, not hashed: not every library's can be.
        self.used: dict[TensorView, list[Any]] = {}
        self.pending: list[Any] = []  # streams that the caller's must wait for
        self.made: dict[TensorView, int] = {}  # bytes of what this run allocated
        self.begin: tuple[Any, Any] | None = None  # of a parallel loop: stream, event
        self.joined: list[Any] = []  # streams that this loop gave work to
        self.size = self.peak = 0
        self.inputs_meet: bool | None = None  # whether two overlap, once asked
        self.is_serial = False  # whether all is done on the caller's stream
        self.tracer: TimelineNotes | None = None

    # -- memory --------------------------------------------------------------

    def hold(self, tensor: TensorView, array: Any) -> None:
        """Keep an array that this run made."""
        self.arrays[tensor] = array
        self.made[tensor] = array.nbytes
        self.size += array.nbytes
        self.peak = max(self.peak, self.size)
        if self.library.device.is_cuda:
            self.home[tensor] = self.library.current()

    def drop(self, tensor: TensorView) -> Any:
        """Let go of an array; return it."""
        array = self.arrays.pop(tensor, None)
        self.size -= self.made.pop(tensor, 0)
        others = self.used.pop(tensor, None)
        home = self.home.pop(tensor, None)
        if others and home is not None:
            self._wait(home, others)
        return array

    def clear(self) -> None:
        """Let go of everything."""
        for tensor in list(self.arrays):
            self.drop(tensor)
        self.streams.clear()

    # -- streams -------------------------------------------------------------

    def note(self, owners: Iterable[TensorView]) -> None:
        """Remember on which stream arrays were used, where it is not their own."""
        stream = self.library.current()
        if stream != self.origin and stream not in self.pending:
            self.pending.append(stream)
        for tensor in owners:
            if self.home.get(tensor, stream) != stream:
                used = self.used.setdefault(tensor, [])
                if stream not in used:
                    used.append(stream)

    def enter(self) -> None:
        """Begin a parallel loop on the current stream."""
        self.begin = self.library.current(), self.library.record()
        self.joined.clear()

    def finish(self) -> None:
        """End a parallel loop: its stream waits for all that were given work."""
        self.begin = None
        for stream in self.joined:
            self.join(stream)

    def join(self, stream: Any) -> None:
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
        for tensor, used in self.used.items():
            if self.home.get(tensor) == here and stream in used:
                used.remove(stream)

    def _wait(self, home: Any, others: Iterable[Any]) -> None:
        here = self.library.current()
        self.library.use(home)
        for stream in others:
            self.library.join(stream)
        self.library.use(here)

    def leave(self) -> None:
        """Go back to the caller's stream, which waits for all others."""
        self.library.use(self.origin)
        for stream in self.pending:
            self.library.join(stream)
        self.pending.clear()


def reader(x: Scalar) -> Read:
    """Return a function that evaluates ``x`` in a frame."""
    if isinstance(x, Const):
        value = x.value
        return lambda frame: value
    if not scalar_walk.children(x):
        return lambda frame: frame.values[x]
    return lambda frame: scalar_walk.evaluate(x, frame.values)


def shape_reader(shape: Sequence[Scalar]) -> Callable[[RunFrame], tuple[int, ...]]:
    """Return a function that evaluates ``shape`` in a frame."""
    if all(isinstance(x, Const) for x in shape):
        known = tuple(x.value for x in shape if isinstance(x, Const))
        return lambda frame: known
    readers = [reader(x) for x in shape]
    return lambda frame: tuple([read(frame) for read in readers])
