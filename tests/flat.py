# SPDX-License-Identifier: Apache-2.0
"""Memory under kernels that come and go: ``python -m tests.flat --kernels 3000``.

Functions are made, called and dropped; each says something new, so each compiles. What
the process holds has to stay the same once its caches are full.
"""

# Functions of arrays whose types only a trace knows.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import nfuser
from nfuser import config

PARTS = 12  # rows of the table


def resident() -> int:
    """Return the bytes of memory that this process occupies."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def mappings() -> int:
    """Return how many mappings of memory the process has."""
    return Path("/proc/self/maps").read_text().count("\n")


def call_anew(number: int, calls: int, x: Any) -> None:
    """Make a function that compiles a kernel of its own, call it, and drop it."""
    factor = 1 + number / 7
    fused = nfuser.fuse(lambda x: x * factor + number)
    for _ in range(calls - 1):
        fused(x)
    np.testing.assert_allclose(fused(x), x * factor + number)


def main() -> int:
    """Print a table of memory; return 1 if it grew after the first third."""
    parser = argparse.ArgumentParser(prog="python -m tests.flat", description=__doc__)
    parser.add_argument("--kernels", type=int, default=3000)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--cache-size", type=int, default=256)
    parser.add_argument("--allowed", type=float, default=0.05, help="share of growth")
    given = parser.parse_args()
    calls, x = max(given.calls // given.kernels, 1), np.linspace(0, 1, 64)
    begin, held = time.monotonic(), list[int]()
    with config.override(cache_size=given.cache_size):
        for number in range(given.kernels):
            call_anew(number, calls, x)
            if (number + 1) % max(given.kernels // PARTS, 1) == 0:
                gc.collect()
                held.append(resident())
                sys.stdout.write(
                    f"{number + 1} kernels, {(number + 1) * calls} calls: "
                    f"{held[-1] / 1e6:.1f} MB, {mappings()} mappings, "
                    f"{time.monotonic() - begin:.0f} s\n"
                )
                sys.stdout.flush()
    third = held[len(held) // 3]
    return int(max(held[len(held) // 3 :]) > third * (1 + given.allowed))


if __name__ == "__main__":
    sys.exit(main())
