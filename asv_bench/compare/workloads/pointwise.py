# SPDX-License-Identifier: Apache-2.0
"""Elementwise workloads, and int8 with a scale a row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from asv_bench.benchmarks import gelu, swiglu
from asv_bench.compare.workload import Array, Workload


def quantise(x: Any) -> Any:
    scale = np.abs(x).max(axis=-1, keepdims=True) / 127
    return np.clip(np.rint(x / scale), -127, 127).astype(np.int8), scale


def torch_gelu(t: Any, x: Any, bias: Any) -> Any:
    return t.nn.functional.gelu(x + bias, approximate="tanh")


def torch_swiglu(t: Any, x: Any, gate: Any) -> Any:
    return x * t.nn.functional.silu(gate)


def torch_quantise(t: Any, x: Any) -> Any:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return t.round(x / scale).clamp(-127, 127).to(t.int8), scale


def numba_gelu(x: float, bias: float) -> float:
    half, one = np.float32(0.5), np.float32(1)
    y = x + bias
    inner = y + np.float32(0.044715) * y * y * y
    return y * half * (one + math.tanh(np.float32(0.7978845608) * inner))


def numba_swiglu(x: float, gate: float) -> float:
    return x * (gate / (np.float32(1) + math.exp(-gate)))


def gelu_inputs(dtype: str) -> Any:
    return lambda rows, n: (Array((rows, n), dtype), Array((n,), dtype))


GELU = "0.5 * (a + b) * (1 + tanh(0.7978845608 * (a + b + 0.044715 * (a + b) ** 3)))"

WORKLOADS = (
    Workload(
        "gelu(x+b) bf16",
        gelu,
        gelu_inputs("bfloat16"),
        torch_gelu,
        cuda=(16384, 4096),
        is_elementwise=True,
    ),
    Workload(
        "gelu(x+b) f32",
        gelu,
        gelu_inputs("float32"),
        torch_gelu,
        cuda=(16384, 4096),
        cpu=(4096, 4096),
        is_elementwise=True,
        numexpr=GELU,
        numba=numba_gelu,
    ),
    Workload(
        "swiglu bf16",
        swiglu,
        lambda rows, n: (Array((rows, n), "bfloat16"), Array((rows, n), "bfloat16")),
        torch_swiglu,
        cuda=(16384, 8192),
        is_elementwise=True,
        liger=lambda liger, x, gate: liger.liger_swiglu(gate, x),
    ),
    Workload(
        "swiglu f32",
        swiglu,
        lambda rows, n: (Array((rows, n)), Array((rows, n))),
        torch_swiglu,
        cpu=(2048, 4096),
        is_elementwise=True,
        numexpr="a * (b / (1 + exp(-b)))",
        numba=numba_swiglu,
    ),
    Workload(
        "quantise rows to int8 bf16",
        quantise,
        lambda rows, n: (Array((rows, n), "bfloat16"),),
        torch_quantise,
        cuda=(16384, 4096),
        headline=(),
    ),
)
