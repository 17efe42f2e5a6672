# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG, for light and dark pages alike: a line of dots a row, or curves."""

from __future__ import annotations

import re
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

from asv_bench.charts.measured import OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asv_bench.charts.measured import Measured, Row

COLOURS = {
    "nfuser": "#2f9e44",
    "torch.compile": "#e8590c",
    "JAX": "#4c6ef5",
    "Liger": "#9c36b5",
    "torch": "#e64980",
    "NumPy": "#868e96",
    "Numba": "#1098ad",
    "numexpr": "#b08900",
}
_OTHERS = ("#e8590c", "#4c6ef5", "#9c36b5", "#1098ad", "#e64980", "#b08900", "#868e96")
WIDTH = 560
_STYLE = (
    "<style>.nf text{fill:currentColor}.nf .e{text-anchor:end}"
    ".nf .m{text-anchor:middle}.nf .s{font-size:11px;opacity:.75}"
    ".nf .i{font-style:italic;opacity:.7}"
    ".nf .g{stroke:currentColor;stroke-opacity:.18}"
    ".nf .o{stroke:currentColor;stroke-opacity:.55;stroke-dasharray:4 3}</style>"
)


def colour(name: str) -> str:
    """Return the colour of a column: that of the library whose name it begins with."""
    start = name.partition(",")[0]
    return COLOURS.get(start) or _OTHERS[sum(map(ord, start)) % len(_OTHERS)]


def _mark(name: str, columns: Sequence[str]) -> str:
    """Return how a column's dots look: ours are filled, second ones of a library pale.

    >>> _mark("torch", ["nfuser", "torch"])
    'r="4" fill="none" stroke="#e64980" stroke-width="2.2" opacity="1"'
    """
    ink, start = colour(name), name.partition(",")[0]
    first = next((c for c in columns if c.partition(",")[0] == start), name)
    opacity = 1 if first == name else 0.45
    if start == OURS:
        return f'r="5.5" fill="{ink}" opacity="{opacity}"'
    return f'r="4" fill="none" stroke="{ink}" stroke-width="2.2" opacity="{opacity}"'


def shown(number: float, unit: str) -> str:
    """Return a number with its unit, as people write it."""
    if unit != "s":
        return f"{number:.2f}" if number < 100 else f"{number:.0f}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if number >= scale or name == "µs":
            digits = number / scale
            return f"{digits:.3g} {name}" if digits < 1000 else f"{digits:.0f} {name}"
    raise AssertionError(number)


# -- scales --------------------------------------------------------------------


def _ticks(low: float, high: float, *, is_log: bool) -> list[float]:
    if is_log:
        powers = range(floor(log10(low)), floor(log10(high)) + 1)
        steps = (1, 2, 5) if len(powers) < 3 else (1,)
        found = [step * 10.0**p for p in powers for step in steps]
    else:
        step = 10 ** floor(log10(high or 1))
        step = next(s for s in (step / 5, step / 2, step, step * 2) if high / s <= 6)
        found = [step * k for k in range(int(high / step) + 1)]
    return [t for t in found if low <= t <= high * 1.0001]


def _scale(
    low: float, high: float, first: float, last: float, *, is_log: bool
) -> Callable[[float], float]:
    def place(value: float) -> float:
        if is_log:
            part = (log10(value) - log10(low)) / (log10(high) - log10(low))
        else:
            part = (value - low) / (high - low)
        return round(first + part * (last - first), 1)

    return place


# -- one line of dots a row ------------------------------------------------------

_RIGHT, _ROW = 18, 27


def dots(measured: Measured, *, is_log: bool = False) -> str:
    """Return a row of dots for each row: one a column, on a common axis."""
    numbers = [v for row in measured.rows for v in row.values.values()]
    numbers += [] if measured.unit == "s" else [1.0]  # a copy, or nfuser
    low = min(numbers) / 1.25 if is_log else 0.0
    high = max(numbers) * (1.25 if is_log else 1.05)
    left = _room(measured)
    place = _scale(low, high, left, WIDTH - _RIGHT, is_log=is_log)
    legend, top = _legend(measured.columns)
    top += 22
    bottom = top + _ROW * len(measured.rows)
    parts = [legend]
    for tick in _ticks(low, high, is_log=is_log):
        x = place(tick)
        parts.append(f'<path d="M{x} {top}V{bottom}" class="g"/>')
        parts.append(
            f'<text x="{x}" y="{top - 6}" class="m s">{_tick(tick, measured)}</text>'
        )
    if measured.unit != "s":
        parts.append(f'<path d="M{place(1)} {top}V{bottom}" class="o"/>')
    for number, row in enumerate(measured.rows):
        y = top + _ROW * (number + 0.5)
        parts += [*_label(row, left - 10, y), *_dots_of(row, measured, place, y)]
    return _svg(parts, bottom + 6, measured)


def _dots_of(
    row: Row, measured: Measured, place: Callable[[float], float], y: float
) -> list[str]:
    parts: list[str] = []
    xs = [place(v) for v in row.values.values()]
    if xs:
        parts.append(f'<path d="M{min(xs)} {y}H{max(xs)}" class="g"/>')
    here = [c for c in reversed(measured.columns) if c in row.values]  # ours on top
    return parts + [_dot(row, c, place, y, measured) for c in here]


def _room(measured: Measured) -> int:
    """Return the width that names take, of letters of seven pixels."""
    return 20 + 7 * max(len(_parts(row.name)[0]) for row in measured.rows)


def _label(row: Row, x: int, y: float) -> list[str]:
    """Return the name of a row, in italics where it does not count in means."""
    name, size = _parts(row.name)
    up, kind = -2 if size else 4, "e" if row.is_headline else "e i"
    lines = [f'<text x="{x}" y="{y + up}" class="{kind}">{escape(name)}</text>']
    if size:
        lines.append(f'<text x="{x}" y="{y + 10}" class="e s">{size}</text>')
    return lines


def _dot(
    row: Row,
    column: str,
    place: Callable[[float], float],
    y: float,
    measured: Measured,
) -> str:
    value = row.values[column]
    told = f"{row.name}, {column}: {shown(value, measured.unit)}"
    look, x = _mark(column, measured.columns), place(value)
    return f'<circle cx="{x}" cy="{y}" {look}><title>{escape(told)}</title></circle>'


def _parts(name: str) -> tuple[str, str]:
    """Take sizes off the end of a name.

    >>> _parts("softmax bf16 16384x4096"), _parts("pad by 3 and 5")
    (('softmax bf16', '16384x4096'), ('pad by 3 and 5', ''))
    """
    size = r"\d+x[\dx]+(?:, .*)?|\d+|\([\d, ]+\)|[\d,]+ elements|\w+ cache"
    found = re.fullmatch(rf"(.*?)(?<! and),? ({size})", name)
    return (found[1], found[2]) if found else (name, "")


# -- curves ----------------------------------------------------------------------


def curves(measured: Measured, across: str, *, is_log: bool = True) -> str:
    """Return one curve a column, over the numbers that rows stand at."""
    xs = [row.at for row in measured.rows if row.at is not None]
    numbers = [v for row in measured.rows for v in row.values.values()]
    low = min(numbers) / 1.3 if is_log else 0.0
    legend, top = _legend(measured.columns)
    top += 10
    bottom, left = top + 240, 64
    across_place = _scale(min(xs), max(xs), left + 8, WIDTH - _RIGHT, is_log=False)
    place = _scale(low, max(numbers) * 1.2, bottom, top, is_log=is_log)
    parts = [legend]
    for tick in _ticks(low, max(numbers) * 1.2, is_log=is_log):
        y = place(tick)
        parts.append(f'<path d="M{left} {y}H{WIDTH - _RIGHT}" class="g"/>')
        label = _tick(tick, measured)
        parts.append(f'<text x="{left - 6}" y="{y + 4}" class="e s">{label}</text>')
    for tick in _ticks(0, max(xs), is_log=False):
        if tick >= min(xs):
            at = f'x="{across_place(tick)}" y="{bottom + 16}"'
            parts.append(f'<text {at} class="m s">{tick:,.0f}</text>')
    middle = (left + WIDTH) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 34}" class="m s">{across}</text>')
    parts += [_curve(measured, c, across_place, place) for c in measured.columns[::-1]]
    return _svg(parts, bottom + 42, measured)


def _curve(
    measured: Measured,
    column: str,
    across: Callable[[float], float],
    place: Callable[[float], float],
) -> str:
    found = sorted(
        (row.at, row.values[column])
        for row in measured.rows
        if column in row.values and row.at is not None
    )
    points = " ".join(f"{across(x)},{place(y)}" for x, y in found)
    width = 2.6 if column.startswith(OURS) else 1.6
    ink = colour(column)
    return (
        f'<polyline points="{points}" fill="none" stroke="{ink}" '
        f'stroke-width="{width}" stroke-linejoin="round"><title>{escape(column)}'
        "</title></polyline>"
    )


# -- around them -----------------------------------------------------------------


def _tick(tick: float, measured: Measured) -> str:
    if measured.unit == "s":
        return shown(tick, "s") if tick else "0"
    return f"{tick:g}"


def _legend(columns: Sequence[str]) -> tuple[str, float]:
    parts: list[str] = []
    x, y = 8.0, 16
    for column in columns:
        room = 34 + 7.2 * len(column)
        if x + room > WIDTH:
            x, y = 8.0, y + 20
        look = _mark(column, columns)
        parts.append(f'<circle cx="{x + 6}" cy="{y - 4}" {look}/>')
        parts.append(f'<text x="{x + 18}" y="{y}">{escape(column)}</text>')
        x += room
    return "".join(parts), y + 6


def _svg(parts: Sequence[str], height: float, measured: Measured) -> str:
    title = f"{', '.join(measured.columns)}: {measured.header['command']}"
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" class="nf" '
        f'viewBox="0 0 {WIDTH} {height:g}" font-family="sans-serif" font-size="13">'
    )
    label = f"<title>{escape(title)}</title>"
    return "\n".join([head, label, _STYLE, *parts, "</svg>"])
