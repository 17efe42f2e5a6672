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


class Gpu:
    """All of them are measured at once, by one process that checks each result."""

    params = tuple(workload.row_name(sizes) for workload, sizes in ROWS)
    param_names = ("workload",)
    timeout = 600

    def setup_cache(self) -> Found:
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

    def setup(self, found: Found, workload: str) -> None:
        if workload not in found:
            raise NotImplementedError

    def track_copy_share(self, found: Found, workload: str) -> float:
        return found[workload][0]

    def track_seconds_of_first_call(self, found: Found, workload: str) -> float:
        return found[workload][1]
