# SPDX-License-Identifier: Apache-2.0
"""Functions that people differentiate: in NumPy's words, and in torch's."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

import nfuser
from asv_bench.compare.gradient import Gradient
from asv_bench.compare.workload import Array

HALF_LOG = 0.5 * log(2 * pi)


def constant(x: Any) -> Any:
    """Return ``x``, of which no derivative is taken, as the namespace ``np`` has it."""
    if np.__name__ == "jax.numpy":
        import jax

        return jax.lax.stop_gradient(x)
    return nfuser.stop_gradient(x)


# -- activations ---------------------------------------------------------------------


def gelu(x: Any, bias: Any) -> Any:
    y = x + bias
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def torch_gelu(t: Any, x: Any, bias: Any) -> Any:
    return t.nn.functional.gelu(x + bias, approximate="tanh")


def swiglu(x: Any, gate: Any) -> Any:
    return x / (1 + np.exp(-x)) * gate


def torch_swiglu(t: Any, x: Any, gate: Any) -> Any:
    return t.nn.functional.silu(x) * gate


def rope(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    turned = np.concatenate([-x[..., h:], x[..., :h]], axis=-1)
    return x * cos + turned * sin


def torch_rope(t: Any, x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    return x * cos + t.cat([-x[..., h:], x[..., :h]], -1) * sin


# -- rows ----------------------------------------------------------------------------


def softmax(x: Any) -> Any:
    e = np.exp(x - constant(x.max(axis=-1, keepdims=True)))
    return e / e.sum(axis=-1, keepdims=True)


def torch_softmax(t: Any, x: Any) -> Any:
    return t.softmax(x, -1)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def torch_layer_norm(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def rms_norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


def torch_rms_norm(t: Any, x: Any, weight: Any) -> Any:
    return t.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-5)


def add_rms_norm(x: Any, residual: Any, weight: Any) -> Any:
    return rms_norm(x + residual, weight)


def torch_add_rms_norm(t: Any, x: Any, residual: Any, weight: Any) -> Any:
    return torch_rms_norm(t, x + residual, weight)


def cross_entropy(logits: Any, labels: Any) -> Any:
    largest = constant(logits.max(axis=-1, keepdims=True))
    total = np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True)) + largest
    return (total - np.take_along_axis(logits, labels[:, None], axis=-1)).mean()


def torch_cross_entropy(t: Any, logits: Any, labels: Any) -> Any:
    return t.nn.functional.cross_entropy(logits, labels)


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=0)
    variance = (centred * centred).mean(axis=0)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def torch_batch_norm(t: Any, x: Any, weight: Any, bias: Any) -> Any:
    return t.nn.functional.batch_norm(x, None, None, weight, bias, training=True)


def cosine(a: Any, b: Any) -> Any:
    lengths = np.sqrt((a * a).sum(-1) * (b * b).sum(-1) + 1e-8)
    return (a * b).sum(-1) / lengths


def torch_cosine(t: Any, a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / t.sqrt((a * a).sum(-1) * (b * b).sum(-1) + 1e-8)


# -- models --------------------------------------------------------------------------


def huber(weight: Any, x: Any, y: Any) -> Any:
    size = np.abs(x @ weight - y)
    return np.where(size < 1, 0.5 * size * size, size - 0.5).mean()


def torch_huber(t: Any, weight: Any, x: Any, y: Any) -> Any:
    return t.nn.functional.huber_loss(x @ weight, y)


def normal_cdf(x: Any) -> Any:
    return 0.5 * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def black_scholes(
    spot: Any, strike: Any, rate: Any, volatility: Any, years: Any
) -> Any:
    spread = volatility * np.sqrt(years)
    first = (np.log(spot / strike) + rate * years) / spread + 0.5 * spread
    discount = strike * np.exp(-rate * years)
    return spot * normal_cdf(first) - discount * normal_cdf(first - spread)


def torch_black_scholes(
    t: Any, spot: Any, strike: Any, rate: Any, volatility: Any, years: Any
) -> Any:
    def cdf(x: Any) -> Any:
        return 0.5 * (1 + t.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    spread = volatility * t.sqrt(years)
    first = (t.log(spot / strike) + rate * years) / spread + 0.5 * spread
    return spot * cdf(first) - strike * t.exp(-rate * years) * cdf(first - spread)


def differences(x: Any) -> Any:
    along = x[1:] - x[:-1]
    across = x[:, 1:] - x[:, :-1]
    inside = x[..., 1:] - x[..., :-1]
    return (along * along).sum() + (across * across).sum() + (inside * inside).sum()


def torch_differences(t: Any, x: Any) -> Any:
    return sum((t.diff(x, dim=k) ** 2).sum() for k in range(3))


def kalman(mean: Any, variance: Any, seen: Any, noise: Any) -> Any:
    ahead = variance + 0.1
    spread = ahead + np.log1p(np.exp(noise))
    gap = seen - 0.9 * mean
    gain = ahead / spread
    after = 0.9 * mean + gain * gap
    return 0.5 * (np.log(spread) + gap * gap / spread) + 1e-3 * after * after


def torch_kalman(t: Any, mean: Any, variance: Any, seen: Any, noise: Any) -> Any:
    ahead = variance + 0.1
    spread = ahead + t.nn.functional.softplus(noise, threshold=100)
    gap = seen - 0.9 * mean
    gain = ahead / spread
    after = 0.9 * mean + gain * gap
    return 0.5 * (t.log(spread) + gap * gap / spread) + 1e-3 * after * after


def mixture(x: Any, means: Any, scales: Any) -> Any:
    distance = (x[:, None] - means) / np.exp(scales)
    density = -0.5 * distance * distance - scales - HALF_LOG
    largest = constant(density.max(axis=-1, keepdims=True))
    inside = np.exp(density - largest).sum(axis=-1)
    return (np.log(inside) + largest[:, 0]).sum()


def torch_mixture(t: Any, x: Any, means: Any, scales: Any) -> Any:
    distance = (x[:, None] - means) / t.exp(scales)
    return t.logsumexp(-0.5 * distance * distance - scales - HALF_LOG, -1).sum()


def perceptron(a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
    hidden = np.tanh(np.tanh(x @ a) @ b)
    return ((hidden @ c - y) ** 2).mean()


def torch_perceptron(t: Any, a: Any, b: Any, c: Any, x: Any, y: Any) -> Any:
    return ((t.tanh(t.tanh(x @ a) @ b) @ c - y) ** 2).mean()


def _rows(count: int, weights: int = 0) -> Any:
    """Return arrays of rows, then weights of one row, of a dtype for each backend."""
    return lambda dtype, rows, n: (
        *(Array((rows, n), dtype) for _ in range(count)),
        *(Array((n,), dtype) for _ in range(weights)),
    )


def _rope(dtype: str, batch: int, heads: int, rows: int, n: int) -> tuple[Array, ...]:
    table = Array((rows, n), dtype)
    return Array((batch, heads, rows, n), dtype), table, table


def _labelled(dtype: str, rows: int, n: int) -> tuple[Array, ...]:
    return Array((rows, n), dtype), Array((rows,), "int64", high=n)


def _linear(dtype: str, rows: int, n: int) -> tuple[Array, ...]:
    return Array((n,), dtype), Array((rows, n), dtype), Array((rows,), dtype)


def _positive(count: int) -> Any:
    return lambda dtype, n: tuple(Array((n,), dtype, low=0.5) for _ in range(count))


def _mixed(dtype: str, rows: int, n: int) -> tuple[Array, ...]:
    return Array((rows,), dtype), Array((n,), dtype), Array((n,), dtype)


def _layers(dtype: str, rows: int, n: int) -> tuple[Array, ...]:
    shapes = ((8, n), (n, n), (n, 1), (rows, 8), (rows, 1))
    return tuple(Array(shape, dtype) for shape in shapes)


BIG, LONG, CPU_ROWS = (16384, 4096), (8192, 16384), (4096, 2048)
GRADIENTS = (
    Gradient("gelu(x + b)", gelu, torch_gelu, _rows(1, 1), (BIG,), CPU_ROWS),
    Gradient("softmax", softmax, torch_softmax, _rows(1), (BIG, LONG), CPU_ROWS),
    Gradient(
        *("layer norm", layer_norm, torch_layer_norm, _rows(1, 2)),
        *((BIG, LONG), CPU_ROWS),
        is_norm=True,
    ),
    Gradient(
        *("RMS norm", rms_norm, torch_rms_norm, _rows(1, 1), (BIG, LONG), None),
        is_norm=True,
    ),
    Gradient(
        *("add + RMS norm", add_rms_norm, torch_add_rms_norm, _rows(2, 1)),
        *((BIG,), CPU_ROWS),
        is_norm=True,
    ),
    Gradient("SwiGLU", swiglu, torch_swiglu, _rows(2), (BIG,), CPU_ROWS),
    Gradient(
        *("RoPE", rope, torch_rope, _rope, ((2, 32, 8192, 128),), (1, 16, 2048, 128)),
        constants=2,
    ),
    Gradient(
        *("cross entropy", cross_entropy, torch_cross_entropy, _labelled),
        *(((8192, 32768),), (1024, 8192)),
        value="number",
        constants=1,
    ),
    Gradient(
        "batch norm", batch_norm, torch_batch_norm, _rows(1, 2), (BIG,), (16384, 256)
    ),
    Gradient(
        *("Huber loss", huber, torch_huber, _linear, None, (262144, 16), "number"),
        constants=2,
    ),
    Gradient(
        *("Black-Scholes", black_scholes, torch_black_scholes, _positive(5)),
        *(((1 << 24,),), (1 << 20,)),
        dtype="float32",
        loses=3e-5,  # eager torch and torch.compile have 2.1e-5 and 2.5e-5
    ),
    Gradient(
        *("three-axes differences", differences, torch_differences),
        lambda dtype, n: (Array((n, n, n), dtype),),
        *(None, (256,), "number"),
    ),
    Gradient(
        *("cosine similarity", cosine, torch_cosine, _rows(2), (BIG,), CPU_ROWS),
        value="rows",
    ),
    Gradient("soft Kalman step", kalman, torch_kalman, _positive(4), None, (1 << 20,)),
    Gradient("mixture", mixture, torch_mixture, _mixed, None, (262144, 16), "number"),
    Gradient(
        *("perceptron", perceptron, torch_perceptron, _layers, None, (64, 16)),
        value="number",
        constants=2,
        is_headline=False,
    ),
)
