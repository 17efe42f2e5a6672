# SPDX-License-Identifier: Apache-2.0
"""Workers that are killed, or out of memory: ``python -m tests.chunks.faults 20``."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Generator

ROWS, COLUMNS, CHUNK = 20_000, 64, 250


@contextmanager
def cluster(workers: int = 2, **options: Any) -> Generator[Any]:
    """Start worker processes of one thread each, and give their client."""
    distributed: Any = import_module("distributed")
    form = {"processes": True, "dashboard_address": ":0", **options}
    form["scheduler_kwargs"] = {"allowed_failures": 3}
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, **form
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@nfuser.fuse
def standardised(x: Any) -> Any:
    """Two passes over the data, and a tree between them."""
    return (x - x.mean(0)) / x.std(0)


def slow_rows() -> Any:
    """Return an array whose chunks take long enough to kill somebody meanwhile."""
    da: Any = import_module("dask.array")

    def made(block_info: Any = None) -> Any:
        (start, _), _ = block_info[None]["array-location"]
        time.sleep(0.02)
        return np.random.default_rng(start).standard_normal((CHUNK, COLUMNS))

    chunks = (CHUNK,) * (ROWS // CHUNK), (COLUMNS,)
    meta = np.empty((0, 0))
    return da.map_blocks(made, chunks=chunks, dtype="f8", meta=meta)


def kill_one(client: Any) -> int:
    """Kill a worker with no time to say farewell; return the number of its process."""
    found = client.run(os.getpid)
    victim = int(next(iter(found.values())))
    os.kill(victim, signal.SIGKILL)
    return victim


def survives(client: Any, wanted: bytes, after: float) -> bool:
    """Tell whether a run gives ``wanted`` though a worker dies ``after`` seconds."""
    client.wait_for_workers(2)
    future = client.compute(standardised(slow_rows()))
    time.sleep(after)
    kill_one(client)
    return future.result(timeout=120).tobytes() == wanted


def _too_much(block: Any) -> Any:
    """Take more memory than a worker may have, and keep it until that is seen."""
    held = np.ones(block.size * 1_000_000)
    time.sleep(20)
    return block + held[:1]


def runs_out(client: Any) -> bool:
    """Tell whether a task that takes too much memory ends in an error of Dask's."""
    distributed: Any = import_module("distributed")
    da: Any = import_module("dask.array")
    x = da.ones((100, COLUMNS), chunks=(2, COLUMNS)).map_blocks(_too_much, dtype="f8")
    try:
        client.compute(standardised(x)).result(timeout=120)
    except (distributed.KilledWorker, MemoryError):
        return True
    return False


def main(runs: int) -> None:
    """Print how many of ``runs`` gave the bits that one process gives."""
    wanted = standardised(slow_rows()).compute(scheduler="sync").tobytes()
    right = 0
    for k in range(runs):
        with cluster() as client:  # a busy machine may fail to start a worker again
            right += survives(client, wanted, 0.1 + 0.06 * k)
    print(f"{right} of {runs} runs with a killed worker gave the same bits")
    with cluster(1, memory_limit="700MB") as client:
        told = runs_out(client)
    print("out of memory:", "an error of Dask's" if told else "no error")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
