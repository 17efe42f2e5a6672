# SPDX-License-Identifier: Apache-2.0
"""The same cores for everybody, and no turn beside threads that spin after another."""

from __future__ import annotations

import os
from time import sleep

REST = 0.01  # seconds; threads of OpenMP spin for a few milliseconds
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


def rest() -> None:
    """Wait until the threads of whoever had the last turn no longer spin."""
    sleep(REST)
