# SPDX-License-Identifier: Apache-2.0
"""Random numbers on a GPU: ``python -m asv_bench.compare.draws``.

Uniform numbers beside a fill of as many bytes, and a layer with dropout beside the same
layer without it, each in turns on one device. Without a GPU, ``--try`` runs both small,
on the interpreter, and prints how many kernels they are.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

import nfuser
from nfuser.nn import dropout
from nfuser.random import default_rng

ELEMENTS = 1 << 28
ROWS, COLUMNS = 8192, 4096
TYPES = ("float32", "bfloat16")
EPSILON = 1e-6


def uniform(x: Any, rng: Any) -> Any:
    """Return uniform numbers of the shape and dtype of ``x``."""
    return rng.random(x.shape, x.dtype)


def normal(x: Any, rng: Any) -> Any:
    """Return normal numbers of the shape and dtype of ``x``."""
    return rng.standard_normal(x.shape, x.dtype)


def plain(x: Any, residual: Any, weight: Any) -> Any:
    """Return a sum, and its RMS norm."""
    total = residual + x
    square = np.mean(np.square(total.astype(np.float32)), -1, keepdims=True)
    scale = 1 / np.sqrt(square + EPSILON)
    return total, (total * scale).astype(x.dtype) * weight


def dropped(x: Any, residual: Any, weight: Any, rng: Any) -> Any:
    """Return the same of what dropout leaves of ``x``."""
    return plain(dropout(x, 0.1, rng=rng), residual, weight)


def measure() -> None:
    """Print times and their ratios."""
    torch: Any = importlib.import_module("torch")

    from asv_bench.compare.timing import FLUSH_BYTES, gpu_seconds

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def milliseconds(*calls: Any) -> list[float]:
        # Two rounds of turns; the faster time of each counts.
        rounds = [[gpu_seconds(torch, [c], flush) for c in calls] for _ in range(3)]
        return [min(times) * 1e3 for times in zip(*rounds, strict=True)]

    for name in ("float32", "float64"):
        x = torch.empty(ELEMENTS, dtype=getattr(torch, name), device="cuda")
        rng = default_rng(1)
        out = torch.empty_like(x)
        draw = nfuser.fuse(uniform).bind(x, rng, out=out)
        other = nfuser.fuse(normal).bind(x, rng, out=out)
        times = milliseconds(lambda x=x: x.fill_(1), draw, other, x.uniform_, x.normal_)
        fill, ours, bell, theirs, their_bell = times
        _print(f"uniform {name}", ours, fill, f"torch {theirs:.3f}")
        _print(f"normal {name}", bell, fill, f"torch {their_bell:.3f}")
    for name in TYPES:
        kind = getattr(torch, name)
        x, residual = torch.randn(2, ROWS, COLUMNS, dtype=kind, device="cuda")
        weight = torch.randn(COLUMNS, dtype=kind, device="cuda")
        without = nfuser.fuse(plain).bind(x, residual, weight)
        with_it = nfuser.fuse(dropped).bind(x, residual, weight, default_rng(1))
        base, ours = milliseconds(without, with_it)
        _print(f"dropout + residual + RMS norm {name}", ours, base)


def _print(row: str, ours: float, base: float, more: str = "") -> None:
    ratio = f"{ours / base:.2f} of {base:.3f}, {base / ours:.2f} of its speed"
    sys.stdout.write(f"{row:40} {ours:.3f} ms, {ratio}  {more}\n")


def rehearse() -> None:
    """Run both on the interpreter."""
    x, rng = np.ones((4, 64), np.float32), default_rng(1)
    rows: list[tuple[Any, tuple[Any, ...]]] = [
        (uniform, (x, rng)),
        (normal, (x, rng)),
        (plain, (x, x, x[0])),
        (dropped, (x, x, x[0], rng)),
    ]
    for function, arguments in rows:
        fused = nfuser.fuse(function, backend="interpret")
        fused(*arguments)
        kernels = len(fused.kernels(*arguments))
        sys.stdout.write(f"{function.__name__}: {kernels} kernels\n")


if __name__ == "__main__":
    rehearse() if "--try" in sys.argv else measure()
