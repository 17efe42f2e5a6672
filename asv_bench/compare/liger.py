# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.compare.liger``: forward and backward beside Liger, on a GPU.

Liger's functions leave gradients where their inputs lay (SwiGLU, norms, RoPE), or
compute them on the way there (cross entropy), so that the way back alone can neither be
repeated nor compared. Here both ways are one CUDA graph of what torch recorded; results
are checked on copies first.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import nfuser
from asv_bench.compare import timing
from asv_bench.compare.contest import MOST_ERROR
from asv_bench.compare.devices import Cuda, error_of
from asv_bench.compare.gradient import both_ways, captured
from asv_bench.compare.provenance import provenance
from asv_bench.compare.workload import Array
from asv_bench.compare.workloads.gradients import BIG, GRADIENTS, LONG

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Pair:
    """A gradient of the table, and Liger's form of it, which takes its namespace first.

    ``syncs`` if Liger's way back asks the device something, which no graph can hold.
    ``prepare`` returns what both take, and how Liger likes it to lie.
    """

    name: str
    liger: Callable[..., Any]
    sizes: tuple[tuple[int, ...], ...] = (BIG,)
    words: str = ""
    syncs: bool = False
    prepare: Callable[[Any], tuple[Any, Any]] = lambda inputs: (inputs, inputs)


def _turned(liger: Any, x: Any, cos: Any, sin: Any) -> Any:
    """Return queries turned; Liger turns keys with them, here one head of them."""
    keys = x.new_zeros((x.shape[0], x.shape[2], 1, x.shape[3])).transpose(1, 2)
    return liger.liger_rope(x, keys, cos[None], sin[None])[0]


def _heads_inside(inputs: Any) -> tuple[Any, Any]:
    """Return tables of two equal halves, of which Liger reads one."""
    x, *tables = inputs
    tables = [table[:, : x.shape[-1] // 2].repeat(1, 2) for table in tables]
    theirs = x.transpose(1, 2).contiguous().transpose(1, 2)
    return [x, *tables], [theirs, *tables]


PAIRS = (
    Pair("softmax", lambda liger, x: liger.liger_softmax(x), (BIG, LONG)),
    Pair(
        *("layer norm", lambda liger, x, w, b: liger.liger_layer_norm(x, w, b, 1e-5)),
        (BIG, LONG),
    ),
    Pair(
        *("RMS norm", lambda liger, x, w: liger.liger_rms_norm(x, w, 1e-5)),
        (BIG, LONG),
    ),
    Pair(
        "add + RMS norm",
        lambda liger, x, r, w: liger.liger_fused_add_rms_norm(x, r, w, 1e-5)[0],
        words="fused",
    ),
    Pair(
        "add + RMS norm",
        lambda liger, x, r, w: liger.liger_rms_norm(x + r, w, 1e-5),
        words="torch's sum",
    ),
    Pair("SwiGLU", lambda liger, x, gate: liger.liger_swiglu(x, gate)),
    Pair(
        *("cross entropy", lambda liger, x, y: liger.liger_cross_entropy(x, y)),
        ((8192, 32768),),
        syncs=True,
    ),
    Pair("RoPE", _turned, ((2, 32, 8192, 128),), prepare=_heads_inside),
)


def main() -> int:
    """Print a line for each pair; fail if a result of ours is wrong."""
    parser = argparse.ArgumentParser("asv_bench.compare.liger", description=__doc__)
    parser.add_argument("--only", nargs="*", default=(), metavar="PREFIX")
    parser.add_argument("--json", metavar="FILE", help="write everything found")
    options = parser.parse_args()
    device = Cuda()
    found = provenance("cuda")
    rows: list[dict[str, Any]] = []
    chosen = [p for p in PAIRS if p.name.startswith(tuple(options.only) or "")]
    for pair in chosen:
        for sizes in pair.sizes:
            rows.append(_row(device, pair, sizes))
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
            device.release()
    mean = geometric_mean(row["ratio"] for row in rows)
    sys.stdout.write(f"geometric mean {mean:.3f}\n")
    if options.json:
        Path(options.json).write_text(json.dumps(found | {"rows": rows}, indent=1))
    return int(not all(row["is_right"] for row in rows))


def _row(device: Cuda, pair: Pair, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return the times of a pair, in microseconds, and the errors of both."""
    import torch
    from liger_kernel.transformers import functional

    item = next(item for item in GRADIENTS if item.name == pair.name)
    specs = item.inputs("bfloat16", *sizes)
    inputs, theirs = pair.prepare(device.arrays(specs))
    shape = specs[0].shape if item.value == "array" else ()
    (cotangent,) = device.arrays([Array(shape, "bfloat16")])
    if not shape:
        cotangent.fill_(1.0)  # as ``loss.backward()`` does
    count = len(inputs) - item.constants
    forms = {
        "nfuser": (nfuser.fuse(item.function, dialect="numpy"), inputs),
        "Liger": (partial(pair.liger, functional), theirs),
    }
    *wide, slope = [device.wide(x) for x in (*inputs, cotangent)]
    wanted = both_ways(partial(item.torch, torch), slope, wide, count)()
    row: dict[str, Any] = {"name": f"{pair.name} {sizes} {pair.words}".strip()}
    row["is_right"] = True
    for name, (function, own) in forms.items():
        *copies, slope = [x.clone() for x in (*own, cotangent)]
        found = both_ways(function, slope, copies, count)()
        error, is_right = error_of(device, found, wanted)
        row[f"{name} error"] = error
        row["is_right"] &= is_right or (name == "Liger" and error <= MOST_ERROR)
    del wanted, wide, found
    for name, (function, own) in forms.items():
        make = partial(both_ways, function, cotangent, own, count)
        call = make() if pair.syncs else captured(make)
        row[name] = timing.gpu_seconds(torch, [call], device.flush) * 1e6
    row["ratio"] = row["Liger"] / row["nfuser"]
    return row


if __name__ == "__main__":
    sys.exit(main())
