# SPDX-License-Identifier: Apache-2.0
"""The command line: ``python -m tests.host --programs 2000``."""

from __future__ import annotations

import argparse
import sys
import traceback

from tests.host.programs import check


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.host", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    choices = ["interpret", "cpu"]
    parser.add_argument("--backend", choices=choices, default="interpret")
    return parser.parse_args()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Check the programs asked for; return whether any is wrong."""
    given = _parsed()
    wrong = kernels = 0
    for seed in range(given.seed, given.seed + given.programs):
        try:
            kernels += check(seed, given.backend)
        except Exception:  # noqa: BLE001 (any of them is a finding)
            wrong += 1
            _say(f"program {seed}:\n{traceback.format_exc()}")
    _say(f"host: {given.programs} programs, {kernels} kernels, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
