# SPDX-License-Identifier: Apache-2.0
"""Random numbers on the CPU: ``python -m asv_bench.compare.draws_cpu``.

Each row runs in turns with what it is compared to, in one process, into arrays that are
there: uniform and normal numbers beside the best of NumPy's generators, JAX and torch,
where they are installed; the same on two threads; a layer with dropout beside the same
without it; and the price of a call option by Monte Carlo. Names of rows choose some.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tracemalloc
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
from nfuser.config import override
from nfuser.nn import dropout
from nfuser.random import default_rng

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTS = 1 << 20
PATHS = int(os.environ.get("PATHS", "100000000"))
_OPTION: Any = tuple(map(np.float32, (100.0, 105.0, 0.02, 0.3, 1.0)))


def _milliseconds(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    for call in calls.values():
        call()
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = perf_counter()
            call()
            times[name].append((perf_counter() - begin) * 1e3)
    return {name: median(found) for name, found in times.items()}


def _shown(row: str, times: dict[str, float]) -> None:
    ours, *others = times
    listed = ", ".join(f"{name} {times[name] / times[ours]:.2f}" for name in others)
    sys.stdout.write(f"{row:24} {times[ours]:9.3f} ms; of it: {listed}\n")


def _has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def uniform(out: Any, rng: Any) -> None:
    """Fill with uniform numbers."""
    out[...] = rng.random(out.shape, out.dtype)


def normal(out: Any, rng: Any) -> None:
    """Fill with normal numbers."""
    out[...] = rng.standard_normal(out.shape, out.dtype)


def _numbers(name: str, ours: Any, dtype: Any) -> None:
    out = np.empty(ELEMENTS, dtype)
    fused, rng = nfuser.fuse(ours), default_rng(1)
    calls: dict[str, Callable[[], Any]] = {"nfuser": lambda: fused(out, rng)}
    method = "random" if ours is uniform else "standard_normal"
    for bits in (np.random.PCG64, np.random.SFC64):
        draw = getattr(np.random.Generator(bits(1)), method)
        calls[bits.__name__] = lambda draw=draw: draw(dtype=dtype, out=out)
    if _has("torch"):
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(1)
        x = torch.from_numpy(out)
        calls["torch"] = x.uniform_ if ours is uniform else x.normal_
    if _has("jax"):
        jax: Any = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        drawn = jax.random.uniform if ours is uniform else jax.random.normal

        def numbers(key: Any) -> Any:
            return drawn(key, (ELEMENTS,), dtype)

        compiled = jax.jit(numbers)
        key = jax.random.key(1)
        calls["JAX"] = lambda: compiled(key).block_until_ready()
    _shown(name, _milliseconds(calls, 15))


def _threads(name: str, ours: Any, dtype: Any) -> None:
    out, rng = np.empty(4 * ELEMENTS, dtype), default_rng(1)
    fused = nfuser.fuse(ours)

    def on(count: int) -> Callable[[], None]:
        def call() -> None:
            with override(num_threads=count):
                fused(out, rng)

        return call

    times = _milliseconds({"two threads": on(2), "one thread": on(1)}, 15)
    _shown(f"{name}, two threads", times)


def _gelu(x: Any, b: Any) -> Any:
    y = x + b
    return 0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)))


def _plain(x: Any, b: Any, out: Any) -> None:
    out[...] = _gelu(x, b)


def _dropped(x: Any, b: Any, rng: Any, out: Any) -> None:
    out[...] = dropout(_gelu(x, b), 0.1, rng=rng)


def _layer(rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 4096)).astype(np.float32)
    b, out, rng = x[0].copy(), np.empty_like(x), default_rng(3)
    plain, dropped = nfuser.fuse(_plain), nfuser.fuse(_dropped)
    calls: dict[str, Callable[[], Any]] = {
        "without": lambda: plain(x, b, out),
        "with dropout": lambda: dropped(x, b, rng, out),
    }
    _shown(f"dropout(gelu), {rows} rows", _milliseconds(calls, 4096 // rows * 3 + 4))


def price(s: Any, k: Any, r: Any, sigma: Any, t: Any, n: Any, rng: Any) -> Any:
    """Return the price of a call option, by as many paths."""
    z = rng.standard_normal(n, np.float32)
    end = s * np.exp((r - 0.5 * sigma * sigma) * t + sigma * np.sqrt(t) * z)
    paid = np.maximum(end - k, np.float32(0))
    return np.mean(paid, dtype=np.float64) * np.exp(-r * t)


def _monte_carlo(name: str) -> None:
    fused: Any = nfuser.fuse(price)
    rng = default_rng(1)
    ours = fused(*_OPTION, PATHS, rng)
    kernels = fused.explain(*_OPTION, PATHS, rng).kernels
    calls: dict[str, Callable[[], Any]] = {
        "nfuser": lambda: fused(*_OPTION, PATHS, rng)
    }
    plain: Any = price
    for bits in (np.random.PCG64, np.random.SFC64):
        theirs = np.random.Generator(bits(1))
        calls[bits.__name__] = partial(plain, *_OPTION, PATHS, theirs)
    if _has("jax"):
        jax: Any = importlib.import_module("jax")
        jnp: Any = jax.numpy

        def drawn(s: Any, k: Any, r: Any, sigma: Any, t: Any, key: Any) -> Any:
            z = jax.random.normal(key, (PATHS,), np.float32)
            end = s * jnp.exp((r - 0.5 * sigma * sigma) * t + sigma * jnp.sqrt(t) * z)
            return jnp.mean(jnp.maximum(end - k, 0)) * jnp.exp(-r * t)

        compiled, key = jax.jit(drawn), jax.random.key(1)
        calls["JAX"] = lambda: compiled(*_OPTION, key).block_until_ready()
    tracemalloc.start()
    fused(*_OPTION, PATHS, rng)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    told = f"a call costs {ours:.4f}, in {kernels} kernel and {most} bytes of memory"
    sys.stdout.write(f"{told}, by {PATHS:.0e} paths\n")
    _shown(name, _milliseconds(calls, 3))


ROWS: dict[str, Callable[[str], None]] = {
    "uniform f32": lambda name: _numbers(name, uniform, np.float32),
    "uniform f64": lambda name: _numbers(name, uniform, np.float64),
    "normal f32": lambda name: _numbers(name, normal, np.float32),
    "normal f64": lambda name: _numbers(name, normal, np.float64),
    "threads uniform f32": lambda name: _threads(name, uniform, np.float32),
    "threads normal f64": lambda name: _threads(name, normal, np.float64),
    "dropout 256": lambda _: _layer(256),
    "dropout 4096": lambda _: _layer(4096),
    "call price": _monte_carlo,
}


if __name__ == "__main__":
    with override(num_threads=1):
        for row in sys.argv[1:] or ROWS:
            ROWS[row](row)
