# SPDX-License-Identifier: Apache-2.0
"""Named small fusions, with arguments for them, that tests of every stage share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.numpy as xp
from tests.fuzz.arrays import build

if TYPE_CHECKING:
    from collections.abc import Callable

Spec = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A function, and the dtypes and shapes (or the numbers) to call it with."""

    function: Callable[..., Any]
    specs: tuple[Spec | int | float, ...]

    def arguments(self, seed: int = 0, scale: int = 1) -> list[Any]:
        """Return arrays and numbers; ``scale`` multiplies all sizes but 1."""
        return [
            spec if isinstance(spec, int | float) else _array(spec, seed + k, scale)
            for k, spec in enumerate(self.specs)
        ]


def _array(spec: Spec, seed: int, scale: int) -> np.ndarray[Any, Any]:
    dtype, shape = spec
    return build(dtype, tuple(n if n == 1 else n * scale for n in shape), seed=seed)


CASES: dict[str, Case] = {}


def _case(
    *specs: Spec | int | float,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = Case(function, specs)
        return function

    return register


F, H, B, D = "float32", "float16", "bfloat16", "float64"


@_case((F, (24, 48)), (F, (48,)))
def gelu_bias(x: Any, b: Any) -> Any:
    """Gelu of a sum with a row."""
    return xp.gelu(x + b)


@_case((B, (24, 48)), (B, (48,)))
def gelu_tanh_bias_bf16(x: Any, b: Any) -> Any:
    """The tanh form of gelu in bfloat16."""
    return xp.gelu(x + b, approximate="tanh")


@_case((H, (16, 40)), (H, (16, 40)))
def swiglu_f16(gate: Any, up: Any) -> Any:
    """A gated unit in float16."""
    return xp.silu(gate) * up


@_case((F, (12, 100)))
def softmax(x: Any) -> Any:
    """Softmax of rows."""
    return xp.softmax(x, axis=-1)


@_case((B, (12, 64)))
def softmax_bf16(x: Any) -> Any:
    """Softmax of rows in bfloat16."""
    return xp.softmax(x, axis=-1)


@_case((F, (33, 7)))
def softmax_of_columns(x: Any) -> Any:
    """Softmax along the outer axis."""
    return xp.softmax(x, axis=0)


@_case((F, (9, 33)))
def log_softmax(x: Any) -> Any:
    """Logarithm of softmax."""
    return xp.log_softmax(x, axis=-1)


@_case((F, (10, 64)), (F, (64,)), (F, (64,)))
def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Layer norm with weight and bias."""
    return xp.layer_norm(x, weight, bias)


@_case((H, (10, 64)), (H, (64,)), (H, (64,)))
def layer_norm_f16(x: Any, weight: Any, bias: Any) -> Any:
    """Layer norm in float16."""
    return xp.layer_norm(x, weight, bias)


@_case((F, (10, 48)), (F, (10, 48)), (F, (48,)))
def rms_norm_residual(x: Any, residual: Any, weight: Any) -> Any:
    """RMS norm of a sum, with the sum as a second output."""
    total = x + residual
    return xp.rms_norm(total, weight), total


@_case((F, (4, 6, 5, 5)))
def batch_norm_statistics(x: Any) -> Any:
    """Mean and variance of each channel."""
    return np.mean(x, axis=(0, 2, 3)), np.var(x, axis=(0, 2, 3))


@_case((F, (4, 6, 5, 5)), (F, (6,)), (F, (6,)))
def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Normalize each channel by its own statistics."""
    mean = np.mean(x, axis=(0, 2, 3), keepdims=True)
    scale = xp.rsqrt(np.var(x, axis=(0, 2, 3), keepdims=True) + 1e-5)
    weight, bias = (np.expand_dims(p, (1, 2)) for p in (weight, bias))
    return (x - mean) * scale * weight + bias


@_case((F, (40, 25)))
def chain_of_thirty(x: Any) -> Any:
    """Thirty operations, one after another."""
    for k in range(10):
        x = np.tanh(x * 0.9 + 0.01 * k)
    return x


@_case((D, (6, 50)))
def variance(x: Any) -> Any:
    """Unbiased variance and deviation."""
    return np.var(x, axis=1, correction=1), np.std(x, axis=1, keepdims=True)


@_case((F, (8, 31)))
def argmax_and_max(x: Any) -> Any:
    """Where the largest is, and what it is."""
    return np.argmax(x, axis=1), np.max(x, axis=1)


@_case((F, (3, 8, 4, 6)))
def mixed_axes(x: Any) -> Any:
    """Reductions over axes that do not lie side by side."""
    return np.sum(x, axis=(0, 2)), np.max(x, axis=(1, 3))


@_case((F, (20, 30)), (F, (30, 20)))
def transposed_add(a: Any, b: Any) -> Any:
    """A sum with a transposed operand."""
    return a + b.T


@_case((B, (4, 6, 8)))
def permuted_double(x: Any) -> Any:
    """A permutation and a product in bfloat16."""
    return xp.permute_dims(x, (0, 2, 1)) * 2


@_case((F, (7, 1, 5)), (F, (1, 6, 5)), (F, (5,)))
def broadcast_three(a: Any, b: Any, c: Any) -> Any:
    """Three operands, each stretched along another axis."""
    return a * b + c


@_case((F, (13,)), (F, (17,)))
def outer_sum(a: Any, b: Any) -> Any:
    """Every sum of two vectors' elements, and the sums of its rows."""
    table = a[:, None] + b[None, :]
    return table, np.sum(table, axis=1)


@_case(("int8", (64,)), ("uint8", (64,)), ("int64", (64,)))
def integers(a: Any, b: Any, c: Any) -> Any:
    """Promotion, wrapping and division of integers."""
    return a + b, a * a, c // a, np.sum(b), np.where(a > b, a, 1)


@_case(("complex64", (30,)), ("complex64", (30,)))
def complex_products(a: Any, b: Any) -> Any:
    """Complex arithmetic, a magnitude and a sum."""
    return a * np.conj(b), np.abs(a), np.sum(a + b)


@_case((F, (11, 9)), 0.5, 3)
def run_time_numbers(x: Any, alpha: Any, n: Any) -> Any:
    """An affine form with run-time numbers."""
    return x * alpha + n, np.where(x > alpha, x, n)


@_case((F, (5, 40)), (F, (5, 40)))
def row_statistics(x: Any, y: Any) -> Any:
    """Several reductions of the same rows, that depend on each other."""
    centred = x - np.mean(x, axis=1, keepdims=True)
    other = y - np.mean(y, axis=1, keepdims=True)
    spread = np.sqrt(np.sum(centred**2, axis=1) * np.sum(other**2, axis=1))
    return np.sum(centred * other, axis=1) / spread


@_case((F, (6, 10)))
def flips(x: Any) -> Any:
    """An array and its mirror image."""
    return x + x[:, ::-1], np.flip(x, axis=0)


@_case((F, (6, 260)), (F, (260,)))
def running_totals(x: Any, w: Any) -> Any:
    """Running sums of scaled rows, scaled themselves."""
    return (x * w).cumsum(axis=1) * 0.5 + w


@_case((B, (40, 70)))
def running_columns(x: Any) -> Any:
    """Running sums and maxima of columns."""
    return np.cumsum(x, axis=0), np.maximum.accumulate(x, axis=0)
