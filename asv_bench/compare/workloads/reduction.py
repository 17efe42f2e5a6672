# SPDX-License-Identifier: Apache-2.0
"""Sums over rows, columns and all; cross entropy; running sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload


def sum_rows(x: Any) -> Any:
    return x.sum(axis=1)


def sum_columns(x: Any) -> Any:
    return x.sum(axis=0)


def sum_all(x: Any) -> Any:
    return x.sum()


def cross_entropy(x: Any, target: Any) -> Any:
    largest = x.max(axis=-1, keepdims=True)
    total = np.log(np.exp(x - largest).sum(axis=-1)) + largest[:, 0]
    return (total - np.take_along_axis(x, target[:, None], axis=-1)[:, 0]).mean()


def running_sum(x: Any) -> Any:
    return np.cumsum(x, axis=-1)


def cosine_similarity(x: Any, y: Any) -> Any:
    products = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    return (x * y).sum(axis=-1) / products


def pairwise_nearest(x: Any, y: Any) -> Any:
    difference = x[:, None, :] - y[None, :, :]
    return np.sqrt((difference * difference).sum(axis=-1).min(axis=-1))


def torch_cosine_similarity(t: Any, x: Any, y: Any) -> Any:
    return t.nn.functional.cosine_similarity(x, y, -1)


def torch_pairwise_nearest(t: Any, x: Any, y: Any) -> Any:
    return ((x[:, None] - y[None]) ** 2).sum(-1).amin(-1).sqrt()


def square(rows: int, n: int) -> tuple[Array, ...]:
    # Of one sign: a sum of both is near 0, and its relative error means nothing.
    return (Array((rows, n), low=0.0),)


def logits(dtype: str) -> Any:
    return lambda rows, n: (Array((rows, n), dtype), Array((rows,), "int64", high=n))


WORKLOADS = (
    Workload(
        "sum rows f32",
        sum_rows,
        square,
        lambda t, x: x.sum(1),
        cuda=(16384, 16384),
        cpu=(4096, 4096),
        headline=("cuda",),
    ),
    Workload(
        "sum columns f32",
        sum_columns,
        square,
        lambda t, x: x.sum(0),
        cuda=(16384, 16384),
        cpu=(4096, 4096),
    ),
    Workload(
        "sum all f32",
        sum_all,
        square,
        lambda t, x: x.sum(),
        cuda=(16384, 16384),
        cpu=(4096, 4096),
        headline=("cuda",),
        numexpr="sum(a)",
    ),
    Workload(
        "cross entropy bf16",
        cross_entropy,
        logits("bfloat16"),
        lambda t, x, target: t.nn.functional.cross_entropy(x, target),
        cuda=(8192, 128256),
        liger=lambda liger, x, target: liger.liger_cross_entropy(x, target),
    ),
    Workload(
        "cross entropy f32",
        cross_entropy,
        logits("float32"),
        lambda t, x, target: t.nn.functional.cross_entropy(x, target),
        cpu=(1024, 8192),
    ),
    Workload(
        "cumsum f32",
        running_sum,
        square,
        lambda t, x: x.cumsum(-1),
        cuda=(16384, 16384),
    ),
    Workload(
        "cosine similarity of rows f32",
        cosine_similarity,
        lambda rows, n: (Array((rows, n)), Array((rows, n))),
        torch_cosine_similarity,
        cpu=(8192, 768),
    ),
    Workload(
        "distance to the nearest f64",
        pairwise_nearest,
        lambda x, y, n: (Array((x, n), "float64"), Array((y, n), "float64")),
        torch_pairwise_nearest,
        cpu=(1024, 1024, 8),
    ),
)
