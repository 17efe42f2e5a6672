# SPDX-License-Identifier: Apache-2.0
"""Find how each tensor of a fusion lies over ranks, and where that has to change."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from nfuser.compiler.domains.slices import source_axes
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    Constant,
    Expand,
    Expr,
    FromScalar,
    Iota,
    Matmul,
    Pointwise,
    Reduce,
    Remap,
    results,
    sources,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import Const, Size, const
from nfuser.compiler.segment.sharding import FOLDS, REPLICATED, Sharding, check_layouts
from nfuser.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.segment.sharding import Layout, Shardings


@node
class PropagatedShardings:
    """How each expression runs on a rank's part of what it reads.

    ``reads`` has the layout that it needs of each source, ``gives`` that in which its
    results come out.
    """

    shardings: Shardings
    reads: Mapping[Expr, tuple[Layout, ...]]
    gives: Mapping[TensorView, Layout]

    def read_by(self, exprs: Iterable[Expr]) -> dict[TensorView, Layout] | None:
        """Return how ``exprs`` read their sources; None if one in two ways."""
        found: dict[TensorView, Layout] = {}
        for expr in exprs:
            for tensor, layout in zip(
                sources(expr), self.reads.get(expr, ()), strict=True
            ):
                if found.setdefault(tensor, layout) != layout:
                    return None
        return found

    def may_share(self, exprs: Sequence[Expr]) -> bool:
        """Tell whether no tensor between ``exprs`` has to change how it lies."""
        reads = self.read_by(exprs)
        made = (t for expr in exprs for t in results(expr))
        return reads is not None and all(
            reads.get(t, self.gives[t]) == self.gives[t] for t in made
        )


def spread(fusion: Fusion, shardings: Shardings) -> PropagatedShardings:
    """Return how ``fusion`` runs where some of its tensors lie as ``shardings`` says.

    Each expression runs in the way that takes the fewest exchanges, looked at from
    the first on, a dimension of the mesh at a time.
    """
    check_layouts(shardings.mesh, shardings.layouts)
    if any(t not in fusion.definition for t in shardings.layouts):
        message = f"the shardings name a tensor that is not in {fusion.name}"
        raise ArgumentError(message)
    ways = [
        _Spreader(fusion, shardings, dim).run() for dim in range(len(shardings.mesh))
    ]
    return PropagatedShardings(
        shardings,
        {e: tuple(zip(*(w[e].needs for w in ways), strict=True)) for e in fusion.exprs},
        {t: tuple(w[e].gives for w in ways) for e in fusion.exprs for t in results(e)},
    )


@value
class _Way:
    """What an expression needs of its sources, and then gives."""

    needs: tuple[Sharding, ...]
    gives: Sharding


class _Spreader:
    """Goes through a fusion for one dimension of a mesh."""

    def __init__(self, fusion: Fusion, shardings: Shardings, dim: int) -> None:
        self.fusion = fusion
        self.ranks = shardings.mesh[dim]
        self.bound = {t: layout[dim] for t, layout in shardings.layouts.items()}
        self.lies: dict[TensorView, Sharding] = {}

    def run(self) -> dict[Expr, _Way]:
        """Return how each expression runs."""
        found: dict[Expr, _Way] = {}
        for expr in self.fusion.exprs:
            wanted = self.bound.get(results(expr)[0])
            if isinstance(expr, Argument):
                way = _Way((), wanted or REPLICATED)
            else:
                way = self._best(expr, wanted)
            found[expr] = way
            for tensor in results(expr):
                self.lies[tensor] = self.bound.get(tensor, way.gives)
        return found

    def _best(self, expr: Expr, wanted: Sharding | None) -> _Way:
        """Return the way with the fewest exchanges, that of the result included."""
        # An owner's tensor costs one exchange, however it is needed.
        given = [self.lies[t] for t in sources(expr)]
        given = [REPLICATED if s.owner is not None else s for s in given]
        if wanted is not None and (wanted.owner is not None or wanted.partial):
            wanted = None
        has_parts = any(s.axis is not None for s in given)

        def cost(way: _Way) -> tuple[int, bool, bool]:
            pairs = zip(given, way.needs, strict=True)
            before = sum(lies not in (need, REPLICATED) for lies, need in pairs)
            after = way.gives not in (wanted, REPLICATED)
            if wanted is None:
                after = bool(way.gives.partial)
            spreads = way.gives != REPLICATED
            # What is exchanged after a fold is smaller than what went into it.
            return before + after, not way.gives.partial, spreads is not has_parts

        return min(self._ways(expr, given), key=cost)

    def _ways(self, expr: Expr, given: Sequence[Sharding]) -> Iterator[_Way]:
        tensors = sources(expr)
        if partial := [s for s in given if s.partial]:
            pairs = zip(tensors, given, strict=True)
            rest = [t for t, s in pairs if s != partial[0]]
            others = [self.fusion.definition[t] for t in rest]
            whole = all(self.lies[t] == REPLICATED for t in rest)
            if whole and given[0].partial and _kept(expr, given[0].partial, others):
                yield _Way(tuple(given), given[0])
        for axis in range(results(expr)[0].ndim):
            needs = source_axes(expr, axis)
            if needs is not None and (found := self._parts(tensors, needs)):
                yield _Way(found, Sharding(axis))
        for fold, needs in _folded(expr):
            if found := self._parts(tensors, needs):
                yield _Way(found, Sharding(partial=fold))
        yield _Way((REPLICATED,) * len(tensors), REPLICATED)

    def _parts(
        self, tensors: Sequence[TensorView], axes: Sequence[int | None]
    ) -> tuple[Sharding, ...] | None:
        """Return parts along ``axes``, if there are such, alike for equal tensors."""
        found: dict[TensorView, Sharding] = {}
        for tensor, axis in zip(tensors, axes, strict=True):
            extent = const(1) if axis is None else tensor.shape[axis]
            part = REPLICATED if extent is const(1) else Sharding(axis)
            uneven = isinstance(extent, Const) and extent.value % self.ranks
            counts = isinstance(self.fusion.definition[tensor], Iota)
            if part != REPLICATED and (uneven or counts):
                return None
            if found.setdefault(tensor, part) != part:
                return None
        parts = tuple(found[t] for t in tensors)
        return parts if any(p != REPLICATED for p in parts) else None


def _folded(expr: Expr) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield how parts of the sources give parts of a fold that ranks can complete."""
    match expr:
        case Reduce(op, _, _, axes) if op.value in FOLDS:
            for axis in axes:
                yield op.value, (axis,)
        case Matmul(lhs, rhs):
            yield "sum", (lhs.ndim - 1, max(rhs.ndim - 2, 0))
        case _:
            pass


def _kept(expr: Expr, fold: str, others: Sequence[Expr]) -> bool:
    """Tell whether parts of a fold may go through ``expr`` as they are.

    ``others`` define what else it reads, which all ranks have. Sums go through what is
    linear, all folds through what moves their elements.
    """
    match expr:
        case Reduce(op):
            return op.value == fold
        case Pointwise(op) if op.name == "copy":
            return True
        case Pointwise(op, operands) if fold == "sum" and not others:
            return op.name == "negative" or (
                op.name in ("add", "subtract") and len(operands) == 2
            )
        case Pointwise(op) if fold == "sum" and op.name in ("multiply", "divide"):
            return all(_is_scale(e) for e in others)
        case _:
            return isinstance(expr, VIEWS) and not isinstance(expr, Expand | Remap)


def _is_scale(expr: Expr) -> bool:
    """Tell whether a product with each part is finite where that with the sum is."""
    if isinstance(expr, Constant):
        return isfinite(abs(expr.value)) and bool(expr.value)
    if isinstance(expr, FromScalar):
        return all(isinstance(s, Size) for s in scalar_walk.symbols([expr.scalar]))
    return False
