# SPDX-License-Identifier: Apache-2.0
"""What the first calls of a process cost, beyond importing the library of its arrays.

``python asv_bench/benchmarks/fresh_process.py`` prints a table: nfuser with an empty
cache and with a full one (there the second call too, which sets up native ones), and
torch.compile with an empty one; ``taskset -c 0,1`` before it leaves two cores. Each
cell is the least of ``--repeat`` processes. Bytecode has to be there, so the first one
does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from time import perf_counter
from typing import Any

FUNCTIONS = ("gelu", "layer_norm")
LIBRARIES = ("numpy", "torch", "cuda")  # the last: torch's tensors on the GPU
_CACHES = ("NFUSER_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")

_HEAD = (
    "function | arrays | cold | front half | warm | 2nd call | Numba | torch.compile"
)


def _function(name: str, library: Any) -> Any:
    def gelu(x: Any, bias: Any) -> Any:
        v = x + bias
        return 0.5 * v * (1 + library.tanh(0.7978845608 * (v + 0.044715 * v**3)))

    def layer_norm(x: Any, weight: Any) -> Any:
        c = x - x.mean(-1, keepdims=True)
        return c / library.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * weight

    return {"gelu": gelu, "layer_norm": layer_norm}[name]


def _first_call(compiler: str, function: str, library: str) -> dict[str, Any]:
    """Make the first call of this process; return what it took."""
    module = import_module("numpy" if library == "numpy" else "torch")
    x, w = module.ones((64, 128)), module.ones(128)
    if library == "numpy":
        x, w = x.astype("f4"), w.astype("f4")
    if library == "cuda":
        x, w = x.cuda(), w.cuda()
        module.cuda.synchronize()
    numpy = import_module("numpy")
    begin = perf_counter()
    if compiler == "nfuser":
        made = import_module("nfuser").fuse(_function(function, numpy))
    else:
        made = module.compile(_function(function, module))
    made(x, w)
    if library == "cuda":
        module.cuda.synchronize()
    timing: Any = sys.modules.get("nfuser.base.debug.timing")
    spent: dict[str, float] = timing.table() if timing else {}
    found: dict[str, Any] = {"seconds": perf_counter() - begin}
    begin = perf_counter()
    made(x, w)
    found["second"] = perf_counter() - begin
    if compiler == "nfuser":
        late = ("compile", "load")
        front = sum(s for n, s in spent.items() if n not in late and "." not in n)
        found["front"] = front / found["seconds"]
        found["compiled"] = made.cache_info().compiled
        found["numba"] = "numba" in sys.modules
    return found


def measure(compiler: str, function: str, library: str, folder: str) -> dict[str, Any]:
    """Make a first call in a fresh process whose caches lie in ``folder``."""
    command = [sys.executable, __file__, "--one", compiler, function, library]
    done = subprocess.run(
        command,
        env={**os.environ, **dict.fromkeys(_CACHES, folder)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def cold(compiler: str, function: str, library: str) -> dict[str, Any]:
    """Make a first call in a fresh process with empty caches."""
    with tempfile.TemporaryDirectory(prefix="nfuser-first-call-") as folder:
        return measure(compiler, function, library, folder)


def _least(found: list[dict[str, Any]]) -> dict[str, Any]:
    return min(found, key=lambda one: one["seconds"])


def _row(function: str, library: str, repeat: int, *, peer: bool) -> str:
    cold("nfuser", function, library)
    first = _least([cold("nfuser", function, library) for _ in range(repeat)])
    with tempfile.TemporaryDirectory(prefix="nfuser-first-call-") as folder:
        measure("nfuser", function, library, folder)
        again = (measure("nfuser", function, library, folder) for _ in range(repeat))
        second = _least([*again])
    cells = [f"{first['seconds']:.2f}", f"{first['front']:.0%}"]
    cells += [f"{second['seconds']:.3f}", f"{second['second']:.3f}"]
    cells.append("yes" if second["numba"] else "no")
    theirs = "-"
    if peer and library != "numpy":
        theirs = f"{cold('torch.compile', function, library)['seconds']:.2f}"
    return " | ".join([function, library, *cells, theirs])


def main() -> None:
    """Print a table, or measure one call in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--libraries", nargs="*", choices=LIBRARIES, default=["numpy"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-peer", action="store_true", help="no torch.compile")
    asked = parser.parse_args()
    if asked.one:
        sys.stdout.write(json.dumps(_first_call(*asked.one)) + "\n")
        return
    cores = len(os.sched_getaffinity(0))
    sys.stdout.write(f"{cores} cores; seconds, imports of nfuser included\n{_HEAD}\n")
    for library in asked.libraries:
        for function in FUNCTIONS:
            row = _row(function, library, asked.repeat, peer=not asked.no_peer)
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
