# SPDX-License-Identifier: Apache-2.0
"""The same cores for everybody, and no threads that spin after their call."""

from __future__ import annotations

import os

THREADS = ("NFUSER", "NUMBA", "NUMEXPR", "OMP", "MKL", "OPENBLAS")


def pin(threads: int | None = None) -> None:
    """Give every library the same cores, before any of them is imported."""
    cores = sorted(os.sched_getaffinity(0))[:threads]
    os.sched_setaffinity(0, cores)
    for name in THREADS:
        os.environ[f"{name}_NUM_THREADS"] = str(len(cores))
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Threads that spin after a call would slow down whoever has the next turn.
    os.environ |= {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0"}
