# SPDX-License-Identifier: Apache-2.0
"""Ways to run a program: the product's backends, and NumPy standing in for them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from tests.fuzz.arrays import is_array
from tests.oracle import emulate, listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz.program import Program

    Run = Callable[..., list[Any]]

_BF16 = np.dtype(ml_dtypes.bfloat16)


def _listed(result: Any) -> list[Any]:
    return list(listed(result))


def _same(argument: Any) -> Any:
    return argument


@dataclass(frozen=True)
class Fused:
    """Calls a fused function; ``give`` and ``take`` carry arrays there and back."""

    function: Any
    give: Callable[[Any], Any] = _same
    take: Callable[[Any], Any] = _same

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs."""
        return [
            self.take(x) for x in _listed(self.function(*map(self.give, arguments)))
        ]

    def hits(self) -> int:
        """Return how many calls found their plan."""
        return self.function.cache_info().hits


def emulated(program: Program) -> Run:
    """Run with NumPy in the arithmetic that kernels have."""
    function = program.function(emulate.NAMESPACE)

    def run(*arguments: Any) -> list[Any]:
        given = [
            emulate.Emulated(a, a.dtype) if hasattr(a, "dtype") else a
            for a in arguments
        ]
        return [x.result() for x in _listed(function(*given))]

    return run


def cpu(program: Program) -> Run:
    """Run the fused function on NumPy arrays."""
    import nfuser
    import nfuser.numpy as xp

    return Fused(nfuser.fuse(program.function(xp)))


def interpret(program: Program) -> Run:
    """Run the emitted CUDA source in the interpreter."""
    import nfuser
    import nfuser.numpy as xp

    return Fused(nfuser.fuse(program.function(xp), backend="interpret"))


def traced(program: Program) -> Run:
    """Run what was traced with NumPy."""
    from tests.fuzz import stages

    return stages.traced(program)


def rewritten(program: Program) -> Run:
    """Run what the rewrites left with NumPy."""
    from tests.fuzz import stages

    return stages.rewritten(program)


def cuda(program: Program) -> Run:
    """Run the fused function on torch tensors on the device."""
    import nfuser
    import nfuser.numpy as xp

    return Fused(
        nfuser.fuse(program.function(xp), dialect="numpy"), _on_device, from_torch
    )


def _on_device(argument: Any) -> Any:
    return to_torch(argument) if is_array(argument) else argument


def to_torch(array: np.ndarray[Any, Any]) -> Any:
    """Return a CUDA tensor, strides as in ``array``; torch has no negative ones."""
    torch: Any = importlib.import_module("torch")

    if any(stride < 0 for stride in array.strides):
        array = array.copy()  # ascontiguousarray leaves odd strides of size-1 axes
    step = array.itemsize
    strides = tuple(s // step for s in array.strides)
    reach = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    reach = reach if array.size else 0
    flat = np.lib.stride_tricks.as_strided(array, (reach,), (step,))
    is_half = array.dtype == _BF16
    plain: Any = torch.from_numpy(np.array(flat.view(np.int16) if is_half else flat))
    moved = plain.to("cuda")
    moved = moved.view(torch.bfloat16) if is_half else moved
    return torch.as_strided(moved, array.shape, strides)


def from_torch(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor as a NumPy array."""
    torch: Any = importlib.import_module("torch")

    if not isinstance(tensor, torch.Tensor):  # of a call without any tensor
        return np.asarray(tensor)
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).cpu().numpy().view(_BF16)
    return tensor.cpu().numpy()


def chunked(program: Program) -> Run:
    """Run the fused function on Dask arrays in random chunks."""
    from tests.fuzz import chunks

    return chunks.chunked(program)


BACKENDS: dict[str, Callable[[Program], Run]] = {
    "emulate": emulated,
    "cpu": cpu,
    "interpret": interpret,
    "cuda": cuda,
    "chunks": chunked,
    "trace": traced,
    "rewrite": rewritten,
}
