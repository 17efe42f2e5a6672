# SPDX-License-Identifier: Apache-2.0
"""What was measured, and on what."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = {
    "cuda": ("nfuser", "numba", "numba-cuda", "torch", "triton", "jax", "liger-kernel"),
    "cpu": ("nfuser", "numba", "numpy", "numexpr", "jax", "torch"),
}


def versions(backend: str) -> str:
    """Return the device and the versions of what is installed, in one line."""
    parts = [_device(backend), f"Python {platform.python_version()}"]
    for package in PACKAGES[backend]:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"no {package}")
    return ", ".join(parts)


def _device(backend: str) -> str:
    if backend == "cuda":
        import torch

        return torch.cuda.get_device_name()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {platform.machine()}"
