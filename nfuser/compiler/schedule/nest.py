# SPDX-License-Identifier: Apache-2.0
"""A loop nest: how the loops of a space are split, merged and bound.

A schedule is built by ``NestBuilder`` and frozen into a ``Nest``: leaves in order, and
for each loop of the space its index in terms of the leaves'.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import less, minimum
from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar, as_scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nfuser.compiler.schedule.facts.layout import Groups


class Binding(Enum):
    """What runs a leaf; the value is the tag printed for it."""

    BLOCK_X = "blockIdx.x"
    BLOCK_Y = "blockIdx.y"
    THREAD_X = "threadIdx.x"
    THREAD_Y = "threadIdx.y"
    PACKET = "packet"
    SERIAL = "serial"
    UNROLLED = "unrolled"
    PARALLEL = "parallel"
    VECTOR = "vector"

    @property
    def is_bound(self) -> bool:
        """Whether the hardware (or the caller's range) runs the leaf, not a loop."""
        return self in _BOUND

    @property
    def is_lane(self) -> bool:
        """Whether the leaf is the innermost, elementwise one."""
        return self in (Binding.PACKET, Binding.VECTOR)


_BOUND = {
    Binding.BLOCK_X,
    Binding.BLOCK_Y,
    Binding.THREAD_X,
    Binding.THREAD_Y,
    Binding.PARALLEL,
}


class LastTile(Enum):
    """What becomes of a last tile that is not full."""

    EXACT = "exact"  # there is none
    GUARD = "guard"  # its surplus is skipped
    CLAMP = "clamp"  # its surplus repeats the last element and stores nothing
    SHRINK = "shrink"  # the inner loop stops early


@node
class LoopAxis:
    """A loop while its nest is being built; it may end before its ``extent``."""

    extent: Scalar
    end: Scalar | None = None

    @property
    def stop(self) -> Scalar:
        """What the index stays below."""
        return self.extent if self.end is None else self.end


@node
class Split:
    """``source -> (outer, inner)``, with ``inner.extent == factor``."""

    source: LoopAxis
    outer: LoopAxis
    inner: LoopAxis
    factor: Scalar
    tail: LastTile


@node
class Merge:
    """``(outer, inner) -> result``, the inner one running fastest."""

    outer: LoopAxis
    inner: LoopAxis
    result: LoopAxis


@node
class Align:
    """``source -> (outer, inner)`` from ``start`` on: all that is whole."""

    source: LoopAxis
    outer: LoopAxis
    inner: LoopAxis
    factor: Scalar
    start: Scalar


Transform: TypeAlias = Split | Merge | Align


@node
class Leaf:
    """One loop of the nest; ``stop`` is its extent, or less in a last tile."""

    index: LoopIndex
    binding: Binding
    stop: Scalar

    @property
    def extent(self) -> Scalar:
        """The number of iterations a full tile has."""
        return self.index.extent


@node
class LoopBound:
    """A condition ``index < extent`` that the transforms do not ensure.

    Where the tail is clamped, what lies beyond repeats the last element.
    """

    index: Scalar
    extent: Scalar
    is_clamped: bool = False


@node
class Nest:
    """Frozen loops: the kept leaves run outside the reduced ones; a lane innermost."""

    kept: tuple[Leaf, ...]
    reduced: tuple[Leaf, ...]
    lane: Leaf | None
    lane_reduces: bool
    index_of: Mapping[Scalar, Scalar]
    kept_bounds: tuple[LoopBound, ...]
    reduced_bounds: tuple[LoopBound, ...]
    rest: Nest | None = None
    """Elements of the same rows, one a thread, that no whole tile holds."""
    before: Nest | None = None
    """Elements before all whole tiles, where rows are gone through in turn.

    Every few threads of a row have all of them.
    """
    behind: Nest | None = None
    """Elements behind all whole tiles, likewise."""

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves, outermost first."""
        lane = () if self.lane is None else (self.lane,)
        return self.kept + self.reduced + lane

    def leaf(self, binding: Binding) -> Leaf | None:
        """Return the leaf with ``binding``, if there is one."""
        return next((x for x in self.leaves if x.binding is binding), None)


class NestBuilder:
    """Splits, merges and binds loops; does not outlive the function that builds."""

    def __init__(self, kept: Sequence[LoopIndex], reduced: Sequence[LoopIndex]) -> None:
        self._kept = {loop: LoopAxis(loop.extent) for loop in kept}
        self._reduced = {loop: LoopAxis(loop.extent) for loop in reduced}
        self._transforms: list[Transform] = []
        self._bound: dict[LoopAxis, tuple[Binding, Scalar]] = {}
        self._count = len(kept) + len(reduced)
        self._index: dict[LoopAxis, Scalar] = {}
        self._from_last: set[LoopAxis] = set()
        self._rest: tuple[Align, LoopAxis] | None = None
        self._ends: tuple[Align, LoopAxis] | None = None

    def axis(self, loop: LoopIndex) -> LoopAxis:
        """Return the axis that stands for ``loop`` of the space."""
        return self._kept[loop] if loop in self._kept else self._reduced[loop]

    def split(
        self, source: LoopAxis, factor: Scalar | int, tail: LastTile
    ) -> tuple[LoopAxis, LoopAxis]:
        """Tile ``source`` by ``factor``; return the outer and the inner axis."""
        factor = as_scalar(factor)
        extent = source.extent
        if tail is LastTile.EXACT:
            outer = LoopAxis(extent // factor)
        else:
            outer = LoopAxis((extent + (factor - 1)) // factor)
        inner = LoopAxis(factor)
        self._transforms.append(Split(source, outer, inner, factor, tail))
        return outer, inner

    def align(
        self, source: LoopAxis, factor: int, begin: Scalar, line: int, *, spare: bool
    ) -> tuple[LoopAxis, LoopAxis]:
        """Tile ``source``, whose element 0 lies at ``begin``, from a boundary on.

        Each multiple of ``line``, some tiles of ``factor``, is one. ``begin``, in kept
        loops of the space, tells how many whole tiles there are: as many as fit the
        extent, or up to a line less. Where they ``spare`` elements behind them, these
        are nearly another.
        """
        past = (begin + (line - 1)) % line
        end = (source.extent + (past + 1)) // factor - line // factor
        if spare:
            end = (source.extent + (past + 2)) // factor - 1 - line // factor
        outer = LoopAxis(source.extent // factor, end)
        inner = LoopAxis(sc.const(factor))
        start = line - 1 - past
        self._transforms.append(Align(source, outer, inner, inner.extent, start))
        return outer, inner

    def bind_rest(self, whole: LoopAxis, by: LoopAxis) -> None:
        """Let ``by`` take what lies before and behind the tiles ``whole`` of a row."""
        self._rest = self._aligned(whole), by

    def bind_ends(self, whole: LoopAxis, by: LoopAxis) -> None:
        """Let ``by`` take what lies before the tiles ``whole``, and what behind.

        A tile's elements are enough for each; threads that follow have them again.
        """
        self._ends = self._aligned(whole), by

    def _aligned(self, whole: LoopAxis) -> Align:
        tiles = (t for t in self._transforms if isinstance(t, Align))
        return next(t for t in tiles if t.outer is whole)

    def merge(self, axes: Sequence[LoopAxis]) -> LoopAxis:
        """Join ``axes`` (outermost first) into one that runs through all of them."""
        result = axes[0]
        for inner in axes[1:]:
            joined = LoopAxis(result.extent * inner.extent)
            self._transforms.append(Merge(result, inner, joined))
            result = joined
        return result

    def merged(self, groups: Groups) -> list[LoopAxis]:
        """Return an axis for each of ``groups``, by the numbers of the loops."""
        axes = [*self._kept.values(), *self._reduced.values()]
        return [self.merge([axes[k] for k in group]) for group in groups]

    def one(self) -> LoopAxis:
        """Return an axis of extent 1, for a nest that has nothing to bind."""
        return LoopAxis(sc.const(1))

    def bind(
        self, axis: LoopAxis, binding: Binding, extent: Scalar | int | None = None
    ) -> None:
        """Run ``axis`` by ``binding``; ``extent`` may enlarge a guarded one."""
        given = axis.extent if extent is None else as_scalar(extent)
        self._bound[axis] = (binding, given)

    def bind_blocks(self, axis: LoopAxis, *, from_last: bool) -> None:
        """Run ``axis`` by the blocks of a grid, of which the first begins first."""
        self.bind(axis, Binding.BLOCK_X)
        if from_last:
            self._from_last.add(axis)

    def freeze(self) -> Nest:
        """Return the nest; every axis left is bound or part of a transform."""
        index: dict[LoopAxis, Scalar] = {}
        stop: dict[LoopAxis, Scalar] = {}
        loops: dict[LoopAxis, LoopIndex] = {}
        one = sc.const(1)
        for number, (axis, (_, extent)) in enumerate(self._bound.items(), self._count):
            loops[axis] = scalar_symbols.loop_index(number, extent)
            index[axis] = sc.const(0) if extent is one else loops[axis]
            if axis in self._from_last:
                index[axis] = extent - 1 - index[axis]
        bounds: dict[LoopAxis, LoopBound] = {}
        for transform in reversed(self._transforms):
            match transform:
                case Merge(outer, inner, result):
                    index[outer] = index[result] // inner.extent
                    index[inner] = index[result] % inner.extent
                case Split(source, outer, inner, factor, tail):
                    at = index[outer] * factor + index[inner]
                    if tail in (LastTile.GUARD, LastTile.CLAMP):
                        is_clamped = tail is LastTile.CLAMP
                        bounds[source] = LoopBound(at, source.stop, is_clamped)
                    if tail is LastTile.CLAMP:
                        at = minimum(at, source.stop - 1)
                    index[source] = at
                case Align(source, outer, inner, factor, start):
                    index[source] = start + index[outer] * factor + index[inner]
        for transform in self._transforms:  # a shrunk axis may be split once more
            match transform:
                case Split(source, outer, inner, factor, LastTile.SHRINK):
                    end = stop.get(source, source.extent)
                    if source in stop:  # no turn is left without an element
                        stop[outer] = (end + (factor - 1)) // factor
                    stop[inner] = minimum(factor, end - index[outer] * factor)
                case _:
                    pass
        self._index = index
        return self._assemble(index, loops, stop, bounds)

    def at(self, axis: LoopAxis) -> Scalar:
        """Return where a frozen nest stands along ``axis``, split or not."""
        return self._index[axis]

    def _assemble(
        self,
        index: dict[LoopAxis, Scalar],
        loops: dict[LoopAxis, LoopIndex],
        stop: dict[LoopAxis, Scalar],
        bounds: dict[LoopAxis, LoopBound],
    ) -> Nest:
        folding = self._descendants(self._reduced.values())
        leaves: dict[bool, list[Leaf]] = {True: [], False: []}
        lane: Leaf | None = None
        lane_reduces = False
        for axis, (binding, extent) in self._bound.items():
            leaf = Leaf(loops[axis], binding, stop.get(axis, extent))
            if binding.is_lane:
                lane, lane_reduces = leaf, axis in folding
            else:
                leaves[axis in folding].append(leaf)
        rows: dict[Scalar, Scalar] = {x: index[axis] for x, axis in self._kept.items()}
        nest = Nest(
            tuple(leaves[False]),
            tuple(leaves[True]),
            lane,
            lane_reduces,
            {**rows, **{x: index[axis] for x, axis in self._reduced.items()}},
            tuple(b for axis, b in bounds.items() if axis not in folding),
            tuple(b for axis, b in bounds.items() if axis in folding),
        )
        if self._ends is not None:
            before, behind = self._ends_of(nest, index, *self._ends)
            before = before and _of_rows(before, rows)
            made = _of_rows(nest, rows)
            return replace(made, before=before, behind=_of_rows(behind, rows))
        if self._rest is None:
            return nest
        rest = self._rest_of(nest, index, *self._rest)
        return replace(_of_rows(nest, rows), rest=_of_rows(rest, rows))

    def _rest_of(
        self, nest: Nest, index: dict[LoopAxis, Scalar], tile: Align, by: LoopAxis
    ) -> Nest:
        """Return the nest of what lies before and behind whole tiles, taken ``by``."""
        at, whole = index[by], tile.outer.stop * tile.factor
        place = at + (1 - less(at, tile.start)) * whole
        bound = LoopBound(at, tile.source.extent - whole)
        return self._beside(nest, tile.source, place, bound)

    def _ends_of(
        self, nest: Nest, index: dict[LoopAxis, Scalar], tile: Align, by: LoopAxis
    ) -> tuple[Nest | None, Nest]:
        """Return the nests of what lies before whole tiles, and behind, taken ``by``.

        Where no element is left, a thread has one that a tile holds.
        """
        length, start = tile.source.extent, tile.start
        end = start + tile.outer.stop * tile.factor
        at = index[by] % tile.factor
        bound = LoopBound(at, start, is_clamped=True)
        before = self._beside(nest, tile.source, at, bound)
        bound = LoopBound(at, length - end, is_clamped=True)
        place = minimum(end + at, length - 1)
        behind = self._beside(nest, tile.source, place, bound)
        return None if start is sc.const(0) else before, behind

    def _beside(
        self, nest: Nest, source: LoopAxis, place: Scalar, bound: LoopBound
    ) -> Nest:
        """Return the nest of one element a thread: of ``source``, at ``place``."""
        found = {source: place}
        for transform in reversed(self._transforms):
            match transform:
                case Merge(outer, inner, result) if result in found:
                    found[outer] = found[result] // inner.extent
                    found[inner] = found[result] % inner.extent
                case _:
                    pass
        along = {x: found[axis] for x, axis in self._reduced.items()}
        return replace(
            nest,
            reduced=tuple(leaf for leaf in nest.reduced if leaf.binding.is_bound),
            lane=None,
            lane_reduces=False,
            index_of={**nest.index_of, **along},
            reduced_bounds=(bound,),
        )

    def _descendants(self, roots: Iterable[LoopAxis]) -> set[LoopAxis]:
        found: set[LoopAxis] = set(roots)
        for transform in self._transforms:
            match transform:
                case Merge(outer, _, result) if outer in found:
                    found.add(result)
                case Split(source, outer, inner) | Align(source, outer, inner) if (
                    source in found
                ):
                    found.update((outer, inner))
                case _:
                    pass
        return found


def _of_rows(nest: Nest, rows: Mapping[Scalar, Scalar]) -> Nest:
    """Return ``nest`` with the indices of ``rows`` in what depends on them."""

    def placed(x: Scalar) -> Scalar:
        return scalar_walk.substitute([x], rows)[0]

    return replace(
        nest,
        index_of={
            x: at if x in rows else placed(at) for x, at in nest.index_of.items()
        },
        reduced_bounds=tuple(
            replace(b, index=placed(b.index), extent=placed(b.extent))
            for b in nest.reduced_bounds
        ),
    )
