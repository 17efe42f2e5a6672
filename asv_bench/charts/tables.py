# SPDX-License-Identifier: Apache-2.0
"""The numbers behind a chart, as a table in Markdown, and in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asv_bench.charts.draw import shown
from asv_bench.charts.measured import OURS, geometric_mean, load, means

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asv_bench.charts.measured import Measured, Row

AHEAD = 1.04
"""What is nearer than that to nfuser is called as fast as it."""


def table(measured: Measured) -> str:
    """Return all numbers as a table."""
    heads = ["", *measured.columns]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in measured.rows:
        cells = [
            shown(row.values[c], measured.unit) if c in row.values else "--"
            for c in measured.columns
        ]
        lines.append(f"| {label(row.name, row.is_headline)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def label(name: str, is_headline: bool) -> str:
    """Return the name of a row in Markdown, in italics where it does not count.

    >>> label("permute * 2", True), label("a + b", False)
    ('permute \\\\* 2', '*a + b*')
    """
    name = name.replace("|", "\\|").replace("*", "\\*")
    return name if is_headline else f"*{name}*"


def summary(measured: Measured) -> str:
    """Return the geometric means of the columns in a sentence."""
    what = {"share": "share of a copy's bandwidth", "times": "times as long as nfuser"}
    if measured.unit not in what or len(measured.rows) == 1:
        return ""
    found = means(measured)
    most = max(count for _, count in found.values())
    told = [
        f"{name} {mean:.2f}" + (f" over its {count}" if count < most else "")
        for name, (mean, count) in found.items()
    ]
    others = any(not row.is_headline for row in measured.rows)
    which = f"the {most} rows that are not in italics" if others else f"{most} rows"
    return f"Geometric means over {which}, {what[measured.unit]}: {', '.join(told)}."


def behind(names: Sequence[tuple[str, str]]) -> str:
    """Return a table of the rows of files in which others take less time than nfuser.

    Each is held against the column of nfuser that says the same after the comma
    (``JAX, warm``), or against the first. The rows of curves are told as one.
    """
    lines = ["| | row | ahead | by |", "|---|---|---|---|"]
    for name, view in names:
        measured = load(name, view)
        is_curve = all(row.at is not None for row in measured.rows)
        found = _of_curves(measured) if is_curve else _of_rows(measured)
        lines += [f"| {name} | {told} |" for told in found]
    return "\n".join(lines)


def _of_rows(measured: Measured) -> Iterator[str]:
    for row in measured.rows:
        if ratios := ahead(row):
            who, by = "; ".join(ratios), "; ".join(f"{r:.2f}" for r in ratios.values())
            yield f"{label(row.name, row.is_headline)} | {who} | {by}"


def _of_curves(measured: Measured) -> Iterator[str]:
    """Tell in how many rows each is ahead, and by how much in the mean of these."""
    found: dict[str, list[float]] = {}
    for row in measured.rows:
        for who, ratio in ahead(row).items():
            found.setdefault(who, []).append(ratio)
    for who, ratios in found.items():
        count = f"{len(ratios)} of {len(measured.rows)} rows"
        yield f"{count} | {who} | {geometric_mean(ratios):.2f}"


def ahead(row: Row) -> dict[str, float]:
    """Return who is ahead of nfuser in a row: how many times as long nfuser takes."""
    state = {c: c.partition(", ")[2] for c in row.values}
    ours = {state[c]: v for c, v in row.values.items() if c.startswith(OURS)}
    if not ours:
        return {}
    first = next(iter(ours.values()))
    others = {c: v for c, v in row.values.items() if not c.startswith(OURS)}
    ratios = {c: ours.get(state[c], first) / v for c, v in others.items()}
    order = sorted(ratios, key=lambda who: -ratios[who])
    return {who: ratios[who] for who in order if ratios[who] > AHEAD}


def figure(text: str) -> str:
    """Return one number of a file: ``NAME VIEW COLUMN``, the mean of a column.

    ``NAME VIEW COLUMN; ROW`` is that of the only row whose name begins so.
    """
    name, view, rest = text.split(None, 2)
    column, _, start = rest.partition("; ")
    measured = load(name, view)
    if not start:
        return f"{means(measured)[column][0]:.2f}"
    (row,) = [row for row in measured.rows if row.name.startswith(start)]
    return shown(row.values[column], measured.unit)
