# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.compare.lengths``: a softmax whose rows get new lengths.

Every length comes once, in an order that is no order, as batches of text do. What is
measured is the first call of each length, with all that is compiled for it.
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
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.compare.cores import rest
from asv_bench.compare.provenance import provenance

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, LENGTHS = 256, 48


def _softmax(x: Any) -> Any:
    e = np.exp(x - np.amax(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _jax_softmax(jnp: Any, x: Any) -> Any:
    e = jnp.exp(x - jnp.amax(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _torch_softmax(torch: Any, x: Any) -> Any:
    e = torch.exp(x - torch.amax(x, dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def _waited(call: Callable[[Any], Any], x: Any) -> Any:
    return call(x).block_until_ready()


def compilers() -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    """Return for each library what is called, and what makes its arrays."""
    import nfuser

    found: dict[str, Any] = {
        "nfuser": (nfuser.fuse(_softmax), np.asarray),
        "NumPy": (_softmax, np.asarray),
    }
    if find_spec("jax"):
        jax = import_module("jax")
        wait = partial(_waited, jax.jit(partial(_jax_softmax, jax.numpy)))
        found["JAX"] = wait, jax.numpy.asarray
    if find_spec("torch"):
        torch = import_module("torch")
        made = torch.compile(partial(_torch_softmax, torch), dynamic=True)
        found["torch.compile, dynamic"] = made, torch.from_numpy
    return found


def rows() -> list[dict[str, Any]]:
    """Return the seconds of the first call of each length, in the order of calls."""
    lengths = Random(0).sample(range(100, 4000), LENGTHS)
    found = compilers()
    made: list[dict[str, Any]] = []
    random = np.random.default_rng(0)
    for length in lengths:
        x = random.random((ROWS, length), dtype=np.float32)
        spent: dict[str, float] = {}
        for name, (call, array) in found.items():
            given = array(x)
            rest()
            begin = perf_counter()
            call(given)
            spent[name] = perf_counter() - begin
        made.append({"name": f"{length:,} elements", "at": length, "values": spent})
    return made


def main() -> None:
    """Measure, print the last row, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = provenance() | {"unit": "s", "rows": rows()}
    sys.stdout.write(f"{found['rows'][-1]}\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
