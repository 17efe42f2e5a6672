# SPDX-License-Identifier: Apache-2.0
"""One workload: nfuser is checked and timed, then every peer."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from asv_bench.compare.devices import error_of
from asv_bench.compare.peers import NoFormError
from asv_bench.compare.workload import results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from asv_bench.compare.devices import Cpu
    from asv_bench.compare.peers import Bound
    from asv_bench.compare.workload import Workload

OURS = "nfuser"
MOST_ERROR = 0.05  # of a peer, which may round where it likes


@dataclass
class Row:
    """What was found for one workload; times are in seconds, by name of the peer."""

    name: str
    is_headline: bool
    necessary_bytes: int = 0
    fresh: dict[str, float] = field(default_factory=dict[str, float])
    reused: dict[str, float] = field(default_factory=dict[str, float])
    first_call: dict[str, float] = field(default_factory=dict[str, float])
    errors: dict[str, float] = field(default_factory=dict[str, float])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    kernels: int = 0
    compiled: dict[str, int] = field(default_factory=dict[str, int])
    is_right: bool = True

    def ratio(self, peers: Iterable[str], reused: bool = False) -> float | None:
        """Return how many times the time of nfuser the best of ``peers`` takes."""
        times = self.fresh | self.reused if reused else self.fresh
        best = min((times[p] for p in peers if p in times), default=None)
        return best / times[OURS] if best and OURS in times else None

    def share(
        self, copy: float, name: str = OURS, *, reused: bool = False
    ) -> float | None:
        """Return the bandwidth reached, over a copy's."""
        seconds = (self.reused if reused else self.fresh).get(name)
        return self.necessary_bytes / seconds / copy if seconds else None


def make_row(
    device: Cpu,
    workload: Workload,
    sizes: tuple[int, ...],
    peers: Mapping[str, Any],
    ours: Mapping[str, Any],
    is_timed: bool = True,
) -> Row:
    """Run one workload; ``ours`` tells how each of nfuser's columns is bound."""
    contest = _Contest(device, workload, sizes)
    for name, bind in ours.items():
        contest.enter_nfuser(name, bind)
    for name, bind in peers.items():
        contest.enter(name, bind)
    if is_timed:
        contest.time()
    row = contest.row
    del contest
    gc.collect()
    device.release()
    return row


class _Contest:
    def __init__(self, device: Cpu, workload: Workload, sizes: tuple[int, ...]) -> None:
        self.device, self.workload = device, workload
        name = workload.row_name(sizes)
        self.row = Row(name, device.name in workload.headline)
        specs = workload.inputs(*sizes)
        self.read = sum(spec.necessary_bytes for spec in specs)
        self.arguments = device.arrays(specs)
        self.wanted = device.reference(workload, self.arguments)
        self.bound: dict[str, Bound] = {}

    def enter_nfuser(self, name: str, ours: Callable[..., Any]) -> None:
        fused: list[Any] = []

        def bind(workload: Workload, arguments: Sequence[Any]) -> Bound:
            bound, function = ours(workload, arguments)
            fused.extend((function, function.cache_info().compiled))
            return bound

        self.enter(name, bind)
        if name in self.bound:
            function, before = fused
            kernels = len(function.kernels(*self.arguments))
            self.row.kernels = max(self.row.kernels, kernels)
            self.row.compiled[name] = function.cache_info().compiled - before
        elif name in self.row.errors:
            self.row.is_right = False

    def enter(self, name: str, bind: Callable[..., Bound]) -> None:
        """Let a peer run once; it stays in if its results are right."""
        row = self.row
        bound = self._attempt(name, partial(bind, self.workload, self.arguments))
        begin = perf_counter()
        outputs = (
            self._attempt(name, lambda: bound.on(self.arguments)()) if bound else None
        )
        row.first_call[name] = perf_counter() - begin
        if outputs is None:
            return
        judged = self._attempt(
            name, lambda: error_of(self.device, outputs, self.wanted)
        )
        if judged is None:
            return
        row.errors[name], is_right = judged
        is_right = is_right or row.errors[name] <= self.workload.loses
        if not name.startswith(OURS):
            is_right = row.errors[name] <= MOST_ERROR
        if not is_right:
            row.notes[name] = f"wrong: error {row.errors[name]:.1e}"
            return
        self.bound[name] = bound
        written = sum(x.nbytes for x in results(outputs))
        row.necessary_bytes = row.necessary_bytes or self.read + written

    def _attempt(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` gives; what it raises becomes a note."""
        try:
            return make()
        except NoFormError:
            pass
        except Exception as error:  # noqa: BLE001 (a peer may raise anything)
            lines = str(error).strip().splitlines() or [""]
            self.row.notes[name] = f"{type(error).__name__}: {lines[0][:120]}"
        return None

    def time(self) -> None:
        bound = self.bound
        waits = {name: b.wait for name, b in bound.items()}
        copies = self.device.copies(self.arguments, self.read)
        fresh = {name: [b.on(given) for given in copies] for name, b in bound.items()}
        reused = {name: [b.reused] for name, b in bound.items() if b.reused}
        self.row.fresh = self.device.seconds_of(fresh, waits)
        self.row.reused = self.device.seconds_of(reused, waits)
