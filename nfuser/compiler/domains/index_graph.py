# SPDX-License-Identifier: Apache-2.0
"""Which axes of a fusion have the same index, and where: indexing made visible.

An axis alone has no index; an axis as one expression reads or writes it has. So nodes
are (axis, expression) pairs, and a group holds those with the same index, which comes
from walking uses (``maps.source_points``) and never from extents. An axis that one
expression reads at two places is in two groups. Nothing is generated from this graph:
it shows what lowering does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.maps import Point, loops_of, source_points
from nfuser.compiler.domains.space import Mismatch, Space, find_space
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Argument, Reduce, Scan, results, sources
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Datum
from nfuser.compiler.ir.text import Names, expr_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import IterDomain, TensorView

Node: TypeAlias = "tuple[IterDomain, Expr]"


@node
class IndexGraph:
    """The groups by their index, and each read with its point.

    ``reads`` are (expression, source, point), one for each evaluation.
    """

    fusion: Fusion
    groups: Mapping[Scalar, tuple[Node, ...]]
    reads: tuple[tuple[Expr, TensorView, Point], ...]

    def indices(self, axis: IterDomain, expr: Expr) -> list[Scalar]:
        """Return every index that ``axis`` has where ``expr`` reads or writes it."""
        return [index for index, group in self.groups.items() if (axis, expr) in group]


def index_graph(
    fusion: Fusion, placed: Mapping[TensorView, int] | None = None
) -> IndexGraph | Mismatch:
    """Return the graph of a fusion that one kernel can run, or why none can.

    Tensors in ``placed`` are kept in memory, and computed in loops of their own inside
    the given number of loops of the kernel; all others are computed where they are
    read.
    """
    space = find_space(fusion)
    if isinstance(space, Mismatch):
        return space
    walk = _Walk(fusion, space, placed or {})
    for expr in reversed(fusion.exprs):
        walk.visit(expr)
    groups = {index: tuple(found) for index, found in walk.groups.items()}
    return IndexGraph(fusion, groups, tuple(walk.reads))


class _Walk:
    """Visits expressions, users first, and notes where each is evaluated."""

    def __init__(
        self, fusion: Fusion, space: Space, placed: Mapping[TensorView, int]
    ) -> None:
        self.groups: dict[Scalar, dict[Node, None]] = {}
        self.reads: list[tuple[Expr, TensorView, Point]] = []
        self._space = space
        self._placed = placed
        self._loops = len(space.loops)
        self._points: dict[TensorView, dict[Point, None]] = {}
        for output in fusion.outputs:
            self._meet(output, space.points[output])

    def visit(self, expr: Expr) -> None:
        """Note the indices of ``expr`` at each of its points."""
        if isinstance(expr, Argument):
            return
        if isinstance(expr, Reduce):
            for result in expr.results:
                self._note(expr, result, self._space.points[result])
            self._read(expr, expr.source, self._space.source_point(expr))
            return
        if isinstance(expr, Scan):
            point = self._space.points[expr.result]
            self._note(expr, expr.result, point)
            self._read(expr, expr.source, point)
            return
        (result,) = results(expr)
        for point in self._evaluated(result):
            self._note(expr, result, point)
            for source, where in dict.fromkeys(source_points(expr, point)):
                self._read(expr, source, where)

    def _evaluated(self, tensor: TensorView) -> list[Point]:
        """Return where ``tensor`` is computed: where it is read, or in own loops."""
        found = list(self._points.get(tensor, ()))
        if tensor not in self._placed or not found:
            return found
        outside = set(self._space.loops[: self._placed[tensor]])
        index: list[Scalar] = []
        for k, axis in enumerate(tensor.axes):
            first, *others = dict.fromkeys(point[k] for point in found)
            if others or not outside.issuperset(loops_of(Point((first,)))):
                first = self._own_loop(axis)
            index.append(first)
        return [Point(tuple(index))]

    def _own_loop(self, axis: IterDomain) -> LoopIndex:
        self._loops += 1
        return scalar_symbols.loop_index(self._loops - 1, axis.extent)

    def _read(self, expr: Expr, source: TensorView, point: Point) -> None:
        self.reads.append((expr, source, point))
        self._note(expr, source, point)
        self._meet(source, point)

    def _note(self, expr: Expr, tensor: TensorView, point: Point) -> None:
        for axis, index in zip(tensor.axes, point, strict=True):
            self.groups.setdefault(index, {})[axis, expr] = None

    def _meet(self, tensor: TensorView, point: Point) -> None:
        self._points.setdefault(tensor, {})[point] = None


# -- text --------------------------------------------------------------------


def text(graph: IndexGraph) -> str:
    """Render ``graph``: the axes by name, each read, and the groups."""
    return "\n".join(_Printer(graph).lines()) + "\n"


class _Printer:
    """Names axes I0, I1, ... and those of extent 1 b0, b1, ..."""

    def __init__(self, graph: IndexGraph) -> None:
        self._graph = graph
        self._names = Names()
        self._axes: dict[IterDomain, str] = {}
        for tensor in graph.fusion.definition:
            self._names.tensor(tensor)
            for axis in tensor.axes:
                self._name_axis(axis)
        self._verbs = self._verbs_of(graph.fusion)

    def _name_axis(self, axis: IterDomain) -> None:
        letter = "b" if axis.is_broadcast else "I"
        count = sum(name.startswith(letter) for name in self._axes.values())
        self._axes.setdefault(axis, f"{letter}{count}")

    def _verbs_of(self, fusion: Fusion) -> dict[Expr, str]:
        """Return the word for each expression, with its result where it is no name."""
        words = {e: expr_text(e, self._names).partition("(")[0] for e in fusion.exprs}
        often = {w for w in words.values() if list(words.values()).count(w) > 1}
        return {
            e: f"{w} {self._names.tensor(results(e)[0])}" if w in often else w
            for e, w in words.items()
        }

    def lines(self) -> list[str]:
        """Return the lines of the text."""
        found = [f"index graph of {self._graph.fusion.name}"]
        for expr in self._graph.fusion.exprs:
            left = ", ".join(map(self._tensor, results(expr)))
            given = ", ".join(map(self._names.tensor, sources(expr)))
            verb = self._verbs[expr].partition(" ")[0]
            found.append(f"  {left} = {verb}({given})" if given else f"  {left}")
        found.append("reads")
        found += [f"  {self._read(*read)}" for read in self._graph.reads]
        found.append("groups")
        for index, group in self._graph.groups.items():
            pairs = (f"({self._axes[a]}, {self._verbs[e]})" for a, e in group)
            found.append(f"  {self._scalar(index)}: {', '.join(pairs)}")
        return found

    def _tensor(self, tensor: TensorView) -> str:
        axes = ", ".join(self._axes[axis] for axis in tensor.axes)
        return f"{self._names.tensor(tensor)}[{axes}]"

    def _read(self, expr: Expr, source: TensorView, point: Point) -> str:
        conditions = " and ".join(map(self._scalar, point.guard))
        where = f" where {conditions}" if conditions else ""
        name = self._names.tensor(source)
        return f"{self._verbs[expr]}: {name}[{self._listed(point)}]{where}"

    def _listed(self, index: Iterable[Scalar]) -> str:
        return ", ".join(map(self._scalar, index))

    def _scalar(self, x: Scalar) -> str:
        return scalar_walk.text(x, self._symbol)

    def _symbol(self, x: Scalar) -> str | None:
        """Name a symbol; an element of an index tensor is what it reads."""
        if not isinstance(x, Datum):
            return self._names.symbol(x)
        tensors = self._graph.fusion.definition
        name = next(self._names.tensor(t) for t in tensors if t is x.tensor)
        return f"{name}[{self._listed(x.index)}]"
