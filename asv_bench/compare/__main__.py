# SPDX-License-Identifier: Apache-2.0
"""``python -m asv_bench.compare``: print the table of workloads, nfuser and peers."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asv_bench.compare.cores import pin

if TYPE_CHECKING:
    from collections.abc import Sequence

SAID = ("command", "date", "commit", "tree", "machine", "versions")


def arguments_of(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("asv_bench.compare", description=__doc__)
    add = parser.add_argument
    add("--backend", choices=("cuda", "cpu", "interpret"), default="cpu")
    tables = ("workloads", "shapes", "rope", "spellings", "gradients")
    add("--table", choices=tables, default="workloads")
    add("--only", nargs="*", default=(), metavar="PREFIX", help="of workloads' names")
    add("--peers", nargs="*", type=str.lower, metavar="NAME", help="none, or some")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--odd", action="store_true", help="one more on the last axis")
    sizes.add_argument("--tiny", action="store_true", help="check only: sizes below 10")
    add("--in-a-row", action="store_true", help="GPU calls, with nothing between them")
    add("--threads", type=int, default=None, help="cores to use on the CPU")
    add("--join", nargs="*", metavar="FILE", help="print what --json wrote before")
    add("--json", metavar="FILE", help="write everything found")
    return parser.parse_args(given)


def main() -> int:
    options = arguments_of()
    if options.backend != "cuda":
        pin(options.threads)
    from asv_bench.compare.contest import OURS, Row
    from asv_bench.compare.table import print_table

    where = "cuda" if options.backend == "cuda" else "cpu"
    found = joined(options.join) if options.join else measured(options)
    rows = [Row(**row) for row in found["rows"]]
    names = dict.fromkeys(name for row in rows for name in row.first_call)
    ours = [name for name in names if name.startswith(OURS)]
    peers = [name for name in names if name not in ours]
    print(found["versions"], "\n")
    print_table(rows, found["copy"], peers, where, print, ours)
    if options.json:
        _write(found, options.json)
    return 0 if all(row.is_right for row in rows) else 1


def _write(found: dict[str, Any], name: str) -> None:
    Path(name).write_text(json.dumps(found, indent=1))


def joined(files: Sequence[str]) -> dict[str, Any]:
    """Return the rows of several files as if one run had made them.

    What they say of themselves has to be the same, but for the rows asked for.
    """
    parts = [json.loads(Path(name).read_text()) for name in files]
    heads = [{key: _said(part, key) for key in SAID if key in part} for part in parts]
    if any(head != heads[0] for head in heads):
        raise SystemExit(f"join runs of one command, day, commit and machine: {heads}")
    copy = sum(part["copy"] for part in parts) / len(parts)
    rows = [row for part in parts for row in part["rows"]]
    note = (
        {"note": f"In {len(parts)} runs of some rows each (`--only`), joined."}
        if len(parts) > 1
        else {}
    )
    return heads[0] | note | {"copy": copy, "rows": rows}


def _said(part: dict[str, Any], key: str) -> str:
    """Return what a file says, its command without ``--only`` and the names after it.

    >>> _said({"command": "python -m x --only 'a b' c --odd"}, "command")
    'python -m x --odd'
    """
    if key != "command":
        return part[key]
    words = shlex.split(part[key])
    if "--only" in words:
        at = words.index("--only")
        names = takewhile(lambda word: not word.startswith("--"), words[at + 1 :])
        del words[at : at + 1 + len([*names])]
    return shlex.join(words)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Run the workloads that were asked for."""
    from asv_bench.compare.contest import OURS, make_row
    from asv_bench.compare.devices import Cpu, Cuda
    from asv_bench.compare.gradient import gradient_rows
    from asv_bench.compare.peers import bind_nfuser, installed
    from asv_bench.compare.provenance import provenance
    from asv_bench.compare.rope_table import rope_rows
    from asv_bench.compare.spellings import spelling_rows
    from asv_bench.compare.workloads import WORKLOADS, shapes

    is_cuda = options.backend == "cuda"
    device = Cuda(in_a_row=options.in_a_row) if is_cuda else Cpu()
    where = "cuda" if is_cuda else "cpu"
    peers = installed(where, options.peers)
    is_timed = not options.tiny
    found: dict[str, Any] = provenance(where)
    found["copy"] = device.copy_bandwidth() if is_timed else 0.0
    rows: list[dict[str, Any]] = []

    def done(row: Any) -> None:
        rows.append(asdict(row))
        if options.json:  # whoever ends the run has the rows before
            _write(found | {"rows": rows}, options.json)
        print(f"{row.name}: {row.fresh or row.notes}", file=sys.stderr, flush=True)

    if options.table == "spellings":
        spelling_rows(device, options.only, done, is_timed=is_timed)
        return found | {"rows": rows}
    if options.table == "rope":
        rope_rows(device, peers, options.only, done)
        return found | {"rows": rows}
    if options.table == "gradients":
        own = None if is_cuda else options.backend
        gradient_rows(
            *(device, tuple(peers), options.only, done),
            is_tiny=options.tiny,
            backend=own,
        )
        return found | {"rows": rows}
    change = "odd" if options.odd else "tiny" if options.tiny else ""
    for workload in shapes.WORKLOADS if options.table == "shapes" else WORKLOADS:
        sizes = workload.sizes(options.backend, change)
        if sizes and workload.row_name(sizes).startswith(tuple(options.only) or ""):
            ours = {OURS: bind_nfuser}
            done(make_row(device, workload, sizes, peers, ours, is_timed))
    return found | {"rows": rows}


if __name__ == "__main__":
    sys.exit(main())
