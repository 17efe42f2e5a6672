# SPDX-License-Identifier: Apache-2.0
"""What a cluster of one and of two workers takes, beside what a model foretells.

``python -m asv_bench.chunks.scale`` measures what the same graph takes over chunks of
next to no bytes, which is what its tasks cost, and its kernels in one thread; then
column statistics and a stencil. ``--json FILE`` keeps what it prints.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any

import dask.array as da
import distributed
import numpy as np

import nfuser
from asv_bench.chunks.workloads import laplace
from asv_bench.compare.provenance import provenance

ROWS, COLUMNS, CHUNK = 1 << 17, 256, 1 << 12
SIDE, SIDE_OF_CHUNK = 6_000, 1_000
SMALL = 1_000
SHRUNK = 32
"""How many times as small the sides of chunks are of which a graph is timed alone."""


@nfuser.fuse
def statistics(x: Any) -> Any:
    return x.mean(0), x.var(0)


stencil = nfuser.fuse(laplace)
halved = nfuser.fuse(lambda x: x * 0.5 + 1)


def seconds_of(client: Any, made: Any) -> float:
    times: list[float] = []
    for _ in range(4):
        begin = perf_counter()
        # Results stay where they are: one array of all would be put together by one.
        kept = client.persist(made)
        distributed.wait(kept)
        times.append(perf_counter() - begin)
        keys = [future.key for future in distributed.futures_of(kept)]
        del kept
        while client.run_on_scheduler(_knows, keys=keys):
            sleep(0.01)
    return median(times[1:])


def _knows(dask_scheduler: Any, keys: list[Any]) -> bool:
    """Tell whether results of a call are there yet: the next would find them."""
    return any(key in dask_scheduler.tasks for key in keys)


def tasks_of(made: Any) -> int:
    parts = made if isinstance(made, tuple) else (made,)
    return len({key for part in parts for key in dict(part.dask)})


def held(client: Any, shape: Any, chunks: Any) -> Any:
    x = client.persist(da.random.random(shape, chunks=chunks).astype("f4"))
    distributed.wait(x)
    return x


def measure(client: Any, workers: int) -> list[dict[str, Any]]:
    """Return what was measured beside what the model says (seconds), and print it."""
    many = held(client, (SMALL * 10,), 10)
    cost = seconds_of(client, halved(many)) / SMALL  # whatever is longer of s and c / W
    few = COLUMNS // SHRUNK, SIDE_OF_CHUNK // SHRUNK
    shape = ROWS // SHRUNK, few[0]
    empty = {
        "statistics": held(client, shape, (CHUNK // SHRUNK, few[0])),
        "stencil": held(client, (SIDE // SHRUNK,) * 2, (few[1],) * 2),
    }
    rows = held(client, (ROWS, COLUMNS), (CHUNK, COLUMNS))
    plane = held(client, (SIDE, SIDE), (SIDE_OF_CHUNK, SIDE_OF_CHUNK))
    found: list[dict[str, Any]] = []
    for name, made, array in (
        ("statistics", statistics(rows), rows),
        ("stencil", stencil(plane), plane),
    ):
        kernel = _kernel_seconds(name)
        bytes_of = f"{array.nbytes / 1e6:.0f} MB in {array.npartitions} chunks"
        tasks = tasks_of(made) - array.npartitions
        run = statistics if name == "statistics" else stencil
        graph = seconds_of(client, run(empty[name]))
        least, most = max(graph, kernel / workers), graph + kernel / workers
        measured = seconds_of(client, made)
        values = {"graph alone": graph, "model, at least": least}
        values |= {"model, at most": most, "measured": measured}
        told = f"{name}, {bytes_of}, {tasks} tasks, workers: {workers}"
        found.append({"name": told, "task": cost, "values": values})
        told = f"model {least * 1e3:.0f} to {most * 1e3:.0f} ms"
        told = f"graph {graph * 1e3:.0f} ms, {told}, measured {measured * 1e3:.0f}"
        print(f"{workers} workers, {name}: {tasks} tasks, {told}", flush=True)
    print(f"{workers} workers: {cost * 1e3:.2f} ms a task", flush=True)
    return found


def _kernel_seconds(name: str) -> float:
    """Return the time of the kernels of a workload in one thread."""
    shape = (ROWS, COLUMNS) if name == "statistics" else (SIDE, SIDE)
    x = np.random.default_rng(0).random(shape, "f4")
    run = statistics if name == "statistics" else stencil
    times: list[float] = []
    with nfuser.config.override(num_threads=1):
        for _ in range(4):
            begin = perf_counter()
            run(x)
            times.append(perf_counter() - begin)
    return median(times[1:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="asv_bench.chunks.scale", description=__doc__)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for workers in (1, 2):
        form = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(n_workers=workers, **form) as cluster,
            distributed.Client(cluster) as client,
        ):
            rows += measure(client, workers)
    if options.json is not None:
        found = provenance("dask") | {"unit": "s", "rows": rows}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
