# SPDX-License-Identifier: Apache-2.0
"""Print how much faster fused functions of Dask arrays are than other forms.

``python -m asv_bench.chunks`` runs all workloads; names that are given, those that
begin so. All forms take turns on the threads of one process; medians of elapsed time,
and in brackets of the processor's, which other work on the machine changes less.
``--json FILE`` keeps the seconds of both, each row as it comes.
"""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import dask
import numpy as np

from asv_bench.chunks.workloads import WORKLOADS, Workload
from asv_bench.compare.provenance import provenance, rows_before

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = "workload | nfuser ms | plain dask / nfuser | by hand / nfuser | tasks"
FORMS = ("nfuser", "plain Dask", "by hand")


def seconds_of(
    calls: list[Callable[[], Any]], turns: int
) -> tuple[list[float], list[float]]:
    """Return the median time of each call, elapsed and busy; they take turns.

    Each second turn goes backwards: who follows another finds what that one left to do,
    as pages that are still to be written to a disk.
    """
    elapsed: list[list[float]] = [[] for _ in calls]
    busy: list[list[float]] = [[] for _ in calls]
    there, back = range(len(calls)), range(len(calls) - 1, -1, -1)
    for turn in range(turns):
        for k in back if turn % 2 else there:
            begin, start = perf_counter(), process_time()
            calls[k]()
            busy[k].append(process_time() - start)
            elapsed[k].append(perf_counter() - begin)
    return [median(t) for t in elapsed], [median(t) for t in busy]


def measure(workload: Workload, turns: int) -> dict[str, Any]:
    """Return one row of the table; the forms are compared with one another first."""
    data = workload.data()
    forms = [workload.fused, workload.plain, workload.by_hand]
    lazy = [form(*data) for form in forms]
    found = [_flat(dask.compute(made, scheduler="threads")[0]) for made in lazy]
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=2e-3, atol=2e-4)
    del found
    # Results stay in chunks: their copy into one array is the same for all forms.
    calls = [lambda m=m: dask.persist(m, scheduler="threads") for m in lazy]
    elapsed, busy = seconds_of(calls, turns)
    return {
        "name": workload.name,
        "values": dict(zip(FORMS, elapsed, strict=True)),
        "busy": dict(zip(FORMS, busy, strict=True)),
        "tasks": sum(len(dict(m.dask)) for m in _leaves(lazy[0])),
    }


def line_of(row: dict[str, Any]) -> str:
    """Return a row as it is printed."""
    elapsed, busy = (list(row[key].values()) for key in ("values", "busy"))
    ratios = (
        f"{elapsed[k] / elapsed[0]:.2f} ({busy[k] / busy[0]:.2f})" for k in (1, 2)
    )
    cells = (row["name"], f"{elapsed[0] * 1e3:.0f}", *ratios, str(row["tasks"]))
    return " | ".join(cells)


def _leaves(made: Any) -> tuple[Any, ...]:
    return made if isinstance(made, tuple) else (made,)


def _flat(found: Any) -> Any:
    """Return results as numbers; a sample of many."""
    parts = [np.ravel(x)[:: max(np.size(x) // 100_000, 1)] for x in _leaves(found)]
    return np.concatenate(parts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="asv_bench.chunks", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    given = ["--turns", str(chosen.turns)] if chosen.turns != 5 else []
    command = " ".join(["python -m asv_bench.chunks", *given])
    head = provenance("dask", command) | {"unit": "s"}
    rows = rows_before(chosen.json, head)
    print(HEAD)
    for workload in WORKLOADS:
        if chosen.names and not workload.name.startswith(tuple(chosen.names)):
            continue
        row = measure(workload, chosen.turns)
        print(line_of(row), flush=True)
        if chosen.json is not None:
            rows[workload.name] = row
            made = head | {"rows": list(rows.values())}
            chosen.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
