# SPDX-License-Identifier: Apache-2.0
"""Print how fast the twelve programs are: ``python -m asv_bench.programs``."""

from __future__ import annotations

import argparse
from math import exp, log
from typing import TYPE_CHECKING

from asv_bench.programs.measure import OURS, PEERS, PLAIN, measured
from asv_bench.programs.program import PROGRAMS

if TYPE_CHECKING:
    from asv_bench.programs.measure import Row

COLUMNS = (PLAIN, OURS, *PEERS)


def main() -> None:
    """Measure the programs named, or all, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="names of modules; all if none")
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma separated")
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    peers = [name for name in given.peers.split(",") if name]
    if "jax" in peers:
        from jax import config

        config.update("jax_enable_x64", True)
    print(f"{'milliseconds':20}", *(f"{c:>10}" for c in COLUMNS), "  ratio  first call")
    rows: list[Row] = []
    for program in PROGRAMS:
        if given.programs and program.module not in given.programs:
            continue
        rows.append(measured(program, getattr(program, given.size), peers, given.turns))
        print(line_of(rows[-1]), flush=True)
    ratios = [row.ratio for row in rows if row.ratio]
    if ratios:
        mean = exp(sum(log(r) for r in ratios) / len(ratios))
        print(f"{len(ratios)} of {len(rows)} run; geometric mean {mean:.2f}")


def line_of(row: Row) -> str:
    """Return a line of the table, and a line for each that did not run."""
    times = [
        f"{row.seconds[c] * 1e3:10.3f}" if c in row.seconds else f"{'-':>10}"
        for c in COLUMNS
    ]
    ratio = f"{row.ratio:7.2f}" if row.ratio else f"{'-':>7}"
    notes = [f"    {name}: {note}" for name, note in row.notes.items()]
    first = f"{row.first_call:9.2f} s"
    return "\n".join([" ".join([f"{row.name:20}", *times, ratio, first]), *notes])


if __name__ == "__main__":
    main()
