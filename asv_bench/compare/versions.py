# SPDX-License-Identifier: Apache-2.0
"""What was measured, and on what."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import nfuser

PACKAGES = {
    "cuda": ("numba", "numba-cuda", "torch", "triton", "jax", "liger-kernel"),
    "cpu": ("numba", "numpy", "numexpr", "jax", "torch"),
    "dask": ("numba", "numpy", "dask", "distributed"),
    "accuracy": ("numba", "numpy", "scipy", "mpmath"),
}


def versions(kind: str = "cpu") -> str:
    """Return the device and the versions of what takes part, in one line.

    nfuser's own is that of the code that runs, which need not be installed.
    """
    parts = [
        _device(kind),
        f"Python {platform.python_version()}",
        f"nfuser {nfuser.__version__}",
    ]
    for package in PACKAGES[kind]:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"no {package}")
    return ", ".join(parts)


def _device(kind: str) -> str:
    if kind == "cuda":
        import torch

        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.machine()}"
