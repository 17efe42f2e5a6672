# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: what is launched while one is recorded, launched again as a whole.

The library whose arrays are used records, on a stream of its own, and keeps the memory
that its allocator gave meanwhile for the graph alone. Calls wait for those whose data
they need: see ``ordering``.
"""

# Libraries without types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

from nfuser.base.locks import ForkSafeLock
from nfuser.errors import BackendError
from nfuser.execution.device.cuda.ordering import by_data
from nfuser.execution.device.describe.libraries import Library

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_REMEDY = "to save host time elsewhere, bind the call: nfuser.fuse(f).bind(x, y, out=z)"


_lock = ForkSafeLock()
_recording: ContextVar[bool] = ContextVar("nfuser_recording", default=False)


def is_recording() -> bool:
    """Tell whether a graph is recorded here and now, by nfuser or by torch."""
    if _recording.get():
        return True
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    return torch.cuda.is_current_stream_capturing()


class CudaGraph:
    """Launches that were recorded; ``replay`` runs them on the current stream."""

    _all: ClassVar[WeakSet[CudaGraph]] = WeakSet()

    def __init__(self) -> None:
        self._launch: Callable[[], Any] | None = None
        self._keep: list[Any] = []
        with _lock:
            self._all.add(self)

    def replay(self) -> None:
        """Run again what was recorded, in the same memory."""
        if self._launch is None:
            message = "the graph is replayed before its capture ended"
            raise BackendError(message)
        self._launch()

    @contextmanager
    def recorded(self, library: Library) -> Generator[CudaGraph]:
        """Record what is launched inside a ``with`` statement."""
        with _lock:
            # To destroy a graph spoils what is recorded, and the name it had may be
            # that of this one: ``with capture() as graph`` in a loop.
            held = [*self._all]
        with RECORDERS[library](self):
            before = _recording.set(True)
            try:
                yield self
            finally:
                _recording.reset(before)
        held.clear()

    def finish(self, launch: Callable[[], Any], *keep: Any) -> None:
        """End the capture: ``launch`` replays, and needs what is kept."""
        self._launch = launch
        self._keep.extend(keep)


@contextmanager
def _record_torch(graph: CudaGraph) -> Generator[None]:
    torch = sys.modules["torch"]
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded), by_data(torch.cuda.current_stream().cuda_stream):
        yield
    graph.finish(recorded.replay, recorded)


@contextmanager
def _record_cupy(graph: CudaGraph) -> Generator[None]:
    cupy = sys.modules["cupy"]
    stream = cupy.cuda.Stream(non_blocking=True)
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc), stream:
        stream.begin_capture()
        try:
            with by_data(stream.ptr):
                yield
        except BaseException:
            stream.end_capture()
            raise
        recorded = stream.end_capture()
    recorded.upload(stream)
    graph.finish(recorded.launch, recorded, stream, pool)


RECORDERS = {Library.TORCH: _record_torch, Library.CUPY: _record_cupy}


def recording_library(given: str | None = None) -> Library:
    """Return the library that records: the one named, or the first that can."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    able = {
        "torch": torch is not None and torch.cuda.is_available(),
        "cupy": cupy is not None and cupy.cuda.is_available(),
    }
    if given is not None and given not in able:
        message = (
            f"CUDA graphs of {given} arrays cannot be captured: torch and cupy offer "
            f"what that takes; {_REMEDY}"
        )
        raise BackendError(message)
    wanted = [given] if given is not None else [*able]
    found = next((name for name in wanted if able[name]), None)
    if found is None:
        message = (
            "a CUDA graph needs a CUDA device and imported torch or cupy, whose arrays "
            f"the calls take; {_REMEDY}"
        )
        raise BackendError(message)
    return Library(found)
