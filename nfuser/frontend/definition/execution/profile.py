# SPDX-License-Identifier: Apache-2.0
"""What one call of a definition took, by the clock."""

from __future__ import annotations

from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value
from nfuser.errors import ArgumentError
from nfuser.execution.device.cuda.streams import current_stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.frontend.explain.explanation import Explanation

_last = local()


@value
class KernelProfile:
    """One kernel of a call, or what the array library computed; bytes must move."""

    name: str
    scheduler: str
    input_bytes: int
    output_bytes: int


@value
class FusionProfile:
    """One call: its pieces, its bytes, and its time in milliseconds.

    ``compile_time_ms`` went by until all was made, ``kernel_time_ms`` from there until
    the last kernel was done, ``host_time_ms`` is both. Bandwidth is that of the bytes
    that the pieces must move, in 10**9 bytes a second.
    """

    kernel_profiles: tuple[KernelProfile, ...]
    compile_time_ms: float
    kernel_time_ms: float

    @property
    def segments(self) -> int:
        """The number of pieces."""
        return len(self.kernel_profiles)

    @property
    def host_time_ms(self) -> float:
        """The time of the whole call."""
        return self.compile_time_ms + self.kernel_time_ms

    @property
    def input_bytes(self) -> int:
        """What the pieces must read."""
        return sum(piece.input_bytes for piece in self.kernel_profiles)

    @property
    def output_bytes(self) -> int:
        """What the pieces write."""
        return sum(piece.output_bytes for piece in self.kernel_profiles)

    @property
    def effective_bandwidth_gbs(self) -> float:
        """The bytes over the time that the kernels took."""
        moved = self.input_bytes + self.output_bytes
        return moved / self.kernel_time_ms / 1e6 if self.kernel_time_ms else 0.0

    def __str__(self) -> str:
        first = (
            f"{self.segments} pieces: compiled in {self.compile_time_ms:.3f} ms, ran "
            f"in {self.kernel_time_ms:.3f} ms, {self.effective_bandwidth_gbs:.1f} GB/s"
        )
        rows = [
            f"  {p.name}: {p.scheduler}, reads {p.input_bytes:,} bytes, writes "
            f"{p.output_bytes:,}"
            for p in self.kernel_profiles
        ]
        return "\n".join([first, *rows])


def profiled(
    find: Callable[[], Plan],
    run: Callable[[], list[Any]],
    explain: Callable[[], Explanation],
) -> tuple[list[Any], FusionProfile]:
    """Return what ``run`` gives for the plan that ``find`` makes, and a profile."""
    begin = perf_counter()
    plan = find()
    _wait(plan.place)
    ready = perf_counter()
    outputs = run()
    _wait(plan.place)
    done = perf_counter()
    pieces = tuple(
        KernelProfile(p.name, p.schedule, p.traffic.reads, p.traffic.writes)
        for p in explain().pieces
        if p.is_launched
    )
    found = FusionProfile(pieces, 1e3 * (ready - begin), 1e3 * (done - ready))
    _last.profile = found
    return outputs, found


def _wait(place: Place) -> None:
    if place.device.is_cuda:
        from nfuser.execution.device.cuda.driver import synchronize  # noqa: PLC0415 (loads libcuda)

        synchronize(current_stream(place.library, place.device))


def get_fusion_profile() -> FusionProfile:
    """Return the profile of the last call of this thread that was profiled."""
    found: FusionProfile | None = getattr(_last, "profile", None)
    if found is None:
        message = "call fd.execute(inputs, profile=True) first: nothing was profiled"
        raise ArgumentError(message)
    return found
