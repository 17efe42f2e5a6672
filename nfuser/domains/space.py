# SPDX-License-Identifier: Apache-2.0
"""The space of loops that one kernel can run a fusion in.

Axes that must run together form a class: a pointwise result's axes with those of its
operands, and so on through views that keep an extent. All reductions of a kernel fold
the same classes; every output runs over the others, or over all. Classes say which
loop drives which axis of a *root* (an output or a reduction); every other index is
pulled from there (``maps.source_points``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nfuser.domains.maps import Point, reduced_point, source_points
from nfuser.ir import scalar as sc
from nfuser.ir.base import node, value
from nfuser.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Permute,
    Pointwise,
    Reduce,
    Slice,
    Squeeze,
    results,
    sources,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import LoopIndex
    from nfuser.ir.tensor import TensorView

AxisKey: TypeAlias = "tuple[TensorView, int]"
Read: TypeAlias = "tuple[TensorView, Point]"


@value
class Mismatch:
    """Why a fusion has no space of its own."""

    reason: str
    tensor: TensorView | None = None


@node
class Space:
    """The loops of a kernel: ``kept`` ones, and those that reductions fold.

    ``points`` gives, for each root, the index of its result; ``levels`` counts the
    reductions that must be complete before each one begins.
    """

    kept: tuple[LoopIndex, ...]
    reduced: tuple[LoopIndex, ...]
    points: Mapping[TensorView, Point]
    folded: Mapping[Reduce, Point]
    levels: Mapping[Reduce, int]

    @property
    def loops(self) -> tuple[LoopIndex, ...]:
        """All loops, the kept ones first."""
        return self.kept + self.reduced

    def source_point(self, reduce: Reduce) -> Point:
        """Return where ``reduce`` reads its source."""
        return reduced_point(reduce, self.points[reduce.result], self.folded[reduce])


def find_space(fusion: Fusion) -> Space | Mismatch:
    """Return the space of ``fusion``, or why it has none."""
    classes = _Classes(fusion)
    roots = [*fusion.reductions, *dict.fromkeys(fusion.outputs)]
    single = len(roots) == 1
    wanted = _wanted(fusion, classes, single)
    if isinstance(wanted, Mismatch):
        return wanted
    kept, reduced = wanted
    loops: dict[AxisKey, LoopIndex] = {}
    for number, key in enumerate([*kept, *reduced]):
        loops[key] = sc.loop_index(number, key[0].axes[key[1]].extent)

    def indices(keys: list[AxisKey | None]) -> Point:
        return tuple(sc.const(0) if k is None else loops[k] for k in keys)

    points: dict[TensorView, Point] = {}
    folded: dict[Reduce, Point] = {}
    for reduce in fusion.reductions:
        own = classes.of(reduce.source, single)
        rest = [k for a, k in enumerate(own) if a not in reduce.axes]
        folded[reduce] = indices([own[a] for a in reduce.axes])
        points.update(dict.fromkeys(reduce.results, indices(rest)))
    for output in fusion.outputs:
        if output not in points:
            points[output] = indices(classes.of(output, single))
    space = Space(
        tuple(loops[k] for k in kept),
        tuple(loops[k] for k in reduced),
        points,
        folded,
        _levels(fusion),
    )
    return _misread(fusion, space) or space


def _wanted(
    fusion: Fusion, classes: _Classes, single: bool
) -> tuple[list[AxisKey], list[AxisKey]] | Mismatch:
    """Return the classes of the kept and of the reduced loops."""
    kept: list[AxisKey] | None = None
    reduced: list[AxisKey] = []
    for reduce in fusion.reductions:
        own = classes.of(reduce.source, single)
        if _repeats(own):
            return Mismatch("an axis meets itself transposed", reduce.source)
        folds = [k for a, k in enumerate(own) if a in reduce.axes and k is not None]
        rest = [k for a, k in enumerate(own) if a not in reduce.axes and k is not None]
        if kept is None:
            kept, reduced = rest, folds
        elif set(folds) != set(reduced) or set(rest) != set(kept):
            return Mismatch("it reduces other axes than the rest", reduce.result)
    for output in fusion.outputs:
        own = classes.of(output, single)
        if _repeats(own):
            return Mismatch("an axis meets itself transposed", output)
        present = [k for k in own if k is not None]
        if kept is None:
            kept = present
        if set(present) not in (set(kept), set(kept) | set(reduced)):
            return Mismatch("it runs over other axes than the rest", output)
    return kept or [], reduced


def _repeats(keys: list[AxisKey | None]) -> bool:
    present = [k for k in keys if k is not None]
    return len(set(present)) < len(present)


def _levels(fusion: Fusion) -> dict[Reduce, int]:
    depth: dict[TensorView, int] = {}
    levels: dict[Reduce, int] = {}
    for expr in fusion.exprs:
        above = max((depth[t] for t in sources(expr)), default=0)
        if isinstance(expr, Reduce):
            levels[expr] = above
            above += 1
        depth.update(dict.fromkeys(results(expr), above))
    return levels


def reads(fusion: Fusion, roots: list[Read]) -> Iterator[Read]:
    """Yield each tensor and point that ``roots`` need, sources last.

    The walk stops at reductions: what they fold is a root of its own.
    """
    seen = set(roots)
    stack = list(reversed(roots))
    while stack:
        tensor, point = stack.pop()
        expr = fusion.definition[tensor]
        yield tensor, point
        for read in reversed(source_points(expr, point)):
            if read not in seen:
                seen.add(read)
                stack.append(read)


def _misread(fusion: Fusion, space: Space) -> Mismatch | None:
    """Refuse what would read a reduction at a point where it is not evaluated."""
    roots = [(t, space.points[t]) for t in fusion.outputs]
    roots += [(r.source, space.source_point(r)) for r in fusion.reductions]
    for tensor, point in reads(fusion, list(dict.fromkeys(roots))):
        is_folded = isinstance(fusion.definition[tensor], Reduce)
        if is_folded and point != space.points[tensor]:
            return Mismatch("a reduction is read at another index", tensor)
    return None


class _Classes:
    """Union of axes that one loop drives."""

    def __init__(self, fusion: Fusion) -> None:
        self._parent: dict[AxisKey, AxisKey] = {}
        for expr in fusion.exprs:
            self._relate(expr)

    def of(self, tensor: TensorView, single: bool) -> list[AxisKey | None]:
        """Return the class of each axis; broadcast axes have none.

        A fusion with a single root needs no classes: each axis is its own loop.
        """
        return [
            None
            if axis.is_broadcast
            else (tensor, k)
            if single
            else self._find((tensor, k))
            for k, axis in enumerate(tensor.axes)
        ]

    def _find(self, key: AxisKey) -> AxisKey:
        while (parent := self._parent.get(key, key)) != key:
            key = parent
        return key

    def _join(self, a: AxisKey, b: AxisKey) -> None:
        if a[0].axes[a[1]].is_broadcast or b[0].axes[b[1]].is_broadcast:
            return
        first, second = self._find(a), self._find(b)
        if first != second:
            self._parent[second] = first

    def _relate(self, expr: Expr) -> None:
        """Join each axis of a source with the axis of a result that it runs along."""
        for result in results(expr):
            for source in sources(expr):
                for k, axis in _pairs(expr, source, result):
                    self._join((source, k), (result, axis))


def _pairs(expr: Expr, source: TensorView, result: TensorView) -> list[tuple[int, int]]:
    """Return the axes of ``source`` and ``result`` that one loop may drive."""
    match expr:
        case Pointwise() | Expand():
            shift = result.ndim - source.ndim
            return [(k, k + shift) for k in range(source.ndim)]
        case Permute(_, _, order):
            return [(axis, k) for k, axis in enumerate(order)]
        case Slice():
            pairs = zip(source.shape, result.shape, strict=True)
            return [(k, k) for k, (a, b) in enumerate(pairs) if a is b]
        case ExpandDims(_, _, axes):
            own = (k for k in range(result.ndim) if k not in axes)
            return list(enumerate(own))
        case Squeeze(_, _, axes) | Reduce(_, _, _, axes):
            own = (k for k in range(source.ndim) if k not in axes)
            return [(axis, k) for k, axis in enumerate(own)]
        case Argument() | Constant() | FromScalar() | Iota():
            return []
