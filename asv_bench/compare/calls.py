# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.compare.calls``: what a call takes of arrays that are small.

One addition, and five operations, of arrays of the CPU; each library on its own arrays,
with its own settings, by turns. What is left of a call when there is nothing to compute
is its own cost. With ``--backend cuda`` tensors lie on a GPU, whose queue is not waited
for.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from timeit import Timer
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.compare.cores import rest
from asv_bench.compare.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable

LOOP = 200  # calls that are timed together
TURNS = 60
SIZES = {"cpu": (100, 1_000, 10_000, 100_000), "cuda": (1_000,)}


def _add(x: Any, y: Any) -> Any:
    return x + y


def _five(x: Any, y: Any) -> Any:
    return np.exp((x - y) * (x + y)) + 1


def _in_words_of(
    xp: Any, function: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """Return the same function in the words of another library."""
    if function is _add:
        return _add

    def five(x: Any, y: Any) -> Any:
        return xp.exp((x - y) * (x + y)) + 1

    return five


FUNCTIONS = {"x + y": _add, "five operations": _five}


def calls(name: str, size: int) -> dict[str, Callable[[], Any]]:
    """Return the call of each library that is installed."""
    import nfuser

    plain = FUNCTIONS[name]
    x, y = np.random.default_rng(0).random((2, size), dtype=np.float32)
    fused = nfuser.fuse(plain)
    found: dict[str, Callable[[], Any]] = {
        "nfuser": partial(fused, x, y),
        "NumPy": partial(plain, x, y),
    }
    if find_spec("torch"):
        torch = import_module("torch")
        a, b = torch.from_numpy(x), torch.from_numpy(y)
        found["nfuser, torch tensors"] = partial(fused, a, b)
        found["torch"] = partial(_in_words_of(torch, plain), a, b)
    if find_spec("jax"):
        jax = import_module("jax")
        traced = jax.jit(_in_words_of(jax.numpy, plain))
        c, d = jax.numpy.asarray(x), jax.numpy.asarray(y)
        found["JAX"] = lambda: traced(c, d).block_until_ready()
    return found


def calls_of_tensors(name: str, size: int, device: str) -> dict[str, Callable[[], Any]]:
    """Return calls of torch's tensors on a device, those too that are bound to them."""
    import nfuser

    torch: Any = import_module("torch")
    plain = FUNCTIONS[name]
    fused = nfuser.fuse(plain)
    x, y = torch.rand((2, size), device=device)
    found: dict[str, Callable[[], Any]] = {
        "nfuser": partial(fused, x, y),
        "torch": partial(_in_words_of(torch, plain), x, y),
        "nfuser, bound": fused.bind(x, y),
        "nfuser, bound with out=": fused.bind(x, y, out=torch.empty_like(x)),
    }
    if device == "cuda" and find_spec("cupy"):
        cupy: Any = import_module("cupy")
        a, b = cupy.asarray(x), cupy.asarray(y)
        found["nfuser, CuPy arrays"] = partial(fused, a, b)
        found["cupy.fuse"] = partial(cupy.fuse()(_in_words_of(cupy, plain)), a, b)
    return found


def row(name: str, size: int, backend: str) -> dict[str, Any]:
    """Return what one function takes with each library."""
    on_gpu = backend == "cuda"
    made = calls_of_tensors(name, size, "cuda") if on_gpu else calls(name, size)
    wait = import_module("torch").cuda.synchronize if on_gpu else rest
    timers = {library: Timer(call) for library, call in made.items()}
    found: dict[str, list[float]] = {library: [] for library in timers}
    order, shuffle = list(timers.items()), Random(0).shuffle
    for _ in range(TURNS):
        shuffle(order)
        for library, timer in order:
            timer.timeit(5)
            wait()
            found[library].append(timer.timeit(LOOP) / LOOP)
    values = {library: median(seconds) for library, seconds in found.items()}
    return {"name": f"{name}, {size:,} elements", "values": values}


def main() -> None:
    """Measure, tell as it goes, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=SIZES, default="cpu")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = provenance(given.backend) | {"unit": "s"}
    rows: list[dict[str, Any]] = []
    for name in FUNCTIONS:
        for size in SIZES[given.backend]:
            rows.append(row(name, size, given.backend))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    if given.json:
        given.json.write_text(json.dumps(found | {"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
