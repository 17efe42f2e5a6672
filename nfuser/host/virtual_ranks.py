# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads of this process, for NumPy arrays."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from threading import Barrier, BrokenBarrierError, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.host.sharding import Sharding

FOLDS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


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
        self._given: list[Any] = [None] * size
        self._barrier = Barrier(size)

    def run(self, body: Callable[[Rank], Any]) -> list[Any]:
        """Return what ``body`` gives for each rank; the first error that a rank met."""
        results: list[Any] = [None] * self.size
        errors: list[BaseException] = []

        def work(rank: int) -> None:
            try:
                results[rank] = body(Rank(self, rank))
            except BaseException as error:  # noqa: BLE001 (raised below)
                errors.append(error)
                self._barrier.abort()

        threads = [Thread(target=work, args=(k,)) for k in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._barrier.reset()
        if errors:
            own = [e for e in errors if not _is_echo(e)]
            raise (own or errors)[0]
        return results

    def exchange(self, rank: int, array: Any) -> list[Any]:
        """Return what all ranks gave."""
        self._given[rank] = array.copy()  # its owner may write it at once
        self._barrier.wait()
        found = list(self._given)
        self._barrier.wait()
        return found


class Rank:
    """One rank's end (`nfuser.host.communicator.Communicator`)."""

    def __init__(self, ranks: VirtualRanks, rank: int) -> None:
        self.rank = rank
        self.size = ranks.size
        self._ranks = ranks

    def communicate(self, kind: str, array: Any, axes: tuple[int, ...]) -> Any:
        """Return this rank's result of the collective ``kind``."""
        counts = self._ranks.counts[self.rank]
        counts[kind] = counts.get(kind, 0) + 1
        given = self._ranks.exchange(self.rank, array)
        if kind == "allgather":
            return np.concatenate(given, axes[0])
        if kind == "all_to_all":
            new, old = axes
            return np.concatenate([self._part(x, new) for x in given], old)
        verb, _, fold = kind.rpartition("_")
        if fold not in FOLDS or verb not in ("allreduce", "reduce_scatter"):
            message = f"{kind} is no collective"
            raise ArgumentError(message)
        whole = FOLDS[fold].reduce(np.stack(given), axis=0, dtype=array.dtype)
        return self._part(whole, axes[0]) if axes else whole

    def _part(self, whole: Any, axis: int) -> Any:
        return np.split(whole, self.size, axis)[self.rank].copy()


def spread(array: Any, sharding: Sharding, ranks: int) -> list[Any]:
    """Return the part of each rank of a whole array."""
    if sharding.axis is None:
        return [array] * ranks
    return np.split(array, ranks, sharding.axis)


def whole(parts: Sequence[Any], sharding: Sharding) -> Any:
    """Return the array that ranks have parts of."""
    if sharding.partial:
        return FOLDS[sharding.partial].reduce(np.stack(parts), axis=0)
    return parts[0] if sharding.axis is None else np.concatenate(parts, sharding.axis)


def _is_echo(error: BaseException) -> bool:
    """Tell whether a rank failed only because another one did."""
    cause = error.__cause__ or error
    return isinstance(cause, BrokenBarrierError)
