# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, PyTorch and CuPy with the layout of one of NumPy."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np

from tests.definitions.writer import BF16

# Backend of the definition and library of the arrays, by name on the command line.
BACKENDS: dict[str, tuple[tuple[str | None, str], ...]] = {
    "cpu": (("cpu", "numpy"), ("cpu", "torch")),
    "interpret": (("interpret", "numpy"),),
    "cuda": ((None, "torch-cuda"), (None, "cupy")),
}


def _memory(array: Any) -> Any:
    """Return the elements that the strides of ``array`` walk over, none negative."""
    count = 1 + sum(
        (n - 1) * (s // array.itemsize)
        for n, s in zip(array.shape, array.strides, strict=True)
    )
    if not array.size:
        return np.zeros(1, array.dtype)
    return np.lib.stride_tricks.as_strided(array, (count,), (array.itemsize,)).copy()


def given_to(item: Any, library: str) -> Any:
    """Return an input as ``library`` has it, with memory of its own."""
    if not isinstance(item, np.ndarray):
        return item
    if library == "numpy":
        if any(s < 0 for s in item.strides):
            return item.copy()[::-1].copy()[::-1] if item.strides[0] < 0 else item
        memory = _memory(item)
        return np.lib.stride_tricks.as_strided(memory, item.shape, item.strides)
    steps = [s // item.itemsize for s in item.strides]
    if library == "cupy":
        import cupy

        flat = cupy.asarray(_memory(item))
        return cupy.lib.stride_tricks.as_strided(flat, item.shape, item.strides)
    import torch

    flat = torch.from_numpy(_plain(_memory(item)))
    if item.dtype == BF16:
        flat = flat.to(torch.bfloat16)
    where = "cuda" if library == "torch-cuda" else "cpu"
    return flat.to(where).as_strided(item.shape, steps)


def _plain(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype == BF16 else array


def to_numpy(found: Any) -> Any:
    """Return ``found`` as an array of NumPy."""
    if isinstance(found, np.ndarray | np.generic):
        return np.asarray(found)
    if hasattr(found, "get"):
        return found.get()
    held = found.detach().cpu()
    if str(held.dtype) == "torch.bfloat16":
        return held.float().numpy().astype(BF16)
    return held.numpy()


def strides_of(found: Any) -> tuple[int, ...]:
    """Return the strides, in elements."""
    if callable(getattr(found, "stride", None)):
        return tuple(found.stride())
    return tuple(s // found.itemsize for s in found.strides)
