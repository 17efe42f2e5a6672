# SPDX-License-Identifier: Apache-2.0
"""The graph of a call: its operations, what they hand on, and who runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import Argument, Constant, FromScalar, results, sources
from nfuser.compiler.ir.text import Names, expr_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts


@value
class GraphNode:
    """An operation, or an argument; ``piece`` is the number of who runs it."""

    key: str
    label: str
    detail: str
    piece: int | None = None
    place: str | None = None


@value
class Edge:
    """What one node hands to another."""

    start: str
    end: str
    detail: str


@value
class Graph:
    """Nodes in an order in which they can run, and the edges between them."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]


def place_of(tensor: TensorView) -> str | None:
    """Return the file and line of the program that ``tensor`` comes from."""
    found = tensor.source
    return f"{found.file}:{found.line}" if found else None


def graph_of(
    pieces: Sequence[Fusion], facts: Facts, arguments: Mapping[int, str]
) -> Graph:
    """Return the graph of ``pieces``, which share the tensors that cross them."""
    return _Drawing(facts, arguments).run(pieces)


class _Drawing:
    def __init__(self, facts: Facts, arguments: Mapping[int, str]) -> None:
        self.facts = facts
        self.arguments = arguments
        self.nodes: dict[str, GraphNode] = {}
        self.edges: dict[tuple[str, str], Edge] = {}
        self.makers: dict[TensorView, str] = {}  # across pieces

    def run(self, pieces: Sequence[Fusion]) -> Graph:
        for number, fusion in enumerate(pieces):
            self._piece(number, fusion)
        self._results(pieces)
        return Graph(tuple(self.nodes.values()), tuple(self.edges.values()))

    def _piece(self, number: int, fusion: Fusion) -> None:
        own: dict[TensorView, str] = {}
        for expr in fusion.exprs:
            if isinstance(expr, Constant | FromScalar):
                continue
            if isinstance(expr, Argument):
                own[expr.result] = self._given(expr)
                continue
            key = f"e{len(self.nodes)}"
            made = results(expr)[0]
            self._add(key, expr, made, number)
            for tensor in sources(expr):
                if tensor in own:
                    self._connect(own[tensor], key, tensor)
            own |= dict.fromkeys(results(expr), key)
        self.makers |= {t: own[t] for t in fusion.outputs if t in own}

    def _add(self, key: str, expr: Expr, made: TensorView, number: int) -> None:
        name = expr_text(expr, Names()).partition("(")[0].removesuffix("_near")
        self.nodes[key] = GraphNode(
            key, name, self._typed(made), number, place_of(made)
        )

    def _given(self, expr: Argument) -> str:
        """Return who makes what a piece is given: another piece, or the caller."""
        tensor = expr.result
        if tensor in self.makers:
            return self.makers[tensor]
        name = self.arguments.get(expr.slot, "carried") + expr.part.value
        key = f"a{expr.slot}{expr.part.value}"
        self.nodes.setdefault(key, GraphNode(key, name, self._typed(tensor)))
        return key

    def _results(self, pieces: Sequence[Fusion]) -> None:
        read = {a.result for fusion in pieces for a in fusion.arguments}
        left = [t for fusion in pieces for t in fusion.outputs if t not in read]
        for number, tensor in enumerate(t for t in left if t in self.makers):
            key = f"r{number}"
            self.nodes[key] = GraphNode(key, "result", self._typed(tensor))
            self._connect(self.makers[tensor], key, tensor)

    def _connect(self, start: str, end: str, tensor: TensorView) -> None:
        self.edges.setdefault((start, end), Edge(start, end, self._typed(tensor)))

    def _typed(self, tensor: TensorView) -> str:
        shape = ", ".join(str(self.facts.size(extent)) for extent in tensor.shape)
        return f"{tensor.dtype}[{shape}]"
