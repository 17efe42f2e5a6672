# SPDX-License-Identifier: Apache-2.0
"""Each workload of ``asv_bench.compare`` on the GPU, nfuser alone."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import require_torch_cuda

sys.path.append(str(Path(__file__).parents[2]))  # after the nfuser that is measured

from asv_bench.compare.__main__ import arguments_of, measured
from asv_bench.compare.contest import OURS, Row
from asv_bench.compare.workloads import WORKLOADS

ROWS = [(w, sizes) for w in WORKLOADS if (sizes := w.sizes("cuda"))]
Found = dict[str, tuple[float, float]]  # share of a copy, seconds of the first call


def setup_cache() -> Found:
    """Measure all at once, in one process that checks each result."""
    try:
        require_torch_cuda()
    except NotImplementedError:
        return {}
    found = measured(arguments_of(["--backend", "cuda", "--peers"]))
    rows = [Row(**row) for row in found["rows"]]
    return {
        row.name: (row.share(found["copy"]) or 0.0, row.first_call[OURS])
        for row in rows
        if row.is_right and OURS in row.fresh
    }


class Gpu:
    """The share of a copy's bandwidth."""

    params = tuple(workload.row_name(sizes) for workload, sizes in ROWS)
    param_names = ("workload",)

    def setup(self, found: Found, workload: str) -> None:
        if workload not in found:  # there is no GPU, or the result was wrong
            raise NotImplementedError

    def track_copy_share(self, found: Found, workload: str) -> float:
        return found[workload][0]


class GpuFirstCalls:
    """Seconds of the slowest first call but that which pays for the imports."""

    def setup(self, found: Found) -> None:
        if not found:
            raise NotImplementedError

    def track_slowest(self, found: Found) -> float:
        return sorted(seconds for _, seconds in found.values())[-2]
