# SPDX-License-Identifier: Apache-2.0
"""What the first calls of long functions take: seconds, in fresh processes.

``python asv_bench/benchmarks/long_functions.py`` prints a table: nfuser with an empty
cache and with a full one, and ``jax.jit`` of the same function where JAX is there. What
a process does once, whatever it compiles, is done before: a short function is called.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = (
    "sines 100",
    "sines 300",
    "mixed 250",
    "mixed 500",
    "mixed 1000",
    "mixed 2000",
    "rotations 80",
    "sweeps 9",
    "borders 9",
    "shifts 600",
    "arrays 1000",
)
_HEAD = "program | empty cache | compiled | full cache | Numba then | jax.jit"


def _turns(count: int) -> tuple[int, ...]:
    """Return the turns of a loop that is written down: a range would stay a loop."""
    return tuple(range(count))


def sines(xp: Any, count: int, u: Any, k: Any) -> Any:
    for _ in _turns(count):
        u = u + k * xp.sin(u)
    return u


def mixed(xp: Any, count: int, u: Any, k: Any) -> Any:
    """A quarter of the operations are sines."""
    v = u + k
    for _ in _turns(count // 4):
        u = xp.sin(u * v) + u
        v = xp.maximum(v, u)
    return u, v


def rotations(xp: Any, count: int, u: Any, k: Any) -> Any:
    for _ in _turns(count):
        u = u + k * (xp.roll(u, 1) - 2 * u + xp.roll(u, -1))
    return u


def sweeps(xp: Any, count: int, u: Any, k: Any) -> Any:
    for _ in _turns(count):
        for axis in (0, 1):
            u = u + k * (xp.roll(u, 1, axis) - 2 * u + xp.roll(u, -1, axis))
    return u


def borders(xp: Any, count: int, u: Any, k: Any) -> Any:
    for _ in _turns(count):
        h = u[1:] - u[:-1]
        h = xp.concatenate([h[:1] * 0, h, h[-1:] * 0], axis=0)
        u = u + k * (h[1:] - h[:-1])
        h = u[:, 1:] - u[:, :-1]
        h = xp.concatenate([h[:, :1] * 0, h, h[:, -1:] * 0], axis=1)
        u = u + k * (h[:, 1:] - h[:, :-1])
    return u


def shifts(xp: Any, count: int, *given: Any) -> Any:
    """Slices, joins and rotations of nine arrays."""
    q = list(given)
    for i in _turns(count // 14):
        a, b, c = q[i % 9], q[(i + 1) % 9], q[(i + 4) % 9]
        m = 0.5 * (b[:, 1:] + b[:, :-1])
        m = xp.concatenate([m, b[:, -1:]], axis=1)
        q[i % 9] = a + 0.01 * (xp.roll(a, 1, 0) - a) * m - 0.02 * c * xp.roll(c, -1, 1)
    return tuple(q)


def arrays(_xp: Any, _count: int, *given: Any) -> Any:
    total = given[0]
    for one in given[1:]:
        total = total + one
    return total


_FUNCTIONS = {
    f.__name__: f for f in (sines, mixed, rotations, sweeps, borders, shifts, arrays)
}


def _arguments(name: str, count: int) -> list[Any]:
    random = import_module("numpy").random.default_rng(0)
    if name == "arrays":
        return [random.random(100) for _ in range(count)]
    if name == "shifts":
        return [random.random((64, 64)) for _ in range(9)]
    shape = (64, 64) if name in ("sweeps", "borders") else 1000
    return [random.random(shape), 0.1]


def _compiled(compiler: str) -> tuple[Callable[..., Any], Any]:
    if compiler == "nfuser":
        return import_module("nfuser").fuse, import_module("numpy")
    jax = import_module("jax")
    jax.config.update("jax_enable_x64", True)
    wait = jax.block_until_ready
    return lambda f: partial(_waited, wait, jax.jit(f)), import_module("jax.numpy")


def _waited(wait: Any, function: Any, *arguments: Any) -> Any:
    return wait(function(*arguments))


def _first_call(compiler: str, program: str) -> dict[str, Any]:
    """Make the first call of a program in this process; return what it took."""
    name, _, count = program.partition(" ")
    compile_it, xp = _compiled(compiler)
    given = _arguments(name, int(count))

    def function(*arguments: Any) -> Any:
        return _FUNCTIONS[name](xp, int(count), *arguments)

    compile_it(lambda x: x * 2.0 + 1.0)(given[0])
    made = compile_it(function)
    begin = perf_counter()
    made(*given)
    found: dict[str, Any] = {"seconds": perf_counter() - begin}
    if compiler == "nfuser":
        found["compiled"] = made.cache_info().compiled
        found["numba"] = "numba" in sys.modules
    return found


def measure(compiler: str, program: str, folder: str) -> dict[str, Any]:
    """Make a first call in a fresh process whose cache lies in ``folder``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--one", compiler, program],
        env={**os.environ, "NFUSER_CACHE_DIR": folder},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _row(program: str) -> str:
    with tempfile.TemporaryDirectory(prefix="nfuser-long-") as folder:
        cold = measure("nfuser", program, folder)
        warm = measure("nfuser", program, folder)
        peer = "-"
        if find_spec("jax") is not None:
            peer = f"{measure('jax', program, folder)['seconds']:.2f}"
    numba = "yes" if warm["numba"] else "no"
    cells = [f"{cold['seconds']:.2f}", str(cold["compiled"])]
    return " | ".join([program, *cells, f"{warm['seconds']:.2f}", numba, peer])


class LongFunctions:
    """Seconds to the result of a first call."""

    params = (PROGRAMS, ("empty", "full"))
    param_names = ("program", "cache")
    unit = "s"
    timeout = 300

    def track_seconds(self, program: str, cache: str) -> float:
        with tempfile.TemporaryDirectory(prefix="nfuser-long-") as folder:
            found = measure("nfuser", program, folder)
            if cache == "full":
                found = measure("nfuser", program, folder)
        return found["seconds"]


def main() -> None:
    """Print a table, or measure one call in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    given = parser.parse_args()
    if given.one:
        sys.stdout.write(json.dumps(_first_call(*given.one)) + "\n")
        return
    sys.stdout.write(_HEAD + "\n")
    for program in given.programs:
        sys.stdout.write(_row(program) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
