# SPDX-License-Identifier: Apache-2.0
"""Tall columns, distances and formulas, in both types: where others were ahead once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload
from asv_bench.compare.workloads import normalization, numeric, reduction

Inputs = Callable[..., tuple[Array, ...]]


def pairwise_sum(x: Any, y: Any) -> Any:
    difference = x[:, None, :] - y[None, :, :]
    return np.sqrt((difference * difference).sum(axis=-1)).sum(axis=-1)


def torch_pairwise_sum(t: Any, x: Any, y: Any) -> Any:
    del t
    return ((x[:, None] - y[None]) ** 2).sum(-1).sqrt().sum(-1)


def _of(dtype: str, workload: Workload, sizes: tuple[int, ...]) -> Workload:
    """Return a workload at other sizes, its inputs in ``dtype``."""
    inputs: Inputs = partial(_typed, workload.inputs, dtype)
    name = f"{workload.name.rpartition(' ')[0]} {dtype[0]}{dtype[-2:]}"
    return replace(workload, name=name, inputs=inputs, cuda=None, cpu=sizes)


def _typed(inputs: Inputs, dtype: str, *sizes: int) -> tuple[Array, ...]:
    return tuple(replace(array, dtype=dtype) for array in inputs(*sizes))


def _known(name: str, *rooms: Any) -> Workload:
    return next(w for room in rooms for w in room.WORKLOADS if w.name == name)


_STANDARDISE = _known("standardise columns f64", normalization)
_NEAREST = _known("distance to the nearest f64", reduction)
_SUM = replace(
    _NEAREST,
    name="sum of distances f64",
    function=pairwise_sum,
    torch=torch_pairwise_sum,
)
_ROWS: tuple[tuple[Workload, tuple[int, ...]], ...] = (
    (_STANDARDISE, (65536, 64)),
    (_STANDARDISE, (1048576, 8)),
    (_NEAREST, (2048, 2048, 16)),
    (_SUM, (2048, 2048, 16)),
    (_known("Black-Scholes f64", numeric), (2_000_000,)),
    (_known("haversine f64", numeric), (2_000_000,)),
)
WORKLOADS = tuple(
    _of(dtype, workload, sizes)
    for workload, sizes in _ROWS
    for dtype in ("float32", "float64")
)
