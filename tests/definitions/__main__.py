# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.definitions --programs 300 --backend cpu``."""

from __future__ import annotations

import argparse
import sys
import traceback

from tests.definitions.arrays import BACKENDS
from tests.definitions.check import check, written


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.definitions", description=__doc__
    )
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="cpu")
    parser.add_argument("--library", help="numpy, torch, torch-cuda or cupy alone")
    parser.add_argument("--show", action="store_true", help="print the definitions")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Check the programs asked for; return how many are wrong."""
    given = _parsed()
    kinds = [k for k in BACKENDS[given.backend] if given.library in (None, k[1])]
    wrong = 0
    for seed in range(given.seed, given.seed + given.programs):
        backend, library = kinds[seed % len(kinds)]
        if given.show:
            _say(f"# {seed}\n{written(seed, backend, library).fd!r}")
        try:
            check(seed, backend, library)
        except Exception:  # noqa: BLE001 (any of them is a finding)
            wrong += 1
            _say(f"definition {seed}, {library}:\n{traceback.format_exc()}")
    _say(f"definitions: {given.programs} programs, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
