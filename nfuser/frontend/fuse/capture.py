# SPDX-License-Identifier: Apache-2.0
"""Several fused calls as one launch: ``nfuser.capture`` and ``f.graph``."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import ArgumentError
from nfuser.execution.device.cuda.graphs import CudaGraph, recording_library
from nfuser.execution.device.describe.libraries import library_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

R = TypeVar("R")


@contextmanager
def capture(library: str | None = None) -> Generator[CudaGraph]:
    """Record the calls inside a ``with`` statement as one CUDA graph.

    Each call must have run once before, with arguments of the same forms. What they
    return is computed by ``graph.replay()``, each time in the same memory; the inputs
    are read anew. ``library``, torch or cupy, is that of the arrays; by default torch
    where it is imported.
    """
    with CudaGraph().recorded(recording_library(library)) as graph:
        yield graph


class GraphedCall(Generic[R]):
    """One call as a CUDA graph; ``arguments`` and ``result`` stay where they are.

    Calling it replays the graph and returns ``result``, whose elements are then those
    of this call.
    """

    def __init__(self, function: Callable[..., R], args: tuple[Any, ...]) -> None:
        self._arguments = args
        flat, _ = trees.flatten(args)
        classes: list[type[Any]] = [type(x) for x in flat]
        found = {library_of(cls) for cls in classes} - {None}
        names = sorted(library.value for library in found if library is not None)
        if not names:
            message = "a graph of a call without arrays: there is nothing to replay"
            raise ArgumentError(message)
        library = recording_library(names[0])
        function(*args)  # what is compiled or loaded now need not be in the capture
        graph = CudaGraph()
        with graph.recorded(library):
            self._result = function(*args)
        self._graph = graph

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the graph reads."""
        return self._arguments

    @property
    def result(self) -> R:
        """What the graph writes."""
        return self._result

    def __call__(self) -> R:
        """Replay, and return the result."""
        self._graph.replay()
        return self._result
