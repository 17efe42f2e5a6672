# SPDX-License-Identifier: Apache-2.0
"""Train with fused pieces, beside torch: ``python -m asv_bench.compare.training``.

What is found: that 200 steps in f64 are those of torch; that the losses of f32, and of
bf16 under autocast, lie within the spread that seeds have in torch alone; how long a
step takes, what it keeps for the way back, and its peak memory in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from asv_bench.compare.memory import peak_of
from asv_bench.compare.provenance import provenance
from asv_bench.compare.training_models import (
    EAGER,
    FUSED,
    Made,
    Size,
    perceptron,
    step,
    trained,
    transformer,
    without_autocast,
)

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS, SEEDS, ROUNDS = 200, range(3), 15
SMALL = {perceptron: Size(120, 1, 32), transformer: Size(8, 12, 16)}
LARGE = {perceptron: Size(4096, 1, 512), transformer: Size(8, 128, 128, words=512)}
MODELS = {model.__name__: model for model in (perceptron, transformer)}
LIBRARIES = {"nfuser": FUSED, "torch": EAGER, "torch.compile": EAGER}
AUTOCAST: Any = partial(torch.autocast, "cpu", torch.bfloat16)


def equal(model: Callable[..., Made], steps: int) -> dict[str, Any]:
    """Return how far steps in f64 are from torch's: losses, and parameters at last."""
    ours, theirs = (model(p, SMALL[model], 0, torch.float64) for p in (FUSED, EAGER))
    found, wanted = trained(ours, steps), trained(theirs, steps)
    pairs = zip(ours.parameters, theirs.parameters, strict=True)
    return {
        "losses": max(abs(a - b) for a, b in zip(found, wanted, strict=True)),
        "parameters": max(float((a - b).detach().abs().max()) for a, b in pairs),
        "first": wanted[0],
        "last": wanted[-1],
    }


def spread(
    model: Callable[..., Made], steps: int, context: Callable[[], Any] | None
) -> dict[str, Any]:
    """Return the last losses of seeds, and how far ours are from torch's at most."""

    def last(pieces: Any, seed: int) -> float:
        made = model(pieces, SMALL[model], seed, torch.float32)
        return trained(made, steps, context)[-1]

    fused = FUSED if context is None else without_autocast(FUSED)
    ours, theirs = ([last(pieces, k) for k in SEEDS] for pieces in (fused, EAGER))
    return {
        "ours": ours,
        "torch": theirs,
        "spread": max(theirs) - min(theirs),
        "apart": max(abs(a - b) for a, b in zip(ours, theirs, strict=True)),
    }


def kept(made: Made) -> int:
    """Return the bytes that the graph of a loss keeps, but those of the parameters."""
    own = {p.untyped_storage().data_ptr() for p in made.parameters}
    found: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        value = made.loss()
    total = sum(found.values())
    value.backward()
    return total


def steps_of(model: Callable[..., Made], name: str, size: Size) -> tuple[Made, Any]:
    """Return a model in the words of a library, and what takes a step of it."""
    made = model(LIBRARIES[name], size, 0, torch.float32)
    if name == "torch.compile":
        made = Made(made.parameters, torch.compile(made.loss))
    optimizer = torch.optim.SGD(made.parameters, lr=0.1, momentum=0.9)
    return made, partial(step, made, optimizer)


def _peak_here(model: str, name: str, size: Size) -> int:
    """Return the peak memory of three steps after three others."""
    _, call = steps_of(MODELS[model], name, size)

    def run() -> None:
        for _ in range(3):
            call()

    run()
    return peak_of(run)


def peak(model: str, name: str, *, is_tiny: bool) -> int:
    """Return the peak memory of steps, beyond what the process holds between them.

    C's allocator gives large blocks back at once, so that the peak is of what lives.
    """
    part = [model, name, *(["--tiny"] if is_tiny else [])]
    command = [sys.executable, "-m", "asv_bench.compare.training", "--peak", *part]
    own = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=own)
    return int(found.stdout)


def speed(model: Callable[..., Made], size: Size, rounds: int) -> dict[str, Any]:
    """Return seconds of a step, and the bytes it keeps, of each library."""
    calls: dict[str, Callable[[], Any]] = {}
    found: dict[str, dict[str, float]] = {}
    for name in LIBRARIES:
        made, calls[name] = steps_of(model, name, size)
        for _ in range(3):
            calls[name]()
        found[name] = {"kept": kept(made)}
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begin = perf_counter()
            call()
            spent[name].append(perf_counter() - begin)
    return {name: {"seconds": median(spent[name]), **found[name]} for name in calls}


def main() -> int:
    """Train, print what was found, and tell whether it is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--tiny", action="store_true", help="a few steps, small models")
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = SMALL if given.tiny else LARGE
    if given.peak:
        of_one = _peak_here(*given.peak, sizes[MODELS[given.peak[0]]])
        sys.stdout.write(f"{of_one}\n")
        return 0
    steps, rounds = (3, 1) if given.tiny else (STEPS, ROUNDS)
    rows: list[dict[str, Any]] = []
    for model in MODELS.values():
        row: dict[str, Any] = {"name": model.__name__, "steps": steps}
        row["f64"] = equal(model, steps)
        row["f32"] = spread(model, steps, None)
        row["bf16"] = spread(model, steps, AUTOCAST)
        found = speed(model, sizes[model], rounds)
        row["values"] = {name: of["seconds"] for name, of in found.items()}
        row["kept"] = {name: of["kept"] for name, of in found.items()}
        row["peak"] = {
            name: peak(model.__name__, name, is_tiny=given.tiny) for name in LIBRARIES
        }
        rows.append(row)
        sys.stdout.write(f"{json.dumps(row, indent=1)}\n")
    if given.json:
        whole = provenance() | {"unit": "s", "rows": rows}
        given.json.write_text(json.dumps(whole, indent=1))
    return 0 if all(map(_is_right, rows)) else 1


def _is_right(row: dict[str, Any]) -> bool:
    is_equal = max(row["f64"]["losses"], row["f64"]["parameters"]) < 1e-5
    near = [row[kind]["apart"] <= row[kind]["spread"] for kind in ("f32", "bf16")]
    return is_equal and all(near)


if __name__ == "__main__":
    sys.exit(main())
