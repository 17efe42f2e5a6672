# SPDX-License-Identifier: Apache-2.0
"""What ``report`` returns: a page to save, to send, and to read without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value
from nfuser.frontend.report.page import page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.frontend.explain.explanation import (
        ExplainedCut,
        Explanation,
        Operation,
        Piece,
    )
    from nfuser.frontend.report.graph import Graph


@value
class Line:
    """A line of the user's: ``place`` is its file and its number."""

    place: str
    text: str


@value
class ReportSection:
    """Lines of one file that belong together."""

    title: str
    lines: tuple[Line, ...]


@value
class Code:
    """A kernel as it is printed, and the lines that its names stand for."""

    entry: str
    source: str
    schedule: str
    kernel: str
    places: Mapping[str, str]


@value
class Stored:
    """What the piece ``first`` leaves in memory until ``last`` has read it."""

    tensor: str
    bytes: int
    first: int
    last: int


@value
class PassStage:
    """The fusion as a pass left it."""

    name: str
    text: str


@value
class Report:
    """One page of how a call is fused: ``save`` it, or let a notebook show it.

    Your lines stand beside the kernels that run them; then come the graph, what is
    moved, why pieces are apart, each kernel's schedule and source, what the passes
    did, and what the caches held. The page needs no network.
    """

    explanation: Explanation
    version: str
    graph: Graph
    sections: tuple[ReportSection, ...]
    codes: tuple[Code | None, ...]
    stored: tuple[Stored, ...]
    stages: tuple[PassStage, ...]
    why: str
    table: str
    counts: Mapping[str, int]

    def save(self, path: str | Path) -> Path:
        """Write the page to ``path``, and return it."""
        path = Path(path)
        path.write_text(self.html(), encoding="utf-8")
        return path

    def html(self) -> str:
        """Return the page."""
        return page(self.explanation.name, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return what the page shows, as lists, dicts, texts and numbers."""
        told = self.explanation
        pairs = zip(told.pieces, self.codes, strict=True)
        return {
            "name": told.name,
            "where": told.where,
            "version": self.version,
            "arguments": list(told.arguments),
            "summary": list(told.summary),
            "operations": told.operations,
            "kernels": told.kernels,
            "fused": told.fused.total,
            "unfused": told.unfused.total,
            "notes": list(told.notes),
            "sections": [_section(s) for s in self.sections],
            "pieces": [_piece(piece, code) for piece, code in pairs],
            "cuts": [_cut(cut) for cut in told.cuts],
            "stored": [
                {"tensor": s.tensor, "bytes": s.bytes, "first": s.first, "last": s.last}
                for s in self.stored
            ],
            "graph": _graph(self.graph),
            "stages": [{"name": s.name, "text": s.text} for s in self.stages],
            "cache": {
                "why": self.why,
                "table": self.table,
                "counts": dict(self.counts),
            },
        }

    def __str__(self) -> str:
        return str(self.explanation)

    def __repr__(self) -> str:
        return f"<nfuser.Report {self.explanation.name}: save(path) writes the page>"

    def _repr_html_(self) -> str:
        style = "width:100%;height:640px;border:1px solid #8884;border-radius:6px"
        return f'<iframe style="{style}" srcdoc="{escape(self.html())}"></iframe>'


def _section(section: ReportSection) -> dict[str, Any]:
    lines = [{"place": line.place, "text": line.text} for line in section.lines]
    return {"title": section.title, "lines": lines}


def _piece(piece: Piece, code: Code | None) -> dict[str, Any]:
    return {
        "name": piece.name,
        "is_kernel": piece.is_kernel,
        "is_launched": piece.is_launched,
        "schedule": piece.schedule,
        "reads": piece.traffic.reads,
        "writes": piece.traffic.writes,
        "operations": [_operation(o) for o in piece.operations],
        "source": code and code.source,
        "loops": code and code.schedule,
        "kernel": code and code.kernel,
        "places": code and dict(code.places),
    }


def _operation(operation: Operation) -> dict[str, Any]:
    line = operation.line
    return {"name": operation.name, "place": f"{line.file}:{line.line}" if line else ""}


def _cut(cut: ExplainedCut) -> dict[str, Any]:
    return {
        "text": str(cut),
        "reasons": [str(reason) for reason in cut.reasons],
        "pieces": [*(() if cut.stored_by is None else (cut.stored_by,)), *cut.pieces],
    }


def _graph(graph: Graph) -> dict[str, Any]:
    nodes = [
        {
            "key": n.key,
            "label": n.label,
            "detail": n.detail,
            "piece": n.piece,
            "place": n.place,
        }
        for n in graph.nodes
    ]
    edges = [{"start": e.start, "end": e.end, "detail": e.detail} for e in graph.edges]
    return {"nodes": nodes, "edges": edges}
