# SPDX-License-Identifier: Apache-2.0
"""One function, a thousand shapes: ``python -m tests.many_shapes --backend cpu``.

Two functions are called with random shapes: a reshape of ``(b * t, h)`` to
``(b, t, h)`` under a sum, and a rotary embedding of many lengths. Every result is
compared with NumPy; traces, runtimes and compiled kernels are counted.
"""

# Functions of arrays whose types only a trace knows, and torch's own.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser
import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

RUNTIMES, KERNELS = 4, 6  # at most, however many shapes there were


def row_sums(x: Any, batch: int) -> Any:
    """A reshape whose split only the call knows, and a reduction over it."""
    return x.reshape(batch, -1, x.shape[-1]).sum(-1)


def rotary(x: Any, cos: Any, sin: Any) -> Any:
    """Rotate halves of the last axis against each other."""
    half = x.shape[-1] // 2
    turned = xp.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


def _sum_arguments(rng: np.random.Generator, most: int) -> tuple[Any, ...]:
    while True:
        batch, length = (_log_uniform(rng, 2, 4096) for _ in range(2))
        width = _log_uniform(rng, 2, 8192)
        if batch * length * width <= most:
            x = rng.standard_normal((batch * length, width), np.float32)
            return x, batch


def _rotary_arguments(rng: np.random.Generator, most: int) -> tuple[Any, ...]:
    length = _log_uniform(rng, 1, most // 512)
    x = rng.standard_normal((1, 4, length, 64), np.float32)
    angle = rng.standard_normal((length, 64), np.float32)
    return x, np.cos(angle), np.sin(angle)


def _log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


SUBJECTS: dict[str, tuple[Callable[..., Any], Callable[..., tuple[Any, ...]]]] = {
    "row sums": (row_sums, _sum_arguments),
    "rotary": (rotary, _rotary_arguments),
}


@dataclass(frozen=True)
class Outcome:
    """What a subject's calls took, and how many results were wrong."""

    calls: int
    wrong: int
    traces: int
    runtimes: int
    kernels: int

    @property
    def is_good(self) -> bool:
        """Whether it was right, and little was made."""
        few = self.runtimes <= RUNTIMES and self.kernels <= KERNELS
        return self.wrong == 0 and self.traces == 1 and few


def call_all(
    subject: str, backend: str, calls: int, seed: int, most: int = 1 << 24
) -> tuple[Outcome, str]:
    """Call a subject so often, with arrays of up to ``most`` elements.

    Return the outcome, and the table of the subject's cache.
    """
    function, arguments = SUBJECTS[subject]
    fused = nfuser.fuse(function, backend=backend, resize="dynamic", dialect="numpy")
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(calls):
        given = arguments(rng, most)
        found = _on(backend, fused, given)
        with np.errstate(all="ignore"):
            expected = function(*given)
        wrong += not _close(found, expected, given[0].shape[-1])
    info = fused.cache_info()
    counts = (info.traces, info.runtimes, info.compiled + info.loaded)
    return Outcome(calls, wrong, *counts), str(fused.cache_table())


def _on(backend: str, fused: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    if backend != "cuda":
        return fused(*given)
    torch: Any = importlib.import_module("torch")
    moved = [torch.from_numpy(x).cuda() if np.ndim(x) else x for x in given]
    return fused(*moved).cpu().numpy()


def _close(found: Any, expected: Any, terms: int) -> bool:
    bound = 1e-6 * terms  # each term of a sum is of the order of one
    return found.shape == expected.shape and np.allclose(
        found, expected, rtol=1e-6, atol=bound
    )


def main() -> int:
    """Run as the command line asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.many_shapes")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--backend", choices=("cpu", "interpret", "cuda"), default="cpu"
    )
    asked = parser.parse_args()
    good = True
    for subject in SUBJECTS:
        outcome, table = call_all(subject, asked.backend, asked.calls, asked.seed)
        sys.stdout.write(f"{subject}: {outcome}\n{table}\n")
        good &= outcome.is_good
    return int(not good)


if __name__ == "__main__":
    raise SystemExit(main())
