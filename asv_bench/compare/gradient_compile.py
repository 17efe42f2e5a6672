# SPDX-License-Identifier: Apache-2.0
"""First calls of gradients: ``python -m asv_bench.compare.gradient_compile``.

Each function is called for the first time alone, then with its derivative, in one
process that has compiled before, and with nothing on disk. Arrays have the sizes of
rows for CPUs, also where a function is a row for GPUs alone: of larger ones a first
call would be the time that memory takes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import geometric_mean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

WITH = "nfuser, with derivatives"


def rows() -> list[dict[str, Any]]:
    """Return the seconds of first calls, of each function and with its derivative."""
    import numpy as np

    import nfuser
    from asv_bench.compare.gradient import derived
    from asv_bench.compare.workloads.gradients import CPU_ROWS, GRADIENTS

    def first(function: Any, given: list[Any]) -> tuple[float, Any]:
        fused = nfuser.fuse(function, dialect="numpy")
        begin = perf_counter()
        found = fused(*given)
        return perf_counter() - begin, found

    rng = np.random.default_rng(0)
    first(lambda x: np.exp(x).sum(axis=-1), [np.ones((5, 6), np.float32)])
    made: list[dict[str, Any]] = []
    for item in GRADIENTS:
        specs = item.inputs("float32", *(item.cpu or CPU_ROWS))
        arrays = [(rng.random(s.shape) + 0.5).astype(s.dtype) for s in specs]
        alone, value = first(item.function, arrays)
        given = [np.ones_like(value), *arrays]
        both, _ = first(derived(item, with_value=True), given)
        values = {"nfuser": alone, WITH: both}
        made.append({"name": item.name, "values": values})
    return made


def main() -> int:
    """Measure, print, and tell whether derivatives take 2.5 times as long at most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        os.environ["NFUSER_CACHE_DIR"] = folder
        found = rows()
    values = [row["values"] for row in found]
    ratios = [times[WITH] / times["nfuser"] for times in values]
    for row, ratio in zip(found, ratios, strict=True):
        sys.stdout.write(f"{row['name']:24} {row['values']} {ratio:.2f}\n")
    sys.stdout.write(f"geometric mean {geometric_mean(ratios):.2f}\n")
    if given.json:
        from asv_bench.compare.provenance import provenance

        whole = provenance() | {"unit": "s", "rows": found}
        given.json.write_text(json.dumps(whole, indent=1))
    return 0 if geometric_mean(ratios) <= 2.5 else 1


if __name__ == "__main__":
    sys.exit(main())
