# SPDX-License-Identifier: Apache-2.0
"""Where an expression reads each source, given the index of its result.

This is the only origin of index arithmetic: an index belongs to a use of a tensor,
and is derived by walking from results to sources. With it goes the guard: the
conditions under which the source is read at all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, assert_never

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.ir.scalars.scalar import Const, Datum, Scalar, const

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nfuser.compiler.ir.expr import Group
    from nfuser.compiler.ir.scalars.scalar import LoopIndex
    from nfuser.compiler.ir.tensor import TensorView


@value
class Point:
    """An index along each axis, and the conditions (0 or 1) that must hold to read.

    A guard holds for all elements where it is empty; one that never holds has a
    constant 0.
    """

    index: tuple[Scalar, ...]
    guard: tuple[Scalar, ...] = ()

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self.index)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, axis: int) -> Scalar:
        return self.index[axis]

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """All that is computed to read here: the index, and its guard."""
        return self.index + self.guard

    def at(self, index: Iterable[Scalar]) -> Point:
        """Return another index under the same guard."""
        return Point(tuple(index), self.guard)

    def within(self, conditions: Iterable[Scalar]) -> Point:
        """Return this index under further conditions."""
        added = (c for c in conditions if not (isinstance(c, Const) and c.value))
        return Point(self.index, tuple(dict.fromkeys((*self.guard, *added))))


Read: TypeAlias = "tuple[TensorView, Point]"
_KEPT = 256  # what steps ask for hundreds of times each: few


def source_points(expr: Expr, point: Point) -> list[Read]:
    """Return each source of ``expr`` with the point at which it is read.

    A reduction is read at its result's point; its own sources are read at
    ``reduced_point``, once for each step of its loops. A scan reads its source where
    it is read itself, but not only there: like a reduction it begins reads of its own.
    """
    match expr:
        case Argument() | Constant() | FromScalar() | Iota():
            return []
        case Reduce() | PartialSum() | Scan() | SumTo() | Assign() | Loop():
            return []
        case Matmul() | Sort() | Scatter() | Called():
            return []
        case Pointwise(_, operands):
            return [(t, _stretched(t, point)) for t in operands]
        case Pad(source, fill, _, lefts):
            inside = [p - left for p, left in zip(point, lefts, strict=True)]
            return [(source, _inside(source, point.at(inside))), (fill, point.at(()))]
        case Concatenate(parts, _, axis):
            return _parts_points(parts, axis, point)
        case Take():
            return [(expr.source, _taken(expr, point)), index_read(expr, point)]
        case _:
            return [(expr.source, point.at(_view_index(expr, point)))]


def _view_index(
    expr: Expand | ExpandDims | Squeeze | Permute | Slice | Reshape | Remap,
    point: Point,
) -> Iterable[Scalar]:
    match expr:
        case Expand(source):
            return _stretched(source, point)
        case ExpandDims(_, _, axes):
            return (p for k, p in enumerate(point) if k not in axes)
        case Squeeze(source, _, axes):
            rest = iter(point)
            return [const(0) if k in axes else next(rest) for k in range(source.ndim)]
        case Permute(source, _, order):
            full: list[Scalar] = [const(0)] * source.ndim
            for index, axis in zip(point, order, strict=True):
                full[axis] = index
            return full
        case Slice(_, _, starts, steps):
            zipped = zip(starts, point, steps, strict=True)
            return [start + (p if s == 1 else p * s) for start, p, s in zipped]
        case Reshape():
            return _reshaped(expr, point)
        case Remap(_, _, index):
            return _remapped(index, point.index)
        case _:
            assert_never(expr)


@lru_cache(_KEPT)
def _remapped(
    index: tuple[Scalar, ...], point: tuple[Scalar, ...]
) -> tuple[Scalar, ...]:
    # A place is known by its axis: its extent may be spelled in another way.
    places = (loop for x in index for loop in scalar_walk.loops_in(x))
    by: dict[Scalar, Scalar] = {
        place: point[scalar_symbols.place_axis(place)] for place in places
    }
    return tuple(scalar_walk.substitute(index, by))


def _stretched(tensor: TensorView, point: Point) -> Point:
    if len(point.index) == tensor.ndim and not any(a.is_broadcast for a in tensor.axes):
        return point
    own = point.index[len(point) - tensor.ndim :]
    pairs = zip(tensor.axes, own, strict=True)
    return point.at(const(0) if axis.is_broadcast else p for axis, p in pairs)


def _reshaped(expr: Reshape, point: Point) -> list[Scalar]:
    index: list[Scalar] = [const(0)] * expr.source.ndim
    groups: tuple[Group, ...] = expr.groups or ()
    for old, new in groups:
        flat = flat_index([(point[k], expr.result.shape[k]) for k in new])
        for axis in old[:0:-1]:
            extent = expr.source.shape[axis]
            index[axis] = flat % extent
            flat = flat // extent
        index[old[0]] = flat
    return index


def flat_index(axes: Iterable[tuple[Scalar, Scalar]]) -> Scalar:
    """Return the place in C order of an (index, extent) of each axis."""
    flat: Scalar = const(0)
    for index, extent in axes:
        flat = flat * extent + index
    return flat


def _inside(tensor: TensorView, point: Point) -> Point:
    """Return ``point`` under the condition that it lies inside ``tensor``."""
    conditions: list[Scalar] = []
    for index, extent in zip(point, tensor.shape, strict=True):
        if not sc.is_natural(index):
            conditions.append(less(-1, index))
        conditions.append(less(index, extent))
    return point.within(conditions)


def _parts_points(parts: tuple[TensorView, ...], axis: int, point: Point) -> list[Read]:
    found: list[Read] = []
    places = _joined(tuple(part.shape[axis] for part in parts), point[axis])
    for part, (at, conditions) in zip(parts, places, strict=True):
        index = (*point.index[:axis], at, *point.index[axis + 1 :])
        found.append((part, point.at(index).within(conditions)))
    return found


@lru_cache(_KEPT)
def _joined(
    extents: tuple[Scalar, ...], at: Scalar
) -> tuple[tuple[Scalar, tuple[Scalar, ...]], ...]:
    """Return, for each part of a join, its index where that has ``at``, and when."""
    found: list[tuple[Scalar, tuple[Scalar, ...]]] = []
    begin: Scalar = const(0)
    for number, extent in enumerate(extents):
        index = at - begin
        conditions: list[Scalar] = []
        if number > 0:
            conditions.append(less(begin - 1, at))
        begin = begin + extent
        if number < len(extents) - 1:
            conditions.append(less(at, begin))
        found.append((index, tuple(conditions)))
    return tuple(found)


def index_read(expr: Take, point: Point) -> Read:
    """Return where the index of ``expr`` is read."""
    if expr.along:
        return expr.index, _stretched(expr.index, point)
    own = point.index[expr.axis : expr.axis + expr.index.ndim]
    return expr.index, _stretched(expr.index, point.at(own))


def _taken(expr: Take, point: Point) -> Point:
    _, where = index_read(expr, point)
    extent = expr.source.shape[expr.axis]
    chosen = scalar_symbols.datum(expr.index, where.index, extent, inside=expr.inside)
    if expr.along:
        index = list(point)
        index[expr.axis] = chosen
        return _stretched(expr.source, point.at(index))
    after = expr.axis + expr.index.ndim
    return point.at((*point.index[: expr.axis], chosen, *point.index[after:]))


def reduced_point(expr: Reduce, kept: Point, reduced: Point) -> Point:
    """Return the point of the source of ``expr``: ``reduced`` along its axes."""
    own, rest = iter(reduced), iter(kept)
    return Point(
        tuple(
            next(own) if k in expr.axes else next(rest) for k in range(expr.source.ndim)
        )
    )


def loops_of(point: Point) -> list[LoopIndex]:
    """Return the loops that ``point`` depends on."""
    found = (loop for x in point.scalars for loop in scalar_walk.loops_in(x))
    return list(dict.fromkeys(found))


def data_of(point: Point) -> list[Datum]:
    """Return the elements of index tensors that ``point`` depends on."""
    found = (x for s in point.scalars for x in scalar_walk.varying(s))
    return [x for x in dict.fromkeys(found) if isinstance(x, Datum)]


def datum_point(chosen: Datum, point: Point) -> Point:
    """Return where an index that ``point`` depends on is itself read.

    What is asked of the index cannot guard the read that finds it.
    """
    free = (c for c in point.guard if chosen not in scalar_walk.every([c]))
    return Point(chosen.index, tuple(free))
