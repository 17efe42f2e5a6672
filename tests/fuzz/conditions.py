# SPDX-License-Identifier: Apache-2.0
"""Which conditions of the compiler random programs decide, and which they never do.

``python -m tests.fuzz.conditions --programs 200 compiler/rewrite/assignments`` runs as
many, of all generators by turns, and lists the operands of conditions in those folders
of ``nfuser`` that no program has decided, either way: that operand could be left out,
and no program would tell. Of ``<`` and the like it tells where both sides were never
equal. With ``--few 3`` it also lists what fewer programs decide than that. With
``--seconds 100`` it runs as many as each worker's processor has done by then.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import Counter

import numpy as np

from tests.fuzz.noting import FLAGS, SITES, WITHIN, Finder


def _run(
    task: tuple[list[str], int, int, float],
) -> tuple[Counter[str], dict[str, str], Counter[str]]:
    """Run programs; return how many met each site, what is around it, and sums."""
    rooms, first, count, seconds = task
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, Finder(rooms))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NFUSER_CACHE_DIR"] = folder
        from tests.fuzz import mixed

        met = np.zeros(len(FLAGS), int)
        seen: Counter[str] = Counter()
        flags = np.frombuffer(FLAGS, "u1")
        begun = time.process_time()
        for name, number, backend in mixed.turns(first, count):
            if time.process_time() - begun > seconds:
                break
            flags[:] = 0
            try:
                mixed.GENERATORS[name](number, backend)
            except Exception as error:  # noqa: BLE001 (each is told)
                seen["wrong"] += 1
                said = f"{name} {number} {backend}: {type(error).__name__}: {error}"
                sys.stdout.write(f"{said}\n")
            seen["programs"] += 1
            met += flags
    sites: Counter[str] = Counter()
    for site, times in zip(SITES, met.tolist(), strict=False):
        sites[site] += times
    around = {s: SITES[k] for s, k in zip(SITES, WITHIN, strict=True) if k >= 0}
    return sites, around, seen


def main() -> None:
    """Run programs, and list what none of them decided."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="+", help="folders or files of nfuser")
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--few", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    given = parser.parse_args()
    each = -(-given.programs // given.jobs)
    tasks = [
        (given.rooms, given.first + k * each, each, given.seconds)
        for k in range(given.jobs)
    ]
    sites: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    around: dict[str, str] = {}
    with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
        for some, its_functions, others in pool.imap_unordered(_run, tasks):
            sites.update(some)
            seen.update(others)
            around |= its_functions
    asked = {s: n for s, n in sites.items() if not s.endswith("| ")}
    few = {s: n for s, n in asked.items() if n < given.few}
    missing = {s: n for s, n in few.items() if s not in around or sites[around[s]]}
    for site, times in sorted(missing.items()):
        sys.stdout.write(f"{site} ({times})\n" if given.few > 1 else f"{site}\n")
    files: Counter[str] = Counter()
    for site in missing:
        files[site.partition(":")[0]] += 1
    for file, count in sorted(files.items()):
        sys.stdout.write(f"{file}: {count}\n")
    sys.stdout.write(f"{len(missing)} of {len(asked)} sites; {dict(seen)}\n")


if __name__ == "__main__":
    main()
