# SPDX-License-Identifier: Apache-2.0
"""What ``explain`` returns: what was fused, what it moves, and why it was cut."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.frontend.explain.traffic import NOTHING, Traffic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.tensor import SourceLine


@value
class Operation:
    """One operation of the program, and the user's line that it came from."""

    name: str
    line: SourceLine | None = None

    def __str__(self) -> str:
        return f"{self.name} at {_place(self.line)}" if self.line else self.name


@value
class Piece:
    """One kernel, or what the array library computes: a product, a sort.

    ``schedule`` is who schedules it, with what was chosen for this call; ``placed``
    says which values lie where in between, and which would if there were room. A piece
    without elements to store is not launched.
    """

    name: str
    is_kernel: bool
    schedule: str
    operations: tuple[Operation, ...]
    traffic: Traffic
    is_launched: bool = True
    placed: tuple[str, ...] = ()


@value
class Reason:
    """What is said against one piece, and of which operation."""

    text: str
    operation: Operation | None = None

    def __str__(self) -> str:
        return f"{self.operation}: {self.text}" if self.operation else self.text


@value
class ExplainedCut:
    """Why pieces are several: ``tensor`` is what they have in common.

    The piece numbered ``stored_by`` leaves it for those in ``pieces``; where there is
    none, each of them reads it, or computes it anew.
    """

    tensor: str
    operation: Operation | None  # None for an argument
    stored_by: int | None
    pieces: tuple[int, ...]
    bytes: int
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        pieces = _listed(self.pieces)
        if self.stored_by is not None:
            return (
                f"{self.operation} ({self.tensor}): piece {self.stored_by} stores "
                f"{self.bytes:,} bytes, {pieces} read{_s(self.pieces)} them"
            )
        if self.operation is None:
            return f"{self.tensor}: {pieces} read it, each for itself"
        return f"{self.operation} ({self.tensor}): {pieces} compute it, each for itself"


@value
class Explanation:
    """How a call is fused; ``print`` it, or let a notebook show it.

    ``unfused`` is what ``operations`` move, each by itself: its operands read, its
    result written. Caches are left out of account, for both. ``notes`` are on results
    that are no new values, and on pieces that share nothing with others. ``calls`` says
    of a fused function whether native code serves such calls, and why not.
    """

    name: str
    where: str
    arguments: tuple[str, ...]
    operations: int
    pieces: tuple[Piece, ...]
    cuts: tuple[ExplainedCut, ...]
    unfused: Traffic
    notes: tuple[str, ...] = ()
    calls: str | None = None

    @property
    def kernels(self) -> int:
        """The number of kernels that are launched."""
        return sum(p.is_kernel and p.is_launched for p in self.pieces)

    @property
    def fused(self) -> Traffic:
        """What the pieces must move."""
        return sum((p.traffic for p in self.pieces if p.is_launched), NOTHING)

    @property
    def summary(self) -> tuple[str, ...]:
        """The operations against the kernels, the bytes that both move, the calls."""
        calls = sum(not p.is_kernel and p.is_launched for p in self.pieces)
        own = f"{self.kernels} kernel{'s' * (self.kernels != 1)}"
        if calls:
            own += f", {calls} call{'s' * (calls != 1)} of the array library"
        times = self.unfused.total / self.fused.total if self.fused.total else 0
        more = f": {times:.1f} times as many" if times >= _WORTH_SAYING else ""
        operations = f"{self.operations} array operation{'s' * (self.operations != 1)}"
        calls_are = (f"calls   {self.calls}",) if self.calls else ()
        return (
            f"{operations} in {own}",
            f"fused   {_moved(self.fused)}",
            f"unfused {_moved(self.unfused)}{more}",
            *calls_are,
        )

    def __str__(self) -> str:
        lines = [self._title, *(f"  {line}" for line in self.summary)]
        for number, piece in enumerate(self.pieces):
            lines += ["", f"piece {number}: {piece.name}{_idle(piece)}"]
            lines += [f"  {line}" for line in (piece.schedule, *piece.placed)]
            lines.append(f"  {_moved(piece.traffic)}")
            rows = list(_by_line(piece.operations))
            width = max((len(row[0]) for row in rows), default=0)
            lines += [f"  {what:<{width}}  {at}".rstrip() for what, at in rows]
        for cut in self.cuts:
            lines += ["", f"cut: {cut}", *(f"  {reason}" for reason in cut.reasons)]
        lines += ["", *self.notes] if self.notes else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    @property
    def _title(self) -> str:
        return f"{self.name}({', '.join(self.arguments)}) on {self.where}"

    def _repr_html_(self) -> str:
        rows: list[str] = []
        for number, piece in enumerate(self.pieces):
            done = "<br>".join(
                f"{escape(what)} <small>{escape(at)}</small>"
                for what, at in _by_line(piece.operations)
            )
            name = escape(f"{number}: {piece.name}{_idle(piece)}")
            moved = (piece.traffic.reads, piece.traffic.writes)
            chosen = map(escape, (piece.schedule, *piece.placed))
            schedule = f"<small>{'<br>'.join(chosen)}</small>"
            cells = [f"{name}<br>{schedule}", done, *(f"{n:,}" for n in moved)]
            rows.append(_row("td", cells))
        cuts = [
            f"cut: {escape(str(cut))}"
            f"<ul>{''.join(f'<li>{escape(str(r))}</li>' for r in cut.reasons)}</ul>"
            for cut in self.cuts
        ]
        head = _row("th", ["piece", "operations", "bytes read", "bytes written"])
        summary = map(escape, self.summary)
        return (
            f"<div><b>{escape(self._title)}</b><br>{'<br>'.join(summary)}"
            f"<table>{head}{''.join(rows)}</table>"
            f"{''.join(f'<p>{x}</p>' for x in (*cuts, *map(escape, self.notes)))}</div>"
        )


_WORTH_SAYING = 1.05


def _idle(piece: Piece) -> str:
    return "" if piece.is_launched else ", not launched: there is nothing to store"


def _row(kind: str, cells: Iterable[str]) -> str:
    listed = "".join(
        f'<{kind} style="text-align:left">{cell}</{kind}>' for cell in cells
    )
    return f"<tr>{listed}</tr>"


def _by_line(operations: Iterable[Operation]) -> Iterable[tuple[str, str]]:
    """Yield the names of what each line does, and the line."""
    names: dict[SourceLine | None, list[str]] = {}
    for operation in operations:
        names.setdefault(operation.line, []).append(operation.name)
    for line, found in names.items():
        at = f"{_place(line)}  {line.text}" if line else ""
        yield ", ".join(dict.fromkeys(found)), at


def _place(line: SourceLine) -> str:
    return f"{Path(line.file).name}:{line.line}"


def _moved(traffic: Traffic) -> str:
    return (
        f"{traffic.total:,} bytes ({traffic.reads:,} read, {traffic.writes:,} written)"
    )


def _listed(numbers: tuple[int, ...]) -> str:
    *others, last = map(str, numbers)
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"piece{'s' * bool(others)} {listed}"


def _s(several: tuple[int, ...]) -> str:
    return "s" * (len(several) == 1)
