# SPDX-License-Identifier: Apache-2.0
"""Ten cells of a first notebook, each run, edited and run again: who waits how long.

Every session is a process of its own. Cold ones find empty folders where the libraries
keep what they compiled; warm ones find what the session before them left.
"""

# JAX has no types, and who is asked for is found by name.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingImports=false
# pyright: reportUnusedFunction=false

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.compare.notebook_cells import CELLS, data
from asv_bench.compare.provenance import provenance
from asv_bench.compare.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARIES = ("nfuser", "numba", "jax")
BYTECODE = str(Path(tempfile.gettempdir()) / "nfuser_notebook_bytecode")
PARTS = ("import", *(cell.name for cell in CELLS))


def _nfuser() -> tuple[Callable[[Any], Any], Any]:
    import nfuser

    return nfuser.fuse, np


def _numba() -> tuple[Callable[[Any], Any], Any]:
    import numba

    return numba.njit(cache=True), np


def _jax() -> tuple[Callable[[Any], Any], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", os.environ["NOTEBOOK_JAX"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return lambda f: _ready(jax, jax.jit(f)), jax.numpy


def _ready(jax: Any, compiled: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: jax.block_until_ready(compiled(*args))


def session(library: str, folder: Path) -> dict[str, list[float]]:
    """Return the seconds that a user waits: of the import, and of each cell's runs."""
    given = data()
    start = perf_counter()
    decorate, namespace = globals()[f"_{library}"]()
    waited = {"import": [perf_counter() - start]}
    for cell in CELLS:
        arguments = [given[name] for name in cell.arguments]
        waited[cell.name] = []
        plain_texts = cell.versions("numpy")
        texts = cell.versions(library)
        for number, (text, plain) in enumerate(zip(texts, plain_texts, strict=True)):
            file = folder / f"{cell.name}_{number}.py".replace(" ", "_")
            if not file.exists():
                file.write_text(text)  # where Numba's cache looks for it
            start = perf_counter()
            found = decorate(_function(text, namespace, str(file)))(*arguments)
            waited[cell.name].append(perf_counter() - start)
            exact = _listed(_function(plain, np, "")(*arguments))
            for a, b in zip(_listed(found), exact, strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-9, atol=1e-9)
    return waited


def _function(text: str, namespace: Any, file: str) -> Callable[..., Any]:
    names: dict[str, Any] = {"np": namespace, "__name__": "__main__"}
    exec(compile(text, file, "exec"), names)  # noqa: S102 (a cell is run so)
    return names["f"]


def _listed(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def sessions(library: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return what a cold session waits for, and a warm one after it."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {"NFUSER_CACHE_DIR": "nfuser", "NUMBA_CACHE_DIR": "numba"}
        kept["NOTEBOOK_JAX"] = "jax"
        settings = {name: f"{folder}/{place}" for name, place in kept.items()}
        # Modules come compiled, as they do once they are installed.
        settings |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": BYTECODE}
        command = [sys.executable, "-m", "asv_bench.compare.notebook"]
        command += ["--session", library, folder]
        runs = [
            json.loads(
                subprocess.run(
                    command,
                    env={**os.environ, **settings},
                    check=True,
                    stdout=subprocess.PIPE,
                ).stdout
            )
            for _ in range(2)
        ]
    return runs[0], runs[1]


def middle(found: list[dict[str, list[float]]]) -> dict[str, list[float]]:
    """Return the session whose total is the middle one."""
    totals = sorted(found, key=_total)
    return totals[len(totals) // 2]


def _total(waited: dict[str, list[float]]) -> float:
    return sum(map(sum, waited.values()))


def table(found: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Return a table of what ``found`` holds by library and state of the caches."""
    columns = [(name, state) for name in found for state in ("cold", "warm")]
    lines = ["| seconds | " + " | ".join(f"{n}, {s}" for n, s in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for part in PARTS:
        cells = (" + ".join(f"{x:.2f}" for x in found[n][s][part]) for n, s in columns)
        lines.append(f"| {part} | " + " | ".join(cells) + " |")
    totals = (f"{_total(found[n][s]):.2f}" for n, s in columns)
    lines.append("| *all* | " + " | ".join(totals) + " |")
    return "\n".join(lines)


def rows_of(found: dict[str, dict[str, dict[str, list[float]]]]) -> list[Any]:
    """Return what a user waits for in each cell, and in all of them."""
    columns = [(name, state) for name in found for state in ("cold", "warm")]
    labels = {"nfuser": "nfuser", "numba": "Numba", "jax": "JAX"}
    waits: dict[str, dict[str, float]] = {
        part: {f"{labels[n]}, {s}": sum(found[n][s][part]) for n, s in columns}
        for part in PARTS
    }
    waits["all"] = {f"{labels[n]}, {s}": _total(found[n][s]) for n, s in columns}
    return [{"name": part, "values": values} for part, values in waits.items()]


def main() -> None:
    """Run the sessions, by turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", nargs=2, metavar=("LIBRARY", "FOLDER"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.session:
        library, folder = given.session
        sys.stdout.write(json.dumps(session(library, Path(folder))))
        return
    here = [name for name in LIBRARIES if find_spec(name)]
    for name in here:
        sessions(name)  # leaves compiled modules behind
    rounds = [{name: sessions(name) for name in here} for _ in range(given.rounds)]
    found = {
        name: {
            state: middle([turn[name][k] for turn in rounds])
            for k, state in enumerate(("cold", "warm"))
        }
        for name in here
    }
    sys.stdout.write(f"{versions('cpu')}\n\n{table(found)}\n")
    if given.json:
        made = provenance() | {"unit": "s", "rows": rows_of(found)}
        given.json.write_text(json.dumps(made, indent=1))


if __name__ == "__main__":
    main()
