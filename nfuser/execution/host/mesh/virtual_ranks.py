# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of this process, for NumPy arrays."""

from __future__ import annotations

from math import prod
from threading import Barrier, BrokenBarrierError, Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import ArgumentError
from nfuser.execution.host.ir.rules import fold_of
from nfuser.execution.host.mesh.sharding import Sharding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FOLDS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


_PATIENCE = 0.05  # seconds until it is asked again whether all wait in vain


class VirtualRanks:
    """``size`` ranks, each a thread; what NCCL does between devices, in one process.

    >>> ranks = VirtualRanks(2)
    >>> ranks.run(lambda r: r.communicate("allgather", np.full(1, r.rank), (0,)))
    [array([0, 1]), array([0, 1])]
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            message = f"expected at least 1 rank, found {size}"
            raise ArgumentError(message)
        self.size = size
        self.counts: list[dict[str, int]] = [{} for _ in range(size)]
        self._meetings: dict[tuple[int, ...], _Meeting] = {}
        self._lock = Lock()
        self._failed = False

    def run(self, body: Callable[[Rank], Any]) -> list[Any]:
        """Return what ``body`` gives for each rank; the first error that a rank met."""
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def work(rank: int) -> None:
            try:
                results[rank] = body(Rank(self, rank))
            except BaseException as error:  # noqa: BLE001 (raised below)
                errors.append(error)
                self._stop()

        threads = [Thread(target=work, args=(k,)) for k in range(self.size)]
        for thread in threads:
            thread.start()
        left = None
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(_PATIENCE)
            if left is None:
                left = self._left([not t.is_alive() for t in threads])
        self._meetings.clear()
        self._failed = False
        if errors:
            own = [e for e in errors if not _is_echo(e)]
            if left is not None and not own:
                message = f"rank {left} has ended, and others wait for it"
                raise ArgumentError(message) from errors[0]
            raise (own or errors)[0]
        return results

    def _left(self, ended: Sequence[bool]) -> int | None:
        """Return a rank that has ended and that others wait for; wake these."""
        with self._lock:
            meetings = [m for m in self._meetings.values() if m.barrier.n_waiting]
        for rank in (r for meeting in meetings for r in meeting.ranks if ended[r]):
            self._stop()
            return rank
        return None

    def meeting(self, ranks: tuple[int, ...]) -> _Meeting:
        """Return where ``ranks`` meet."""
        with self._lock:
            if self._failed:
                raise BrokenBarrierError
            if ranks not in self._meetings:
                self._meetings[ranks] = _Meeting(ranks)
            return self._meetings[ranks]

    def _stop(self) -> None:
        """Wake all that wait for a rank that has failed."""
        with self._lock:
            self._failed = True
            for meeting in self._meetings.values():
                meeting.barrier.abort()


class _Meeting:
    """Where some ranks exchange arrays, and nobody waits for others."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.barrier = Barrier(len(ranks))
        self.ranks = ranks
        self.given: dict[int, tuple[Any, Any]] = {}

    def exchange(self, rank: int, what: tuple[Any, ...], array: Any) -> list[Any]:
        """Return what all ranks gave, in their order."""
        self.given[rank] = what, array.copy()  # its owner may write it at once
        self.barrier.wait()
        found = [self.given[k] for k in self.ranks]
        self.barrier.wait()
        if any(other != what for other, _ in found):
            message = f"ranks disagree: {sorted({str(w) for w, _ in found})}"
            raise ArgumentError(message)
        return [array for _, array in found]


class Rank:
    """One rank's end (`nfuser.execution.host.mesh.communicator.Communicator`)."""

    def __init__(self, ranks: VirtualRanks, rank: int) -> None:
        self.rank = rank
        self.size = ranks.size
        self._ranks = ranks

    def communicate(
        self,
        kind: str,
        array: Any,
        axes: tuple[int, ...] = (),
        ends: tuple[int, ...] = (),
        ranks: tuple[int, ...] | None = None,
    ) -> Any:
        """Return this rank's result of the exchange ``kind``."""
        counts = self._ranks.counts[self.rank]
        counts[kind] = counts.get(kind, 0) + 1
        group = tuple(range(self.size)) if ranks is None else ranks
        place = group.index(self.rank)
        if kind == "send_receive":
            return self._sent(array, ends, group, place)
        # Parts are equal: those of others tell nobody where they end.
        what = kind, axes, ends, array.shape, str(array.dtype)
        given = self._ranks.meeting(group).exchange(self.rank, what, array)
        if kind == "all_to_all":
            new, old = axes
            return np.concatenate([_part(x, new, group, place) for x in given], old)
        whole = self._whole(kind, axes, ends, given)
        if kind == "scatter" or kind.startswith("reduce_scatter_"):
            return _part(whole, axes[0], group, place)
        is_for_me = kind in ("broadcast", "scatter") or not ends or ends[0] == place
        return whole if is_for_me else _nothing(whole)

    def _whole(
        self,
        kind: str,
        axes: tuple[int, ...],
        ends: tuple[int, ...],
        given: list[Any],
    ) -> Any:
        """Return the array that there is before it is handed out."""
        if kind in ("allgather", "gather"):
            return np.concatenate(given, axes[0])
        if kind in ("broadcast", "scatter"):
            return given[ends[0]].copy()  # each rank may let go of its own
        if not (fold := fold_of(kind)):
            message = f"{kind} is no exchange between ranks"
            raise ArgumentError(message)
        return FOLDS[fold].reduce(np.stack(given), axis=0, dtype=given[0].dtype)

    def _sent(
        self, array: Any, ends: tuple[int, ...], group: tuple[int, ...], place: int
    ) -> Any:
        """Let two ranks meet; no other one waits for them."""
        if place not in ends or ends[0] == ends[1]:
            return _nothing(array) if place not in ends else array.copy()
        two = group[ends[0]], group[ends[1]]
        meeting = self._ranks.meeting(two)
        given = meeting.exchange(self.rank, ("send_receive", ends), array)
        return given[0] if place == ends[1] else _nothing(array)


def _part(whole: Any, axis: int, group: tuple[int, ...], place: int) -> Any:
    return np.split(whole, len(group), axis)[place].copy()


def _nothing(like: Any) -> Any:
    """Return what a rank has that gets nothing; where it is read, results show it."""
    made = np.zeros_like(like)
    if made.dtype.kind in "fc":
        made.fill(np.nan)
    return made


def spread(
    array: Any, layout: Sharding | Sequence[Sharding], mesh: int | Sequence[int]
) -> list[Any]:
    """Return the part of each rank of a whole array."""
    sizes, layouts = _sized(mesh, layout)
    parts = [array]
    for size, sharding in zip(sizes, layouts, strict=True):
        parts = [x for part in parts for x in _split(part, sharding, size)]
    return parts


def _split(array: Any, sharding: Sharding, size: int) -> list[Any]:
    if sharding.owner is not None:
        return [array if k == sharding.owner else _nothing(array) for k in range(size)]
    if sharding.partial in ("sum", "prod"):  # the first rank has all, others nothing
        nothing = np.full_like(array, FOLDS[sharding.partial].identity)
        return [array, *[nothing] * (size - 1)]
    if sharding.axis is None:
        return [array] * size
    return np.split(array, size, sharding.axis)


def whole(
    parts: Sequence[Any],
    layout: Sharding | Sequence[Sharding],
    mesh: int | Sequence[int] | None = None,
) -> Any:
    """Return the array that ranks have parts of."""
    sizes, layouts = _sized(len(parts) if mesh is None else mesh, layout)
    if not sizes:
        return parts[0]
    inner = prod(sizes[1:])
    rest = [
        whole(parts[k * inner : (k + 1) * inner], layouts[1:], sizes[1:])
        for k in range(sizes[0])
    ]
    sharding = layouts[0]
    if sharding.partial:
        return FOLDS[sharding.partial].reduce(np.stack(rest), axis=0)
    if sharding.axis is not None:
        return np.concatenate(rest, sharding.axis)
    return rest[sharding.owner or 0]


def _sized(
    mesh: int | Sequence[int], layout: Sharding | Sequence[Sharding]
) -> tuple[tuple[int, ...], tuple[Sharding, ...]]:
    sizes = (mesh,) if isinstance(mesh, int) else tuple(mesh)
    return sizes, (layout,) if isinstance(layout, Sharding) else tuple(layout)


def _is_echo(error: BaseException) -> bool:
    """Tell whether a rank failed only because another one did."""
    cause = error.__cause__ or error
    return isinstance(cause, BrokenBarrierError)
