# SPDX-License-Identifier: Apache-2.0
"""Print how fast the twelve programs are: ``python -m asv_bench.programs``.

``ocean_step``, a long body without loops, is measured where it is named.
"""

from __future__ import annotations

import argparse
import json
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv_bench.compare.provenance import provenance, rows_before
from asv_bench.programs.measure import OURS, PEERS, PLAIN, measured
from asv_bench.programs.program import LONG_BODY, PROGRAMS

if TYPE_CHECKING:
    from asv_bench.programs.measure import Row

COLUMNS = (PLAIN, OURS, *PEERS)
# As files of results call them; programs in the words of torch are compiled by it.
NAMES = {PLAIN: "NumPy", "numba": "Numba", "jax": "JAX", "torch": "torch.compile"}


def main() -> None:
    """Measure the programs named, or all, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "programs", nargs="*", help="names of modules; the twelve if none"
    )
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma separated")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write, beside rows of others")
    given = parser.parse_args()
    size = () if given.size == "large" else ("--size", given.size)
    head = provenance(command=" ".join(("python -m asv_bench.programs", *size)))
    kept = rows_before(given.json, head)
    peers = [name for name in given.peers.split(",") if name]
    if "jax" in peers:
        from jax import config

        config.update("jax_enable_x64", True)
    print(f"{'milliseconds':20}", *(f"{c:>10}" for c in COLUMNS), "  ratio  first call")
    rows: list[Row] = []
    every = (*PROGRAMS, LONG_BODY)
    named = [program for program in every if program.module in given.programs]
    for program in named if given.programs else PROGRAMS:
        rows.append(measured(program, getattr(program, given.size), peers, given.turns))
        print(line_of(rows[-1]), flush=True)
        if given.json:
            kept[program.module] = _told(rows[-1])
            ordered = [kept[p.module] for p in every if p.module in kept]
            found = head | {"unit": "s", "rows": ordered}
            given.json.write_text(json.dumps(found, indent=1))
    ratios = [row.ratio for row in rows if row.ratio]
    if ratios:
        mean = exp(sum(log(r) for r in ratios) / len(ratios))
        print(f"{len(ratios)} of {len(rows)} run; geometric mean {mean:.2f}")


def _told(row: Row) -> dict[str, Any]:
    """Return a row as files of results have it."""
    order = (OURS, *(c for c in COLUMNS if c != OURS))
    found = {NAMES.get(c, c): row.seconds[c] for c in order if c in row.seconds}
    return {"name": row.name, "values": found, "notes": row.notes}


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
