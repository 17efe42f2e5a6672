# SPDX-License-Identifier: Apache-2.0
"""What calls on chunks take beside time: ``python -m asv_bench.chunks.limits``.

Names of parts after it run these alone; ``--json FILE`` keeps what they print.
"""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import dask
import dask.array as da
import numpy as np

import nfuser
from asv_bench.chunks.__main__ import seconds_of
from asv_bench.chunks.workloads import chain
from asv_bench.compare.memory import idle, peak
from asv_bench.compare.provenance import provenance
from nfuser.execution.device.reuse import POOL

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = 100_000
BYTES = 10 * 10**9
CHUNK_BYTES = 32 * 2**20
STORE_BYTES = 3 * 10**9
ROOM = 10**9  # beyond what an idle process takes


def _same(block: Any) -> Any:
    return block


def _graph_seconds(make: Callable[[], Any]) -> tuple[float, int]:
    begin = process_time()
    (made,) = dask.optimize(make())
    tasks = dict(made.__dask_graph__())
    return process_time() - begin, len(tasks)


def graph() -> dict[str, float]:
    """A chain over 100,000 chunks, beside ``map_blocks`` of an identity."""
    x = da.zeros((TASKS * 10,), chunks=10)
    fused = nfuser.fuse(chain)
    fused(da.zeros(100, chunks=10))
    forms = (lambda: fused(x), lambda: x.map_blocks(_same, dtype=x.dtype))
    times: list[list[float]] = [[], []]
    counts = [0, 0]
    for _ in range(5):
        for k, make in enumerate(forms):
            seconds, counts[k] = _graph_seconds(make)
            times[k].append(seconds)
    ours, theirs = map(median, times)
    print(f"graph of {TASKS} chunks: {ours:.2f} s, {ours / theirs:.2f} of map_blocks")
    print(f"tasks a chunk: {counts[0] / TASKS:.2f}, map_blocks {counts[1] / TASKS:.2f}")
    return {"seconds": ours, "map_blocks": theirs, "tasks": counts[0]}


def _made(block_info: Any = None) -> Any:
    (start, stop), *_ = block_info[None]["array-location"]
    found = np.arange(start, stop, dtype="f8")
    found *= 1e-9
    return found


def memory() -> dict[str, float]:
    """A chain of fifty operations over 10 GB made on the fly, and its peak."""
    size = CHUNK_BYTES // 8
    count = BYTES // CHUNK_BYTES
    meta = np.empty(0)
    x = da.map_blocks(_made, chunks=((size,) * count,), dtype="f8", meta=meta)
    fused = nfuser.fuse(chain)
    for scheduler in ("threads", "sync"):  # a task beside others, and one with helpers
        dask.compute(fused(da.zeros(4 * size, chunks=size)).max(), scheduler=scheduler)
    POOL.clear()  # memory of the call above that waits for the next
    before = idle()
    begin = perf_counter()
    fused(x).max().compute()
    seconds = perf_counter() - begin
    used = peak() - before
    in_flight = 2 * 2 * CHUNK_BYTES  # two threads, an input and an output each
    print(f"{count * CHUNK_BYTES / 1e9:.1f} GB in {seconds:.1f} s", end=", ")
    print(f"peak {used / 2**20:.0f} MiB of {in_flight / 2**20:.0f} MiB in flight")
    part = x[: size * (count // 8)]
    times: list[list[float]] = [[], []]
    for _ in range(3):
        for k, form in enumerate((fused, chain)):
            begin = perf_counter()
            form(part).max().compute()
            times[k].append(perf_counter() - begin)
    ours, plain = map(median, times)
    print(f"an eighth of it: plain dask / nfuser {plain / ours:.1f}")
    return {
        "GB": count * CHUNK_BYTES / 1e9,
        "seconds": seconds,
        "peak, MiB": used / 2**20,
        "in flight, MiB": in_flight / 2**20,
        "plain Dask / nfuser": plain / ours,
    }


def store() -> dict[str, float]:
    """A store of Zarr larger than the memory that the process may take."""
    with tempfile.TemporaryDirectory() as folder:
        return _store(folder)


def _store(folder: str) -> dict[str, float]:
    from asv_bench.chunks import by_hand

    rows, columns = 1 << 12, 1 << 10
    count = STORE_BYTES // (rows * columns * 4)
    x = da.random.random((rows * count, columns), chunks=(rows, columns))
    x.astype("f4").to_zarr(f"{folder}/in.zarr", overwrite=True)
    fused = nfuser.fuse(chain)
    dask.compute(fused(da.zeros((rows, 8), chunks=(rows // 2, 8), dtype="f4")))
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))
    lazy = da.from_zarr(f"{folder}/in.zarr")
    calls = [
        lambda form=form: form(lazy).to_zarr(f"{folder}/out.zarr", overwrite=True)
        for form in (fused, by_hand.chain)
    ]
    (ours, theirs), busy = seconds_of(calls, 4)  # each goes first twice
    bytes_of = f"{STORE_BYTES / 1e9:.1f} GB of Zarr with {ROOM / 1e9:.1f} GB of room"
    ratios = f"{theirs / ours:.2f} ({busy[1] / busy[0]:.2f} of the processor's time)"
    print(f"{bytes_of}: {ours:.1f} s, by hand / nfuser {ratios}")
    return {"seconds": ours, "times": theirs / ours, "busy": busy[1] / busy[0]}


def ragged() -> dict[str, float]:
    """A thousand chunk shapes: traces and kernels."""
    from nfuser.execution.chunks.tasks.built import built

    rows = tuple(int(n) for n in np.random.default_rng(0).permutation(1000) + 1)
    x = da.ones((sum(rows), 3), chunks=(rows, 3))
    fused = nfuser.fuse(chain)
    fused(x).compute()
    kernels = sum(cache.cache_info().compiled for cache in built())
    print(f"1,000 shapes: {fused.cache_info().traces} trace, {kernels} kernels")
    return {"traces": fused.cache_info().traces, "kernels": kernels}


PARTS = {"graph": graph, "memory": memory, "zarr": store, "ragged": ragged}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[*PARTS])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [{"name": part, "values": PARTS[part]()} for part in options.parts]
    if options.json is not None:
        found = provenance("dask") | {"unit": "", "rows": rows}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
