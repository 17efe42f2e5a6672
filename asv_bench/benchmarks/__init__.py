# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: seeded arrays, the fused functions, timing on the GPU.

Absolute times on a shared CPU are noise, so kernels are tracked as a ratio to a peer
that runs in the same process, one call after the other.
"""

from __future__ import annotations

import os
import tempfile
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

# A cache of its own: a kernel that another process left behind would flatter the
# first call.
os.environ.setdefault("NFUSER_CACHE_DIR", tempfile.mkdtemp(prefix="nfuser-asv-"))


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    """Return seeded random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def gelu(x: Any, bias: Any) -> Any:
    """Return the tanh form of gelu of ``x + bias``."""
    y = x + bias
    return y * 0.5 * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def softmax(x: Any) -> Any:
    """Return the softmax of each row."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    """Return each row with mean 0 and variance 1, scaled and shifted."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def rms_norm(x: Any, weight: Any) -> Any:
    """Return each row divided by its root mean square, scaled."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


def swiglu(x: Any, gate: Any) -> Any:
    """Return ``x`` times the gate's ``g * sigmoid(g)``."""
    return x * (gate / (1 + np.exp(-gate)))


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], repeat: int = 7) -> float:
    """Return seconds of ``theirs`` over seconds of ``ours``, taken by turns."""
    ours(), theirs()
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(repeat)]
    return median(peer for _, peer in pairs) / median(own for own, _ in pairs)


def _seconds(call: Callable[[], Any]) -> float:
    begin = perf_counter()
    call()
    return perf_counter() - begin


def require(name: str) -> Any:
    """Return a library, or skip the benchmark where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise NotImplementedError from error


def require_torch_cuda() -> Any:
    """Return torch, or skip the benchmark where there is no GPU."""
    torch = require("torch")
    if not torch.cuda.is_available():
        raise NotImplementedError
    return torch
