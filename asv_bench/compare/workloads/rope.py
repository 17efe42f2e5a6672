# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding: halves of each head that change places."""

from __future__ import annotations

from typing import Any

import numpy as np

from asv_bench.compare.workload import Array, Workload


def rope(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    rotated = np.concatenate([-x[..., h:], x[..., :h]], axis=-1)
    return x * cos + rotated * sin


def rope_pair(q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return rope(q, cos, sin), rope(k, cos, sin)


def rope_packed(packed: Any, cos: Any, sin: Any) -> Any:
    q, k = packed[:, :, 0].swapaxes(1, 2), packed[:, :, 1].swapaxes(1, 2)
    return rope(q, cos, sin), rope(k, cos, sin)


def torch_rope(t: Any, x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    return x * cos + t.cat([-x[..., h:], x[..., :h]], -1) * sin


def torch_rope_pair(t: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return torch_rope(t, q, cos, sin), torch_rope(t, k, cos, sin)


def torch_rope_packed(t: Any, packed: Any, cos: Any, sin: Any) -> Any:
    q, k = packed[:, :, 0].transpose(1, 2), packed[:, :, 1].transpose(1, 2)
    return torch_rope(t, q, cos, sin), torch_rope(t, k, cos, sin)


def one(dtype: str, order: tuple[int, ...] | None = None) -> Any:
    return lambda batch, heads, length, size: (
        Array((batch, heads, length, size), dtype, order=order),
        Array((length, size), dtype),
        Array((length, size), dtype),
    )


def pair(q: int, k: int, size: int, length: int, batch: int) -> tuple[Array, ...]:
    return (
        Array((batch, q, length, size), "bfloat16"),
        Array((batch, k, length, size), "bfloat16"),
        Array((length, size), "bfloat16"),
        Array((length, size), "bfloat16"),
    )


def packed(batch: int, length: int, heads: int, size: int) -> tuple[Array, ...]:
    return (
        Array((batch, length, 3, heads, size), "bfloat16", used=2 / 3),
        Array((length, size), "bfloat16"),
        Array((length, size), "bfloat16"),
    )


# Named by heads of queries and of keys, their size, and the length of the sequence.
PAIR = Workload("RoPE, heads", rope_pair, pair, torch_rope_pair)

WORKLOADS = (
    Workload(
        "RoPE bf16",
        rope,
        one("bfloat16"),
        torch_rope,
        cuda=(2, 32, 8192, 128),
    ),
    Workload(
        "RoPE bf16, (b, s, h, d) in memory",
        rope,
        one("bfloat16", (0, 2, 1, 3)),
        torch_rope,
        cuda=(2, 32, 8192, 128),
    ),
    Workload(
        "RoPE f32",
        rope,
        one("float32"),
        torch_rope,
        cpu=(1, 16, 2048, 128),
    ),
    Workload(
        "RoPE + slice, packed qkv bf16",
        rope_packed,
        packed,
        torch_rope_packed,
        cuda=(2, 8192, 32, 128),
        headline=(),
    ),
)
