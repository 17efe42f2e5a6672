# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.compare.first_calls``: seconds until a first result is there.

Each in a process of its own, whose caches are empty or hold what one before it left:
two short functions, or with ``--long`` those that unroll loops.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from asv_bench.benchmarks import fresh_process, long_functions
from asv_bench.compare.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT = {"gelu": "gelu(x + b)", "layer_norm": "layer norm"}


def _both(measure: Callable[[str], float]) -> tuple[float, float]:
    """Return the seconds of a process that finds empty caches, and of one after it."""
    with tempfile.TemporaryDirectory(prefix="nfuser-first-calls-") as folder:
        return measure(folder), measure(folder)


def compilers(backend: str) -> dict[str, tuple[str, str]]:
    """Return by name who compiles, and for the arrays of which library."""
    if backend == "cuda":
        return {
            "nfuser, NumPy arrays": ("nfuser", "numpy"),
            "nfuser, CUDA tensors": ("nfuser", "cuda"),
            "torch.compile, CUDA tensors": ("torch.compile", "cuda"),
        }
    found = {"nfuser": ("nfuser", "numpy")}
    if find_spec("torch"):
        found["torch.compile"] = "torch.compile", "torch"
    return found


def short_rows(repeat: int, backend: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each short function and state of the caches."""
    chosen = compilers(backend)
    for function, name in SHORT.items():
        found: dict[str, list[tuple[float, float]]] = {c: [] for c in chosen}
        for turn in range(repeat + 1):
            for compiler, (who, library) in chosen.items():
                asked = who, function, library
                both = _both(lambda f, a=asked: _seconds(fresh_process.measure(*a, f)))
                if turn:  # the first one leaves compiled modules behind
                    found[compiler].append(both)
        for k, state in enumerate(("empty cache", "filled cache")):
            values = {c: median(both[k] for both in found[c]) for c in chosen}
            yield {"name": f"{name}, {state}", "values": values}


def long_rows() -> Iterator[dict[str, Any]]:
    """Yield a row for each long function."""
    for program in long_functions.PROGRAMS:
        asked = "nfuser", program
        empty, full = _both(lambda f, a=asked: _seconds(long_functions.measure(*a, f)))
        values = {"nfuser, empty cache": empty, "nfuser, filled cache": full}
        if find_spec("jax"):
            values["JAX"] = _seconds(long_functions.measure("jax", program, ""))
        yield {"name": program, "values": values}


def _seconds(found: dict[str, Any]) -> float:
    return found["seconds"]


def main() -> None:
    """Measure, tell as it goes, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    # Modules come compiled, as they do once they are installed.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    header = provenance(given.backend) | {"unit": "s"}
    rows: list[dict[str, Any]] = []
    for row in long_rows() if given.long else short_rows(given.repeat, given.backend):
        rows.append(row)
        sys.stdout.write(f"{row}\n")
        sys.stdout.flush()
        if given.json:
            given.json.write_text(json.dumps(header | {"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
