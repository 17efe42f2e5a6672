# SPDX-License-Identifier: Apache-2.0
"""What a call on arrays in chunks will do: steps, with their tasks and their bytes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import Expr, results

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.chunkings import Chunks
    from nfuser.execution.chunks.axes.places import Read


@value
class Step:
    """Tasks of one kind, and the bytes that they read of other tasks.

    A ``pass`` runs a compiled stage on each chunk. A ``tree`` combines what a pass
    gives of each chunk, and its last task may run a pass over that, its ``tail``; a
    ``carry`` hands totals from chunk to chunk, a ``halo`` joins chunks to the edges of
    their neighbours, a ``rechunk`` cuts anew; others are Dask's.
    """

    kind: str
    tasks: int
    bytes_read: int
    about: str = ""

    def __str__(self) -> str:
        about = f": {self.about}" if self.about else ""
        reads = _size(self.bytes_read)
        return f"{self.kind}, {_counted(self.tasks)}, reads {reads}{about}"


def _counted(tasks: int) -> str:
    return f"{tasks} task" if tasks == 1 else f"{tasks} tasks"


def _size(count: int) -> str:
    """Return a number of bytes in the unit that suits it.

    >>> _size(800), _size(25_000_000)
    ('800 B', '25.0 MB')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def step_of_pass(gives: str, grid: Sequence[Chunks], arrays: Sequence[Any]) -> Step:
    """Return the step of one compiled stage over a grid of tasks."""
    tasks = prod(len(chunks) for chunks in grid)
    return Step("pass", tasks, sum(int(a.nbytes) for a in arrays), gives)


def step_of_read(
    what: Read, array: Any, found: Any, reason: Callable[[TensorView], str]
) -> Step:
    """Return the step that makes of ``array`` the chunks that a stage reads."""
    is_halo = any(any(margin) for margin in what.margins)
    count = max(int(found.nbytes - array.nbytes), 0) if is_halo else int(found.nbytes)
    about = "shifted parts are read" if is_halo else reason(what.tensor)
    kind = "halo" if is_halo else "rechunk"
    return Step(kind, _added(found, [array]), count, about)


def step_of_move(expr: Expr, arrays: Sequence[Any], made: Any) -> Step:
    """Return the step of what Dask does of whole arrays."""
    at = results(expr)[0].source
    where = f" ({at})" if at is not None else ""
    name = type(expr).__name__.lower()
    count = sum(int(a.nbytes) for a in arrays)
    return Step(name, _added(made, arrays), count, f"it crosses chunks{where}")


def _added(made: Any, arrays: Sequence[Any]) -> int:
    """Return how many tasks ``made`` takes beside those of ``arrays``."""
    known = {name for a in arrays for name in a.dask.layers}
    return sum(len(made.dask.layers[n]) for n in made.dask.layers if n not in known)
