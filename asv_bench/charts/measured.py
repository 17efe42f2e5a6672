# SPDX-License-Identifier: Apache-2.0
"""What was measured, as one value, whichever script wrote the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESULTS = Path(__file__).parents[1] / "compare" / "results"
HEADER = ("command", "date", "commit", "machine")
OURS = "nfuser"


@dataclass(frozen=True)
class Row:
    """One thing that was measured, by each of several columns.

    ``is_headline`` tells whether it counts in means; ``at`` is where it stands on an
    axis of numbers, if there is one.
    """

    name: str
    values: dict[str, float]
    is_headline: bool = True
    at: float | None = None


@dataclass(frozen=True)
class Measured:
    """Rows of numbers of one unit: ``s``, ``share`` (of a copy), or none."""

    header: dict[str, str]
    unit: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def told(self) -> str:
        """Say when it was measured, with what, and where."""
        h = self.header
        where = f"{h['date']}, commit {h['commit']}, {h['machine']}"
        note = f" {h['note']}" if "note" in h else ""
        return f"{where}: `{h['command']}`.{note}"

    def chosen(self, columns: Sequence[str]) -> Measured:
        """Return these columns alone, in this order, where they are there."""
        kept = tuple(c for c in columns if c in self.columns)
        rows = tuple(
            Row(
                row.name,
                {c: row.values[c] for c in kept if c in row.values},
                row.is_headline,
                row.at,
            )
            for row in self.rows
        )
        return Measured(self.header, self.unit, kept, rows)


def load(name: str, view: str = "values") -> Measured:
    """Return results by the name of their file, ``h200/in_a_row``.

    ``view`` is ``share`` of the bandwidth of a copy, ``fresh`` or ``reused`` seconds,
    ``times`` (as long as nfuser) or ``reused_times`` of a comparison; other files have
    ``values``, ``times``, and the ``sum`` of the rows up to each one.
    """
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    header = {k: str(v) for k, v in found.items() if k not in ("rows", "columns")}
    read = _comparison if "copy" in found else _table
    return read(header, found, view)


def _table(header: dict[str, str], found: dict[str, Any], view: str) -> Measured:
    rows = tuple(
        Row(row["name"], row["values"], row.get("is_headline", True), row.get("at"))
        for row in found["rows"]
    )
    columns = dict.fromkeys(c for row in rows for c in row.values)
    made = Measured(header, found["unit"], tuple(columns), rows)
    if view == "times":
        return _times(made)
    return _sums(made) if view == "sum" else made


def _comparison(header: dict[str, str], found: dict[str, Any], view: str) -> Measured:
    rows: list[Row] = []
    for row in found["rows"]:
        values = _seconds(row, view)
        if view == "share":
            size = row["necessary_bytes"] / found["copy"]
            values = {name: size / s for name, s in values.items()}
        rows.append(Row(row["name"], values, row["is_headline"]))
    columns = tuple(dict.fromkeys(c for row in rows for c in row.values))
    unit = "share" if view == "share" else "s"
    made = Measured(header, unit, columns, tuple(rows))
    return _times(made) if view.endswith("times") else made


def _seconds(row: dict[str, Any], view: str) -> dict[str, float]:
    """Return seconds by library: those of new results, or of reused ones if any."""
    fresh, reused = row["fresh"], row["reused"]
    if view.startswith("reused"):
        return fresh | reused
    if view == "times" and OURS in reused:
        return fresh | {f"{OURS}, reused outputs": reused[OURS]}
    return fresh


def _times(measured: Measured) -> Measured:
    """Return how many times as long as nfuser each column takes."""
    rows = tuple(
        Row(
            row.name,
            {c: v / row.values[OURS] for c, v in row.values.items()},
            row.is_headline,
            row.at,
        )
        for row in measured.rows
        if OURS in row.values
    )
    return Measured(measured.header, "times", measured.columns, rows)


def _sums(measured: Measured) -> Measured:
    """Return what the rows up to each one make together, by their number."""
    columns = measured.columns
    total = {c: [*accumulate(row.values[c] for row in measured.rows)] for c in columns}
    rows = tuple(
        Row(f"{k + 1} rows", {c: total[c][k] for c in columns}, at=k + 1)
        for k in range(len(measured.rows))
    )
    return Measured(measured.header, measured.unit, columns, rows)


def geometric_mean(numbers: Iterable[float]) -> float:
    """Return the geometric mean of ``numbers``, of which there is one at least."""
    logs = [log(n) for n in numbers]
    return exp(sum(logs) / len(logs))


def means(measured: Measured) -> dict[str, tuple[float, int]]:
    """Return the geometric mean of each column over rows that count, and of how many.

    With ``times`` there is one more: the best of the others in each row.
    """
    rows = [row for row in measured.rows if row.is_headline]
    found: dict[str, tuple[float, int]] = {}
    for column in measured.columns:
        numbers = [row.values[column] for row in rows if column in row.values]
        if numbers:
            found[column] = geometric_mean(numbers), len(numbers)
    if measured.unit == "times":
        others = [
            [v for c, v in row.values.items() if not c.startswith(OURS)] for row in rows
        ]
        best = [min(values) for values in others if values]
        if best and len(found) > 2:  # nfuser, and more than one other
            found["the best peer"] = geometric_mean(best), len(best)
        found.pop(OURS, None)
    return found
