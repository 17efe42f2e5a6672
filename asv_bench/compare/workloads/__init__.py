# SPDX-License-Identifier: Apache-2.0
"""Every workload, one file a family."""

from __future__ import annotations

from asv_bench.compare.workloads import (
    light,
    moves,
    normalization,
    numeric,
    pointwise,
    reduction,
    rope,
)

WORKLOADS = (
    *pointwise.WORKLOADS,
    *normalization.WORKLOADS,
    *rope.WORKLOADS,
    *reduction.WORKLOADS,
    *moves.WORKLOADS,
    *numeric.WORKLOADS,
    *light.WORKLOADS,
)
