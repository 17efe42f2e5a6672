# SPDX-License-Identifier: Apache-2.0
"""Workloads with next to nothing to compute: as fast as memory, or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload


def add(a: Any, b: Any) -> Any:
    return a + b


def slice_scale(x: Any) -> Any:
    return x[:, 1:-1] * 2


def cast(x: Any) -> Any:
    return x.astype(np.float32)


WORKLOADS = (
    Workload(
        "a + b f32",
        add,
        lambda rows, n: (Array((rows, n)), Array((rows, n))),
        lambda t, a, b: t.add(a, b),
        cuda=(16384, 4096),
        cpu=(4096, 4096),
        headline=(),
        is_elementwise=True,
        numexpr="a + b",
        numba=lambda a, b: a + b,
    ),
    Workload(
        "slice + scale f32",
        slice_scale,
        lambda rows, n: (Array((rows, n)),),
        lambda t, x: x[:, 1:-1] * 2,
        cpu=(4096, 4096),
        headline=(),
    ),
    Workload(
        "cast f64 to f32",
        cast,
        lambda rows, n: (Array((rows, n), "float64"),),
        lambda t, x: x.to(t.float32),
        cpu=(4096, 4096),
        headline=(),
        jax=lambda jnp, x: x.astype(jnp.float32),
    ),
)
