# SPDX-License-Identifier: Apache-2.0
"""What tasks run: a stage on chunks, the assembly of windows, the combination of parts.

All of it is pickled with the graph. A worker keeps what it has built for a stage, and
finds kernels on disk that other workers compiled.
"""

# Chunks have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.config as config
from nfuser.base.locks import cached_property
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.errors import BackendError, UnsupportedError
from nfuser.execution.chunks.folds import Fold, carries, combined, ended
from nfuser.execution.chunks.tasks.built import Built, built_for
from nfuser.execution.chunks.tasks.threads import fit_threads
from nfuser.execution.runtime.call import as_read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion

_READABLE = (np.ndarray, np.generic, bool, int, float, complex)
FORM = 3  # of what is pickled
VERSION = f"{config.VERSION}, form {FORM}"


@value
class Output:
    """Which outputs of the stage make one result of the task.

    Of a fold, ``axes`` are the extent and the label of each axis that it folds.
    """

    count: int
    fold: Fold | None = None
    axes: tuple[tuple[int, int | None], ...] = ()


@value
class Sent:
    """A fusion that came in a message, which is read where it is needed."""

    name: str
    fusion: bytes


class Block:
    """A stage as a function of chunks: NumPy arrays in, an array or a tuple out.

    ``stage`` tells fusions apart, ``token`` all that a task depends on beside chunks.
    """

    def __init__(
        self,
        stage: str,
        token: str,
        fusion: Fusion | Sent,
        reads: Sequence[int],
        numbers: Mapping[int, Any],
        edges: Mapping[tuple[int, int], int],
        outputs: tuple[Output, ...],
    ) -> None:
        self.stage, self.token, self._given = stage, token, fusion
        self.reads = tuple(reads)
        self.numbers, self.edges, self.outputs = dict(numbers), dict(edges), outputs
        self.__name__ = fusion.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of as bytes, which are read after the version.

        The fusion is bytes within them: a worker that has built the stage reads none.
        """
        return _block, (VERSION, self._parts)

    @cached_property
    def _parts(self) -> bytes:
        given = self._given
        sent = (
            given if isinstance(given, Sent) else Sent(given.name, pickle.dumps(given))
        )
        parts = self.stage, self.token, sent, self.reads
        return pickle.dumps((*parts, self.numbers, self.edges, self.outputs))

    @cached_property
    def fusion(self) -> Fusion:
        """What the stage computes."""
        given = self._given
        return pickle.loads(given.fusion) if isinstance(given, Sent) else given

    def __dask_tokenize__(self) -> object:
        return "nfuser", self.token

    def __call__(self, *given: Any) -> Any:
        """Run the stage on chunks; the last argument says where they begin and end."""
        fit_threads()
        count = len(self.reads)
        arrays = [self._read(x) for x in given[:count]]
        where = given[count] if len(given) > count else ()
        if self._has_arrays_alone:
            inputs = arrays
        else:
            slots = dict(zip(self.reads, arrays, strict=True)) | self.numbers
            for (label, which), slot in self.edges.items():
                edge = where[label]
                slots[slot] = edge.stop - edge.start if which else edge.start
            inputs = [slots[k] for k in range(len(slots))]
        found = self.built.run(inputs)
        results: list[Any] = []
        at = 0
        for output in self.outputs:
            taken = found[at : at + output.count]
            at += output.count
            if output.fold is None:
                results.append(np.asarray(taken[0]))
            else:
                results.append(_placed(output, tuple(taken), where))
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def built(self) -> Built:
        """What this process has built for the stage, whatever its numbers are.

        Tasks that come from a scheduler are unpickled one by one, and do not stay.
        """
        return built_for(self.stage, lambda: self.fusion)

    @cached_property
    def _has_arrays_alone(self) -> bool:
        return self.reads == tuple(range(len(self.reads))) and not (
            self.numbers or self.edges
        )

    def _read(self, given: Any) -> Any:
        """Return a chunk as NumPy's; its kind is known when it is met."""
        chunk = given if type(given) is np.ndarray else _alone(given)
        if isinstance(chunk, _READABLE) and not isinstance(chunk, np.ma.MaskedArray):
            # Buffers that came over a network may lie where kernels cannot read.
            return as_read(np.asarray(chunk))
        kind = type(chunk)
        message = (
            f"{self.__name__}: pass x.map_blocks(f) with an f that makes NumPy arrays "
            "of all chunks (cupy.asnumpy, numpy.ma.filled): expected a chunk that is a "
            f"NumPy array, found {kind.__module__}.{kind.__qualname__}"
        )
        raise UnsupportedError(message)


class Unreadable:
    """Stands for a task of another version; a worker that ran it would be wrong."""

    def __init__(self, version: str, parts: bytes) -> None:
        self.version, self._parts = version, parts

    def __reduce__(self) -> tuple[Any, ...]:
        return _block, (self.version, self._parts)

    def __call__(self, *given: Any) -> Any:
        """Say what to do: a message that cannot be read would be sent again."""
        message = (
            "install the same nfuser on the client and on all workers: a task was made "
            f"by another version ({self.version}, here {VERSION})"
        )
        raise BackendError(message)


def _block(version: str, parts: bytes) -> Block | Unreadable:
    if version != VERSION:
        return Unreadable(version, parts)
    return Block(*pickle.loads(parts))


def _alone(chunk: Any) -> Any:
    """Return the only chunk of nested lists: along an axis that is not cut."""
    while isinstance(chunk, (list, tuple)):
        (chunk,) = chunk
    return chunk


def _placed(output: Output, part: tuple[Any, ...], where: Any) -> tuple[Any, ...]:
    """Return a part whose places count in the whole array."""
    assert output.fold is not None
    if output.fold.op not in (ReduceOp.ARGMAX, ReduceOp.ARGMIN):
        return part
    local = [
        n if label is None else where[label].stop - where[label].start
        for n, label in output.axes
    ]
    starts = [0 if label is None else where[label].start for _, label in output.axes]
    index = np.unravel_index(part[1], local)
    moved = tuple(i + s for i, s in zip(index, starts, strict=True))
    return part[0], np.ravel_multi_index(moved, [n for n, _ in output.axes])


@node
class Tail:
    """A pass that the last task of a tree runs: what it reads, and its keys.

    ``reads`` number the results of the tree. Each index of a key is one along the kept
    label at that place, or 0.
    """

    block: Block
    reads: tuple[int, ...]
    keys: tuple[int | None, ...]


class Combine:
    """Parts of chunks, in their order, as one part; or the results, if it is last.

    ``picks`` say which results of a task the parts are; a ``tail`` is a pass over the
    results, which is run where the last ones are.
    """

    def __init__(
        self,
        folds: Sequence[Fold],
        picks: Sequence[int | None] | None,
        tail: Tail | None = None,
        *,
        is_last: bool,
    ) -> None:
        self.folds, self.is_last, self.tail = tuple(folds), is_last, tail
        self.picks = tuple(range(len(folds)) if picks is None else picks)

    def __dask_tokenize__(self) -> object:
        own = None if self.tail is None else (self.tail.block.token, self.tail.reads)
        return "nfuser", repr((self.folds, self.picks, self.is_last, own))

    def __call__(self, parts: Sequence[Any]) -> Any:
        """Combine what several tasks gave."""
        found = [
            combined(fold, [p if at is None else p[at] for p in parts])
            for fold, at in zip(self.folds, self.picks, strict=True)
        ]
        if not self.is_last:
            return tuple(found)
        ends = [x for f, p in zip(self.folds, found, strict=True) for x in ended(f, p)]
        if self.tail is not None:
            return self.tail.block(*(ends[k] for k in self.tail.reads))
        return ends[0] if len(ends) == 1 else tuple(ends)


class Carry:
    """The totals of chunks in a row as what comes before each."""

    def __init__(self, fold: Fold, pick: int | None, axis: int) -> None:
        self.fold, self.pick, self.axis = fold, pick, axis

    def __call__(self, parts: Sequence[Any]) -> tuple[Any, ...]:
        """Return what comes before each chunk."""
        own = [p if self.pick is None else p[self.pick] for p in parts]
        return tuple(np.expand_dims(x, self.axis) for x in carries(self.fold, own))


def pick(found: Any, which: int) -> Any:
    """Return one of the results of a task."""
    while isinstance(found, list):
        (found,) = found
    return found[which]


def assemble(pieces: Sequence[Any], places: Sequence[Any], shape: Any) -> Any:
    """Return an array of pieces of chunks; ``places`` are their slices in it."""
    found = np.empty(shape, pieces[0].dtype)
    for piece, place in zip(pieces, places, strict=True):
        found[place] = piece
    return found


def part_of(chunk: Any, place: Any) -> Any:
    """Return the part of a chunk that another task needs, as an array of its own."""
    return np.ascontiguousarray(chunk[place])
