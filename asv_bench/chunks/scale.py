# SPDX-License-Identifier: Apache-2.0
"""What one and two workers take, beside what a model says of costs measured apart.

``python -m asv_bench.chunks.scale`` measures the costs of a cluster on graphs of its
own (``costs.py``), says of column statistics and a five-point stencil what they come
to, and measures these. ``--json FOLDER`` keeps all of it: ``chunks_costs``,
``chunks_scale``, and ``chunks_ends``, the workers that one scheduler keeps busy.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed

from asv_bench.chunks.costs import (
    Costs,
    Graph,
    costs_of,
    graph_of,
    held,
    seconds_a_chunk,
    seconds_of,
    statistics,
    stencil,
)
from asv_bench.compare.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable

CORES = len(os.sched_getaffinity(0))
NUMBERS = {1: "one worker", 2: "two workers"}
MEGABYTES = (1, 4, 16, 64, 256)


@dataclass(frozen=True)
class Case:
    """A call on an array of ``shape`` in ``chunks``.

    ``read`` is the shape that a kernel reads; it is put together of ``pieces``.
    """

    name: str
    run: Callable[[Any], Any]
    shape: tuple[int, int]
    chunks: tuple[int, int]
    read: tuple[int, int]
    pieces: int = 1

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return self.shape[0] // self.chunks[0] * (self.shape[1] // self.chunks[1])


def columns(rows: int, count: int = 0) -> Case:
    """Return column statistics of chunks of ``rows`` times 256."""
    count = count or (1 << 17) // rows
    size = f"{rows * 256 * 4 / 1e6:.0f} MB"
    name = f"statistics, {count} chunks of {size}"
    return Case(name, statistics, (rows * count, 256), (rows, 256), (rows, 256))


def plane(side: int, of: int = 0) -> Case:
    """Return a stencil of ``of * of`` chunks, each a square."""
    of = of or 6_000 // side
    size = f"{side * side * 4 / 1e6:.1f} MB"
    name = f"stencil, {of * of} chunks of {size}"
    shape, chunks = (side * of, side * of), (side, side)
    return Case(name, stencil, shape, chunks, (side + 2, side + 2), 9)


CASES = (columns(1 << 10), columns(1 << 12), plane(600), plane(1_000))


@dataclass(frozen=True)
class Work:
    """Seconds of a call: of the scheduler, and of all workers together.

    ``ahead`` are those of the scheduler in which no worker has anything to do yet.
    """

    scheduler: float
    ahead: float
    workers: float

    def seconds(self, workers: int, cores: int) -> float:
        """Return when the last of them is done; the scheduler takes a core, too."""
        beside = max(self.scheduler - self.ahead, 0)
        shared = (beside + self.workers) / min(cores, workers + 1)
        return self.ahead + max(beside, self.workers / workers, shared)


def work_of(client: Any, costs: Costs, case: Case, graph: Graph, workers: int) -> Work:
    """Return what a call comes to by the model.

    Pieces of neighbours lie at another worker as often as chance has it.
    """
    kernels = seconds_a_chunk(client, case.run, case.read) * case.count
    read = 4 * case.read[0] * case.read[1] * case.count
    copies = costs.copy * read if case.pieces > 1 else 0.0
    there = costs.task_there * graph.tasks + costs.read_there * graph.reads
    own = read - 4 * case.shape[0] * case.shape[1]
    moved = own * (1 - 1 / workers) * costs.fetched_byte
    here = costs.task * graph.tasks + costs.read * graph.reads
    return Work(here, costs.ahead * graph.tasks, there + kernels + copies + moved)


def told_by(costs: Costs, graph: Graph, work: Work, workers: int, cores: int) -> float:
    """Return the seconds that the model says; a fetch delays a task in each row."""
    rest = costs.call + (graph.depth - 1) * (costs.step + costs.fetch)
    return rest + work.seconds(workers, cores)


def measure(client: Any, workers: int) -> tuple[Costs, list[dict[str, Any]]]:
    """Return the costs of a cluster, and what it takes beside what the model says."""
    costs = costs_of(client)
    print(workers, costs, flush=True)
    rows: list[dict[str, Any]] = []
    for case in CASES:
        made = case.run(held(client, case.shape, case.chunks))
        graph = graph_of(made)
        work = work_of(client, costs, case, graph, workers)
        model = told_by(costs, graph, work, workers, CORES)
        elapsed, here, there = seconds_of(client, made)
        values = {"the model": model, "measured": elapsed}
        there_told = costs.start_there + work.workers
        here_told = costs.start + work.scheduler
        values |= {"scheduler, the model": here_told, "scheduler, measured": here}
        values |= {"workers, the model": there_told, "workers, measured": there}
        name = f"{case.name}, {NUMBERS[workers]}"
        rows.append({"name": name, "values": values, "graph": asdict(graph)})
        ratios = model / elapsed, here_told / here, there_told / there
        print(
            name, graph, "model / measured", *(f"{r:.2f}" for r in ratios), flush=True
        )
    return costs, rows


def ends_of(client: Any, costs: Costs) -> list[dict[str, Any]]:
    """Return how many workers one scheduler keeps busy, by the size of a chunk."""
    rows: list[dict[str, Any]] = []
    for size in MEGABYTES:
        side = round((size * 1e6 / 4) ** 0.5)
        values: dict[str, float] = {}
        for case in (columns(size * 1_000_000 // 1024, 64), plane(side, 8)):
            # The same graph over chunks of no size is as large.
            down, across = (
                n // c for n, c in zip(case.shape, case.chunks, strict=True)
            )
            small = held(client, (4 * down, 4 * across), (4, 4))
            graph = graph_of(case.run(small))
            work = work_of(client, costs, case, graph, 1 << 20)
            values[case.name.split(",")[0]] = work.workers / work.scheduler
        rows.append({"name": f"{size} MB", "at": size, "values": values})
        print(rows[-1], flush=True)
    return rows


def keep(folder: Path, name: str, unit: str, rows: list[dict[str, Any]]) -> None:
    """Write rows into a file of results; what it has of other clusters stays."""
    file = folder / f"{name}.json"
    before = json.loads(file.read_text())["rows"] if file.exists() else []
    kept = {row["name"]: row for row in before}
    for row in rows:
        old = kept.get(row["name"], {}).get("values", {})
        kept[row["name"]] = row | {"values": old | row["values"]}
    made = provenance("dask") | {"unit": unit, "rows": list(kept.values())}
    file.write_text(json.dumps(made, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="asv_bench.chunks.scale", description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--workers", type=int, nargs="*", default=[*NUMBERS])
    options = parser.parse_args()
    for workers in options.workers:
        form = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(n_workers=workers, **form) as cluster,
            distributed.Client(cluster) as client,
        ):
            costs, rows = measure(client, workers)
            ends = ends_of(client, costs) if workers > 1 else []
        if options.json is None:
            continue
        told = [
            {"name": what, "values": {NUMBERS[workers]: seconds}}
            for what, seconds in asdict(costs).items()
            if seconds > 0  # nothing is fetched by one worker alone
        ]
        keep(options.json, "chunks_costs", "s", told)
        keep(options.json, "chunks_scale", "s", rows)
        if ends:
            keep(options.json, "chunks_ends", "workers", ends)


if __name__ == "__main__":
    main()
