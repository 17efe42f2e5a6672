# SPDX-License-Identifier: Apache-2.0
"""Where a table is made: how arrays are built, judged and timed on the CPU or a GPU."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.compare import timing
from asv_bench.compare.workload import results

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asv_bench.compare.workload import Array, Workload

# Largest error of an element, over its size and the root mean square of all.
TOLERANCES = {2: 5e-3, 4: 1e-5, 8: 1e-11, 1: 0.05}  # by bytes of an element; int8: 1

MANY_CACHES = 4  # inputs of calls in a row are larger than so many times the L2


class Cpu:
    """NumPy arrays; the reference is the function itself, on float64."""

    name = "cpu"

    def __init__(self, seconds: float = 0.6) -> None:
        self.seconds = seconds

    def arrays(self, specs: Sequence[Array]) -> list[Any]:
        """Return seeded inputs."""
        return [spec.on_cpu(seed) for seed, spec in enumerate(specs)]

    def wide(self, array: Any) -> Any:
        """Return ``array`` of any library in float64, on this device."""
        if str(array.dtype) == "torch.bfloat16":
            array = array.double()
        held = np.asarray(array)
        return held if held.dtype.kind in "iub" else held.astype(np.float64)

    def reference(self, workload: Workload, arguments: Sequence[Any]) -> list[Any]:
        """Return what the workload should give."""
        return results(workload.function(*map(self.wide, arguments)))

    def copies(self, arguments: Sequence[Any], read: int) -> list[Sequence[Any]]:
        """Return the arguments of calls that take turns; each reads ``read`` bytes."""
        del read
        return [arguments]

    def seconds_of(
        self, calls: Mapping[str, Sequence[Callable[[], Any]]], waits: Mapping[str, Any]
    ) -> dict[str, float]:
        """Return the time of one of each sequence of calls, which take turns."""

        def waited(name: str) -> Callable[[], Any]:
            (call,), wait = calls[name], waits.get(name)
            return (lambda: wait(call())) if wait else call

        waiting = {name: waited(name) for name in calls}
        return timing.by_turns(waiting, self.seconds * len(calls))

    def copy_bandwidth(self) -> float:
        """Return the bytes a second of a copy."""
        return timing.cpu_copy_bandwidth()

    def release(self) -> None:
        """Give back what a workload left behind."""
        if (torch := sys.modules.get("torch")) is not None:
            # It stops compiling a function after eight forms of it, in silence.
            torch._dynamo.reset()


class Cuda(Cpu):
    """Torch tensors; the reference is the torch form, on float64.

    Before each call other memory is written, or, where calls are ``in_a_row``, the one
    before it has worked on a copy of the inputs.
    """

    name = "cuda"

    def __init__(self, *, in_a_row: bool = False) -> None:
        import torch

        torch.set_grad_enabled(False)
        super().__init__()
        self.torch = torch
        kind = {"dtype": torch.int8, "device": "cuda"}
        self.flush = None if in_a_row else torch.empty(timing.FLUSH_BYTES, **kind)

    def arrays(self, specs: Sequence[Array]) -> list[Any]:
        return [spec.on_gpu(self.torch, seed) for seed, spec in enumerate(specs)]

    def wide(self, array: Any) -> Any:
        torch = self.torch
        held = array if torch.is_tensor(array) else torch.from_dlpack(array)
        return held.double() if held.is_floating_point() else held

    def reference(self, workload: Workload, arguments: Sequence[Any]) -> list[Any]:
        return results(workload.torch(self.torch, *map(self.wide, arguments)))

    def copies(self, arguments: Sequence[Any], read: int) -> list[Sequence[Any]]:
        if self.flush is not None:
            return [arguments]
        cache = self.torch.cuda.get_device_properties(0).L2_cache_size
        more = -(-MANY_CACHES * cache // read) - 1
        return [arguments, *([a.clone() for a in arguments] for _ in range(more))]

    def seconds_of(
        self, calls: Mapping[str, Sequence[Callable[[], Any]]], waits: Mapping[str, Any]
    ) -> dict[str, float]:
        return {
            name: timing.queued_seconds(turns, waits[name])
            if waits.get(name)
            else timing.gpu_seconds(self.torch, turns, self.flush)
            for name, turns in calls.items()
        }

    def copy_bandwidth(self) -> float:
        return timing.gpu_copy_bandwidth(self.torch, self.flush)

    def release(self) -> None:
        super().release()
        self.torch.cuda.empty_cache()


def error_of(device: Cpu, got: Any, wanted: Sequence[Any]) -> tuple[float, bool]:
    """Return the largest relative error of all results, and whether all are right."""
    worst, is_right = 0.0, True
    for given, want in zip(results(got), wanted, strict=True):
        if tuple(given.shape) != tuple(want.shape):
            return float("inf"), False
        size = min(given.dtype.itemsize, want.dtype.itemsize)
        error = _largest(device.wide(given).reshape(-1), want.reshape(-1))
        worst = max(worst, error)
        is_right = is_right and error <= TOLERANCES[size]
    return worst, is_right


def _largest(given: Any, want: Any) -> float:
    given, want = given * 1.0, want * 1.0
    both_nan = (given != given) & (want != want)
    error = abs(given - want) / (abs(want) + (want * want).mean() ** 0.5)
    error[(given == want) | both_nan] = 0
    found = float(error.max())
    return found if found >= 0 else float("inf")
