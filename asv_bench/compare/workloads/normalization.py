# SPDX-License-Identifier: Apache-2.0
"""Rows, groups or channels that are reduced and used again, forwards and backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from asv_bench.benchmarks import layer_norm, rms_norm, softmax
from asv_bench.compare.workload import Array, Workload


def add_rms_norm(x: Any, residual: Any, weight: Any) -> Any:
    h = x + residual
    return h, h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1e-5) * weight


def log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def attention_softmax(scores: Any, mask: Any) -> Any:
    masked = np.where(mask, scores * 0.08838834764, -np.inf)
    e = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward(gradient: Any, y: Any) -> Any:
    return y * (gradient - (gradient * y).sum(axis=-1, keepdims=True))


def rms_norm_backward(gradient: Any, x: Any, weight: Any) -> Any:
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    weighted = gradient * weight
    projection = (weighted * x).mean(axis=-1, keepdims=True)
    return scale * weighted - x * scale * scale * scale * projection


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    variance = x.var(axis=(0, 2, 3), keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + 1e-5)
    return scaled * weight[:, None, None] + bias[:, None, None]


def batch_statistics(x: Any) -> Any:
    return x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))


def group_norm(x: Any, weight: Any, bias: Any) -> Any:
    n, groups = x.shape[:2]
    rows = x.reshape(n, groups, -1)
    mean = rows.mean(axis=-1, keepdims=True)
    scaled = (rows - mean) / np.sqrt(rows.var(axis=-1, keepdims=True) + 1e-5)
    return scaled.reshape(x.shape) * weight[..., None, None] + bias[..., None, None]


def standardise(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def torch_softmax(t: Any, x: Any) -> Any:
    return t.softmax(x, -1)


def torch_layer_norm(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def torch_rms_norm(t: Any, x: Any, weight: Any) -> Any:
    return t.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-5)


def torch_add_rms_norm(t: Any, x: Any, residual: Any, weight: Any) -> Any:
    h = x + residual
    return h, t.nn.functional.rms_norm(h, h.shape[-1:], weight, 1e-5)


def torch_attention_softmax(t: Any, scores: Any, mask: Any) -> Any:
    masked = (scores * 0.08838834764).masked_fill(~mask, -t.inf)
    return t.softmax(masked, -1)


def torch_softmax_backward(t: Any, gradient: Any, y: Any) -> Any:
    return t.ops.aten._softmax_backward_data(gradient, y, -1, y.dtype)


def torch_rms_norm_backward(t: Any, gradient: Any, x: Any, weight: Any) -> Any:
    wide = t.promote_types(x.dtype, t.float32)
    given, (gradient, x, weight) = x.dtype, (a.to(wide) for a in (gradient, x, weight))
    scale = t.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
    weighted = gradient * weight
    projection = (weighted * x).mean(-1, keepdim=True)
    return (scale * weighted - x * scale**3 * projection).to(given)


def torch_batch_norm(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


def torch_batch_statistics(t: Any, x: Any) -> Any:
    variance, mean = t.var_mean(x, (0, 2, 3), correction=0)
    return mean, variance


def torch_group_norm(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    n, groups, channels = x.shape[:3]
    flat = x.reshape(n, groups * channels, *x.shape[3:])
    normal = t.nn.functional.group_norm(flat, groups, weight.ravel(), bias.ravel())
    return normal.reshape(x.shape)


def torch_standardise(t: Any, x: Any) -> Any:
    return (x - x.mean(0)) / x.std(0, correction=0)


def rows_with(weights: int, dtype: str = "bfloat16", rows_in: int = 1) -> Any:
    """Return inputs: arrays of rows, then weights of one row."""
    return lambda rows, n: (
        *(Array((rows, n), dtype) for _ in range(rows_in)),
        *(Array((n,), dtype) for _ in range(weights)),
    )


def scores(dtype: str) -> Any:
    return lambda batch, heads, rows, n: (
        Array((batch, heads, rows, n), dtype),
        Array((batch, 1, rows, n), "bool", high=2),
    )


def channels(n: int, c: int, h: int, w: int) -> tuple[Array, ...]:
    return Array((n, c, h, w)), Array((c,)), Array((c,))


def groups(n: int, g: int, c: int, h: int, w: int) -> tuple[Array, ...]:
    return Array((n, g, c, h, w)), Array((g, c)), Array((g, c))


def _softmax_row(name: str, dtype: str, **options: Any) -> Workload:
    return Workload(
        f"softmax {name}",
        softmax,
        rows_with(0, dtype),
        torch_softmax,
        liger=lambda liger, x: liger.liger_softmax(x),
        **options,
    )


def _layer_norm_row(name: str, dtype: str, **options: Any) -> Workload:
    return Workload(
        f"layer norm {name}",
        layer_norm,
        rows_with(2, dtype),
        torch_layer_norm,
        liger=lambda liger, x, w, b: liger.liger_layer_norm(x, w, b, 1e-5),
        **options,
    )


def _rms_norm_row(name: str, dtype: str, **options: Any) -> Workload:
    return Workload(
        f"RMS norm {name}",
        rms_norm,
        rows_with(1, dtype),
        torch_rms_norm,
        liger=lambda liger, x, w: liger.liger_rms_norm(x, w, 1e-5),
        **options,
    )


WORKLOADS = (
    _softmax_row("bf16", "bfloat16", cuda=(16384, 4096)),
    _softmax_row("bf16", "bfloat16", cuda=(8192, 32768)),
    _softmax_row("f32", "float32", cuda=(1024, 262144)),
    _softmax_row("f32", "float32", cuda=(16384, 4096), headline=()),
    _softmax_row("f32", "float32", cpu=(4096, 2048)),
    _softmax_row("f64", "float64", cpu=(4096, 1024)),
    _layer_norm_row("bf16", "bfloat16", cuda=(16384, 4096)),
    _layer_norm_row("bf16", "bfloat16", cuda=(16384, 16384)),
    _layer_norm_row("f32", "float32", cpu=(4096, 2048)),
    _rms_norm_row("bf16", "bfloat16", cuda=(16384, 4096)),
    _rms_norm_row("f32", "float32", cpu=(4096, 2048)),
    Workload(
        "add + RMS norm bf16",
        add_rms_norm,
        rows_with(1, rows_in=2),
        torch_add_rms_norm,
        cuda=(16384, 4096),
        liger=lambda liger, x, r, w: liger.liger_fused_add_rms_norm(x, r, w, 1e-5)[
            ::-1
        ],
    ),
    Workload(
        "batch norm, training, f32",
        batch_norm,
        channels,
        torch_batch_norm,
        cuda=(64, 256, 56, 56),
        cpu=(16, 64, 56, 56),
    ),
    Workload(
        "batch norm's statistics f32",
        batch_statistics,
        lambda *sizes: channels(*sizes)[:1],
        torch_batch_statistics,
        cuda=(64, 256, 56, 56),
    ),
    Workload(
        "RMS norm backward bf16",
        rms_norm_backward,
        rows_with(1, rows_in=2),
        torch_rms_norm_backward,
        cuda=(16384, 4096),
        headline=(),
    ),
    Workload(
        "softmax backward bf16",
        softmax_backward,
        rows_with(0, rows_in=2),
        torch_softmax_backward,
        cuda=(16384, 4096),
        headline=(),
    ),
    Workload(
        "log_softmax bf16",
        log_softmax,
        rows_with(0),
        lambda t, x: t.log_softmax(x, -1),
        cuda=(16384, 4096),
        headline=(),
    ),
    Workload(
        "group norm f32",
        group_norm,
        groups,
        torch_group_norm,
        cuda=(64, 32, 8, 56, 56),
        headline=(),
    ),
    *(
        Workload(
            f"masked attention softmax {name}",
            attention_softmax,
            scores(dtype),
            torch_attention_softmax,
            cuda=(2, 32, 2048, 2048),
            headline=(),
        )
        for name, dtype in (("f32", "float32"), ("bf16", "bfloat16"))
    ),
    Workload(
        "standardise columns f64",
        standardise,
        lambda rows, n: (Array((rows, n), "float64", low=0.0),),
        torch_standardise,
        cpu=(65536, 64),
    ),
)
