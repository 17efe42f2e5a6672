# SPDX-License-Identifier: Apache-2.0
"""Threads of kernels in a process whose tasks somebody else schedules.

Kernels of one process share its helping threads. Beside other workers of the same
machine there must not be more of them than the worker was given.
"""

from __future__ import annotations

import multiprocessing
import sys
from contextlib import ExitStack
from functools import cache
from typing import Any

import nfuser.config as config
from nfuser.base.locks import at_fork
from nfuser.execution.device.cpu.affinity import available_threads


@cache
def fit_threads() -> None:
    """Let kernels of this process use the threads of its worker, and no more."""
    given = _threads_of_worker()
    if given is None or config.current().num_threads is not None:
        return
    fitted = min(given, available_threads())
    _settled.enter_context(config.override(num_threads=fitted))


def _threads_of_worker() -> int | None:
    """Return the threads of a worker that this process is; None if it is none."""
    workers: Any = sys.modules.get("distributed.worker")
    if workers is not None:
        here = list(workers.Worker._instances)
        if here:
            return sum(int(worker.state.nthreads) for worker in here)
    # Dask's pool of processes gives each of them one task at a time.
    return 1 if multiprocessing.parent_process() is not None else None


_settled = ExitStack()
at_fork(after_in_child=fit_threads.cache_clear)
