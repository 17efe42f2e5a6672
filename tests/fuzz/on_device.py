# SPDX-License-Identifier: Apache-2.0
"""Programs that write, run on CuPy's arrays: what NumPy's hold then is copied back."""

# CuPy has no types.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from tests.fuzz.loaded import loaded

if TYPE_CHECKING:
    from collections.abc import Callable

BACKENDS = ("cpu", "interpret", "cuda")


def fused_for(
    backend: str | None, plain: Callable[..., Any], text: str, outside: Any = None
) -> Callable[..., Any]:
    """Return ``plain`` fused; for ``cuda``, to be called with NumPy's arrays too."""
    if backend == "cuda":
        return on_device(text, outside)
    return nfuser.fuse(plain, backend=backend)


def on_device(text: str, outside: Any = None) -> Callable[..., Any]:
    """Return a program run on the device, to be called with NumPy's arrays.

    Each array is copied there before a call and back after it, whether it returned or
    raised, and so is ``outside``, which the program knows as ``G``. An argument is
    returned where the device returned it.
    """
    cupy: Any = importlib.import_module("cupy")
    file = f"<on device {hash(text)}>"
    names: dict[str, Any] = {"np": np}
    if outside is not None:
        names["G"] = cupy.asarray(outside)
    with loaded(text, file, **names) as space:
        fused = nfuser.fuse(space["program"])

    def call(*given: Any) -> Any:
        arrays = [x for x in given if isinstance(x, np.ndarray)]
        held = [cupy.asarray(x) for x in arrays]
        moved = iter(held[:])
        if outside is not None:
            arrays, held = [*arrays, outside], [*held, names["G"]]
            names["G"][...] = cupy.asarray(outside)
        try:
            with loaded(text, file, **names):  # its lines, for a trace
                found = fused(
                    *(next(moved) if isinstance(x, np.ndarray) else x for x in given)
                )
        finally:
            for array, on_it in zip(arrays, held, strict=True):
                array[...] = on_it.get()
        return tuple(_returned(x, held, arrays) for x in found)

    return call


def _returned(x: Any, held: list[Any], arrays: list[Any]) -> Any:
    """Return the array that a result of the device is, or a copy of it."""
    for on_it, array in zip(held, arrays, strict=True):
        if x is on_it:
            return array
    return x.get() if hasattr(x, "get") else x
