# SPDX-License-Identifier: Apache-2.0
"""Transposes, concatenations, pads, reshapes and stencils by slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload


def add_transposed(a: Any, b: Any) -> Any:
    return a + b.T


def permute(x: Any) -> Any:
    return (x.transpose(0, 2, 1) * 2).copy()  # in C order, unlike the product


def cat_relu(x: Any, y: Any) -> Any:
    return np.maximum(np.concatenate([x, y], axis=-1), 0)


def pad_add(x: Any, y: Any) -> Any:
    return np.pad(x, ((0, 0), (8, 8))) + y


def reshape_bias(x: Any, bias: Any) -> Any:
    return x.reshape(-1, bias.shape[0], bias.shape[1]) + bias


def stencil_2d(x: Any) -> Any:
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    return x[1:-1, 1:-1] + 0.1 * (around - 4 * x[1:-1, 1:-1])


def stencil_3d(x: Any) -> Any:
    i = slice(1, -1)
    around = (
        x[:-2, i, i]
        + x[2:, i, i]
        + x[i, :-2, i]
        + x[i, 2:, i]
        + x[i, i, :-2]
        + x[i, i, 2:]
    )
    return x[i, i, i] + 0.1 * (around - 6 * x[i, i, i])


def torch_pad_add(t: Any, x: Any, y: Any) -> Any:
    return t.nn.functional.pad(x, (8, 8)) + y


def torch_reshape_bias(t: Any, x: Any, bias: Any) -> Any:
    return x.reshape(-1, bias.shape[0], bias.shape[1]) + bias


WORKLOADS = (
    Workload(
        "a + b.T f32",
        add_transposed,
        lambda n: (Array((n, n)), Array((n, n))),
        lambda t, a, b: a + b.T,
        cuda=(16384,),
        cpu=(4096,),
    ),
    Workload(
        "permute(0, 2, 1) * 2 bf16",
        permute,
        lambda batch, rows, n: (Array((batch, rows, n), "bfloat16"),),
        lambda t, x: (x.permute(0, 2, 1) * 2).contiguous(),
        cuda=(64, 2048, 2048),
    ),
    Workload(
        "cat + relu f32",
        cat_relu,
        lambda rows, n: (Array((rows, n)), Array((rows, n))),
        lambda t, x, y: t.relu(t.cat([x, y], -1)),
        cuda=(16384, 4096),
        cpu=(2048, 2048),
        headline=("cuda",),
    ),
    Workload(
        "pad + add f32",
        pad_add,
        lambda rows, n: (Array((rows, n)), Array((rows, n + 16))),
        torch_pad_add,
        cuda=(16384, 8176),
        cpu=(2048, 2032),
    ),
    Workload(
        "reshape + bias bf16",
        reshape_bias,
        lambda rows, heads, n: (
            Array((rows, heads * n), "bfloat16"),
            Array((heads, n), "bfloat16"),
        ),
        torch_reshape_bias,
        cuda=(16384, 64, 128),
    ),
    Workload(
        "stencil 2d f64",
        stencil_2d,
        lambda rows, n: (Array((rows, n), "float64"),),
        lambda t, x: stencil_2d(x),
        cpu=(2048, 2048),
    ),
    Workload(
        "stencil 3d f32",
        stencil_3d,
        lambda *sizes: (Array(sizes),),
        lambda t, x: stencil_3d(x),
        cpu=(192, 192, 192),
    ),
)
