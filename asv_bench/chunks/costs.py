# SPDX-License-Identifier: Apache-2.0
"""What a cluster takes for a call, a task, what a task reads, and a byte: measured.

The scheduler of a local cluster runs in the process of its client, so what both take is
one number, of processor time. Each number is the least of several turns: whoever else
is on the machine adds to it, and takes nothing away.
"""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time, sleep, thread_time, time
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import distributed
import numpy as np
from dask._task_spec import Alias, List, Task, TaskRef
from dask.highlevelgraph import HighLevelGraph

import nfuser
from asv_bench.chunks.workloads import laplace

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 6
LIGHT, WIDE, READ, DEPTH = 600, 150, 16, 40
LATE = 0.002
BYTES = 1 << 26  # more than caches hold
FETCHED = 1 << 24

stencil = nfuser.fuse(laplace)


@nfuser.fuse
def statistics(x: Any) -> Any:
    return x.mean(0), x.var(0)


@dataclass(frozen=True)
class Costs:
    """Seconds of one cluster.

    ``call`` is how long a call of one task takes, ``start`` and ``start_there`` are the
    processor time in it that belongs to no task, of the scheduler and of workers.
    ``task`` and ``read`` (of something by a task) are those of the scheduler and the
    client, of which a task has ``ahead`` before the first one of its graph runs;
    ``task_there`` and ``read_there`` are those of a worker. A ``step`` is a task that
    waits for the one before it, a ``fetch`` is from another worker, and ``copy`` is of
    a byte, while all workers copy.
    """

    call: float
    start: float
    start_there: float
    task: float
    read: float
    ahead: float
    task_there: float
    read_there: float
    step: float
    fetch: float
    fetched_byte: float
    copy: float


@dataclass(frozen=True)
class Graph:
    """How many tasks a call has, what they read, and how many follow one another."""

    tasks: int
    reads: int
    depth: int


def graph_of(made: Any) -> Graph:
    """Return the graph of a call as the scheduler sees it."""
    arrays = dask.optimize(*(made if isinstance(made, tuple) else (made,)))
    nodes = {k: t for a in arrays for k, t in dict(a.dask).items()}
    tasks = {k: t for k, t in nodes.items() if isinstance(t, Task)}
    depth: dict[Any, int] = {}

    def target(key: Any) -> Any:
        while isinstance(node := nodes.get(key), Alias):
            (key,) = node.dependencies
        return key

    def height(key: Any) -> int:
        key = target(key)
        if key not in tasks:
            return 0
        if key not in depth:
            below = map(height, tasks[key].dependencies)
            depth[key] = 1 + max(below, default=0)
        return depth[key]

    reads = sum(len(t.dependencies) for t in tasks.values())
    return Graph(len(tasks), reads, max(map(height, tasks)))


def seconds_of(client: Any, made: Any) -> list[float]:
    """Return how long a call takes whose results stay where they are.

    It is elapsed seconds, and those of processors: here, and in workers.
    """
    rows = [_run(client, made) for _ in range(TURNS)]
    return [min(column) for column in zip(*rows[1:], strict=True)]


def _run(client: Any, made: Any) -> tuple[float, float, float]:
    """Return elapsed seconds, and those of processors: here, and in workers."""
    there = sum(client.run(process_time).values())
    begin, start = perf_counter(), process_time()
    kept = client.persist(made)
    distributed.wait(kept)
    elapsed, here = perf_counter() - begin, process_time() - start
    there = sum(client.run(process_time).values()) - there
    keys = [future.key for future in distributed.futures_of(kept)]
    del kept
    while client.run_on_scheduler(_knows, keys=keys):
        sleep(0.01)
    return elapsed, here, there


def _knows(dask_scheduler: Any, keys: list[Any]) -> bool:
    """Tell whether results of a call are there yet: the next would find them."""
    return any(key in dask_scheduler.tasks for key in keys)


def held(client: Any, shape: Any, chunks: Any) -> Any:
    """Return an array whose chunks workers hold."""
    x = client.persist(da.random.random(shape, chunks=chunks).astype("f4"))
    distributed.wait(x)
    return x


def costs_of(client: Any) -> Costs:
    """Measure a cluster: graphs of chunks of no size, a chain, and a fetch.

    One of the graphs is a task; tasks of another read one chunk each, of a third many.
    """
    one = held(client, (10,), 10)
    many = held(client, (LIGHT * 10,), 10)
    graphs = _narrow(one), _narrow(many), _wide(many)
    rows = [(graph_of(made), *seconds_of(client, made)) for made in graphs]
    counts = [(1, graph.tasks, graph.reads) for graph, *_ in rows]
    call = rows[0][1]
    start, task, read = np.linalg.solve(counts, [here for *_, here, _ in rows])
    start_there, task_there, read_there = np.linalg.solve(
        counts, [there for *_, there in rows]
    )
    fetch, byte = _fetch(client)
    first, later = (_first_begins(client, x) for x in (one, many))
    ahead = max(later - first, 0) / LIGHT
    copy = seconds_a_chunk(client, np.copy, (1 << 10, 1 << 10)) / (4 << 20)
    return Costs(
        call,
        *map(float, (start, start_there, task, read, ahead, task_there, read_there)),
        _step(client, call),
        fetch,
        byte,
        copy,
    )


def _begun(x: Any) -> Any:
    """Say when the task began, and take as long as those that are measured."""
    begun = time()
    sleep(LATE)
    return np.full(x.shape, begun)


def _first_begins(client: Any, x: Any) -> float:
    """Return the seconds from a call until the first of its tasks runs."""
    found: list[float] = []
    for turn in range(TURNS):
        made = x.map_blocks(_begun, dtype="f8", meta=np.empty(0), name=f"begun-{turn}")
        begin = time()
        kept = client.persist(made)
        distributed.wait(kept)
        found.append(float(kept.min().compute()) - begin)
    return min(found[1:])


def _late(x: Any) -> Any:
    """Take long enough that what is said of tasks does not go in one message."""
    sleep(LATE)
    return x + 1


def _first(parts: list[Any]) -> Any:
    return _late(parts[0])


def _narrow(x: Any) -> Any:
    """Return an array each of whose tasks reads a chunk of ``x``."""
    return x.map_blocks(_late, dtype=x.dtype, meta=np.empty(0, x.dtype))


def _wide(x: Any) -> Any:
    """Return an array each of whose tasks reads many chunks of ``x``."""
    tasks: dict[Any, Any] = {}
    for k in range(WIDE):
        read = [(x.name, (k + i * LIGHT // READ) % LIGHT) for i in range(READ)]
        key = ("wide", k)
        tasks[key] = Task(key, _first, List(*map(TaskRef, read)))
    graph = HighLevelGraph.from_collections("wide", tasks, dependencies=[x])
    return da.Array(graph, "wide", chunks=((10,) * WIDE,), dtype=x.dtype)


def _next(x: int) -> int:
    return x + 1


def _step(client: Any, call: float) -> float:
    """Return the seconds of a task more in a row of tasks, each of which waits."""
    times: list[float] = []
    for turn in range(TURNS):
        found = dask.delayed(_next)(turn)
        for _ in range(DEPTH):
            found = dask.delayed(_next)(found)
        begin = perf_counter()
        client.compute(found).result()
        times.append(perf_counter() - begin)
    return max(min(times) - call, 0) / DEPTH


def _fetch(client: Any) -> tuple[float, float]:
    """Return the seconds of a fetch, and of each byte; none where none is fetched."""
    workers = _workers(client)
    if len(workers) < 2:
        return 0.0, 0.0
    times: list[float] = []
    for size in (8, FETCHED):
        gaps: list[float] = []
        for turn in range(TURNS):
            taken: list[float] = []
            for reader in workers[:2]:
                x = client.submit(np.full, size, turn, "u1", workers=workers[:1])
                distributed.wait(x)
                begin = perf_counter()
                distributed.wait(client.submit(len, x, workers=[reader], pure=False))
                taken.append(perf_counter() - begin)
            gaps.append(taken[1] - taken[0])
        times.append(max(min(gaps), 0))
    return times[0], (times[1] - times[0]) / FETCHED


def _workers(client: Any) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def seconds_a_chunk(
    client: Any, run: Callable[[Any], Any], shape: tuple[int, ...]
) -> float:
    """Return the time of ``run`` for a chunk in one thread, without a task for each.

    All workers do so at once: what waits for memory waits longer while others read.
    """
    found = [
        client.submit(_of_worker, run, shape, workers=[worker], pure=False)
        for worker in _workers(client)
    ]
    return median(client.gather(found))


def _of_worker(run: Callable[[Any], Any], shape: tuple[int, ...]) -> float:
    """Return the time of ``run`` here, where results go into memory that was used."""
    rng = np.random.default_rng(0)
    count = max(BYTES // (4 * shape[0] * shape[1]), 4)
    chunks = [rng.random(shape, "f4") for _ in range(count)]
    times: list[float] = []
    with nfuser.config.override(num_threads=1):
        for _ in range(2):
            times.clear()
            kept: list[Any] = []
            for x in chunks:
                begin = thread_time()
                kept.append(run(x))
                times.append(thread_time() - begin)
            del kept
    return median(times)
