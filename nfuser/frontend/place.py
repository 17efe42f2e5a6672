# SPDX-License-Identifier: Apache-2.0
"""Where a call runs: which backend, on which device, for which target."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nfuser.device.descriptor import CPU, Library
from nfuser.errors import ArgumentError
from nfuser.runtime.executor_cache import Place
from nfuser.schedule.facts import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.device.descriptor import Descriptor, Device
    from nfuser.frontend.arguments import Described

BACKENDS = ("cpu", "cuda", "interpret")


def find_place(
    described: Described, arrays: Mapping[int, Descriptor], backend: str | None
) -> Place:
    """Return the place of a call, from where its arrays are."""
    library, device = described.library, described.device
    if not described.arrays and arrays:
        first = next(iter(arrays.values()))
        library, device = first.library, first.device
    natural = "cuda" if device.kind == "cuda" else "cpu"
    chosen = backend or natural
    if chosen not in BACKENDS:
        message = f"backend must be one of {BACKENDS}, not {backend!r}"
        raise ArgumentError(message)
    if chosen == "cuda" and natural == "cpu" and not arrays:
        library, device = Library.NUMPY, CPU
    if {chosen, natural} == {"cpu", "cuda"}:
        message = f"backend={backend!r} was asked for, but the arrays are on {device}"
        raise ArgumentError(message)
    return Place(library, device, chosen, _target(chosen, device.index))


@cache
def _target(backend: str, index: int) -> Target:
    if backend == "cpu":
        return Target("cpu")
    if backend == "interpret":
        return Target("cuda")
    from nfuser.device.driver import attributes  # noqa: PLC0415 (loads libcuda)

    found = attributes(index)
    return Target("cuda", found.compute_capability, found.multiprocessors)


def place_of(library: Library, device: Device, backend: str) -> Place:
    """Return the place for arrays of ``library`` on ``device``."""
    return Place(library, device, backend, _target(backend, device.index))
