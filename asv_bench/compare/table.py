# SPDX-License-Identifier: Apache-2.0
"""How the rows print: a table, its means, and a line for whatever is missing."""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any

from asv_bench.charts.tables import label
from asv_bench.compare.contest import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from asv_bench.compare.contest import Row


def geometric_mean(numbers: Iterable[float | None]) -> tuple[float, int]:
    """Return the mean of what there is, and of how many."""
    found = [n for n in numbers if n]
    return (exp(sum(map(log, found)) / len(found)) if found else 0.0), len(found)


def _cell(seconds: float | None, share: float | None, unit: float) -> str:
    if seconds is None:
        return "--"
    digits = (
        f"{seconds / unit:.3g}" if seconds < 1000 * unit else f"{seconds / unit:.0f}"
    )
    return f"{digits} ({share:.2f})" if share is not None else digits


def print_table(
    rows: Sequence[Row],
    copy: float,
    peers: Sequence[str],
    backend: str,
    write: Callable[[str], Any],
    ours: Sequence[str] = (OURS,),
) -> None:
    """Write the table, its means, and a line for whatever is missing."""
    unit, name = (1e-6, "µs") if backend == "cuda" else (1e-3, "ms")
    again = [p for p in (*ours, *peers) if any(p in row.reused for row in rows)]
    write(f"Copy: {copy / 1e9:,.0f} GB/s. Times in {name} (share of the copy).\n")
    heads = ["workload", "MB", *ours, "kernels", "compiled", "first call s", "error"]
    heads += [*peers, *(f"{p}, reused" for p in again), "best peer / nfuser"]
    write("| " + " | ".join(heads) + " |")
    write("|" + "---|" * len(heads))
    for row in rows:

        def timed(peer: str, row: Row = row) -> str:
            return _cell(row.fresh.get(peer), row.share(copy, peer), unit)

        ratio = row.ratio(peers)
        cells = [
            label(row.name, row.is_headline),
            f"{row.necessary_bytes / 1e6:.0f}",
            *map(timed, ours),
        ]
        cells += [str(row.kernels or "--"), " / ".join(map(str, row.compiled.values()))]
        cells += [f"{row.first_call[ours[0]]:.2f}"]
        cells += [f"{row.errors[ours[0]]:.0e}" if ours[0] in row.errors else "--"]
        cells += map(timed, peers)
        cells += [
            _cell(row.reused.get(p), row.share(copy, p, reused=True), unit)
            for p in again
        ]
        cells += [f"{ratio:.2f}" if ratio else "--"]
        write("| " + " | ".join(cells) + " |")
    write("")
    for line in _summary(rows, copy, peers, ours):
        write(line)
    if any(not row.is_headline for row in rows):
        write("Rows in italics do not count in means.")
    for row in rows:
        for peer, note in row.notes.items():
            write(f"- {row.name}, {peer}: {note}")


def _summary(
    rows: Sequence[Row], copy: float, peers: Sequence[str], ours: Sequence[str]
) -> Iterable[str]:
    chosen = [row for row in rows if row.is_headline]
    for name in (*ours, *peers):
        mean, count = geometric_mean(row.share(copy, name) for row in chosen)
        if count:
            yield f"Geometric mean of the share, {name}: {mean:.3f} ({count} rows)"
    for peer in (*ours[1:], *peers):
        mean, count = geometric_mean(row.ratio([peer]) for row in chosen)
        if count:
            yield f"Geometric mean, {peer} / nfuser: {mean:.2f} ({count} rows)"
    mean, count = geometric_mean(row.ratio(peers) for row in chosen)
    if count:
        yield f"Geometric mean, best peer / nfuser: {mean:.2f} ({count} rows)"
    mean, count = geometric_mean(row.ratio(peers, reused=True) for row in chosen)
    if any(row.reused for row in chosen):
        yield f"Geometric mean, best peer reusing / nfuser: {mean:.2f} ({count} rows)"
