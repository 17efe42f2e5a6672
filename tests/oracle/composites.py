# SPDX-License-Identifier: Apache-2.0
"""Functions that are made of others, for any stand-in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.oracle.number_types import F64, is_float, loop

Axis = Any
NAMES = (
    *("relu", "softmax", "log_softmax", "logsumexp"),
    *("layer_norm", "rms_norm", "var_mean"),
)


def activated(x: Any) -> Any:
    """Return ``x`` as what float functions make of its dtype."""
    dtype = loop(np.exp, x.dtype)[-1]
    return x if dtype == x.dtype else x.astype(dtype)


def floating(x: Any) -> Any:
    """Return ``x`` as what normalizations make of it: integers are float64."""
    return x if is_float(x.dtype) else x.astype(F64)


def relu(x: Any) -> Any:
    """Return what is positive of ``x``."""
    return np.maximum(x, 0)


def silu(x: Any, sigmoid: Any) -> Any:
    """Return ``x * sigmoid(x)``, 0 at -inf."""
    x = activated(x)
    return np.where(x == -math.inf, -0.0, x * sigmoid(x))


def softmax(x: Any, axis: Axis = -1) -> Any:
    """Return exponentials scaled to add up to one."""
    x = floating(x)
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Axis = -1) -> Any:
    """Return the logarithm of softmax."""
    x = floating(x)
    most = np.max(x, axis=axis, keepdims=True)
    away = x - np.where(np.isfinite(most), most, 0.0)
    return away - np.log(np.sum(np.exp(away), axis=axis, keepdims=True))


def logsumexp(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """Return the logarithm of a sum of exponentials."""
    x = floating(x)
    most = np.max(x, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(most), most, 0.0)
    sums = np.sum(np.exp(x - shift), axis=axis, keepdims=True)
    result = np.log(sums) + shift
    if keepdims:
        return result
    every = tuple(range(x.ndim)) if axis is None else axis
    return np.squeeze(result, axis=every)


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, axis: Axis = -1, eps: float = 1e-5
) -> Any:
    """Return ``x`` with its mean taken off and its variance made one."""
    x = floating(x)
    mean = np.mean(x, axis=axis, keepdims=True)
    spread = np.var(x, axis=axis, keepdims=True)
    result = (x - mean) / np.sqrt(spread + eps)
    return _scaled(result, weight, bias)


def rms_norm(x: Any, weight: Any = None, axis: Axis = -1, eps: float = 1e-6) -> Any:
    """Return ``x`` with its mean square made one."""
    x = floating(x)
    square = np.mean(x * x, axis=axis, keepdims=True)
    return _scaled(x / np.sqrt(square + eps), weight, None)


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def var_mean(
    x: Any, axis: Axis = None, correction: float = 0, keepdims: bool = False
) -> Any:
    """Return variance and mean."""
    spread = np.var(x, axis=axis, correction=correction, keepdims=keepdims)
    return spread, np.mean(x, axis=axis, keepdims=keepdims)


def gelu_tanh(x: Any) -> Any:
    """Return the tanh form of gelu."""
    x = activated(x)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + np.tanh(inner))


def gelu_erf(x: Any, erf: Any) -> Any:
    """Return gelu."""
    x = activated(x)
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))
