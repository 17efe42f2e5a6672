# SPDX-License-Identifier: Apache-2.0
"""What is known of one call when a segment is scheduled: numbers, not symbols."""

from __future__ import annotations

import math
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.operators as scalar_op
from nfuser.compiler.domains.space import reads, roots, space_of
from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.domains.maps import Point, Read
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Atom
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.target import Target


@value
class TensorLayout:
    """How a tensor lies in memory: strides in elements, alignment in bytes."""

    strides: tuple[int, ...]
    alignment: int


MOST_LANES = 8  # elements of a packet, at most


@node
class Linear:
    """An integer that starts somewhere and steps along loops.

    ``irregular`` loops move it otherwise, by multiples of ``unit``. So does each of
    ``leaps`` where it passes 0: there a roll goes back to the begin of its axis.
    """

    start: int
    steps: Mapping[LoopIndex, int]
    irregular: frozenset[LoopIndex]
    unit: int
    leaps: tuple[Linear, ...] = ()

    def is_aligned(self, chunk: int, lanes: Sequence[LoopIndex]) -> bool:
        """Tell whether all but its way along ``lanes`` is a multiple of ``chunk``."""
        others = (step for loop, step in self.steps.items() if loop not in lanes)
        return (
            self.start % chunk == 0
            and self.unit % chunk == 0
            and self.irregular.isdisjoint(lanes)
            and all(step % chunk == 0 for step in others)
        )

    def beside(self, other: Linear) -> Linear:
        """Return how far this is from ``other``, whose loops are all regular."""
        loops = dict.fromkeys([*self.steps, *other.steps])
        steps = {x: self.steps.get(x, 0) - other.steps.get(x, 0) for x in loops}
        start = self.start - other.start
        return Linear(start, steps, self.irregular, self.unit, self.leaps)


@node
class Access:
    """A memory tensor at one point: its address, in elements.

    ``guards`` are the differences that the point's guard compares with 0; ``moving`` is
    what of all this moves, as a kernel will have it: in symbols.
    """

    tensor: TensorView
    point: Point
    address: Linear
    guards: tuple[Linear, ...]
    moving: tuple[Scalar, ...]

    @property
    def steps(self) -> Mapping[LoopIndex, int]:
        """The step of the address along each loop."""
        return self.address.steps

    @property
    def irregular(self) -> frozenset[LoopIndex]:
        """The loops along which the address does not step."""
        return self.address.irregular

    @property
    def edges(self) -> tuple[Linear, ...]:
        """What passes 0 where the access begins, ends or leaps."""
        return self.guards + self.address.leaps

    @property
    def loops(self) -> frozenset[LoopIndex]:
        """The loops along which it goes to other elements."""
        return self.irregular.union(loop for loop, n in self.steps.items() if n)


@node
class Facts:
    """Sizes, layouts and target of one call of one segment.

    The elements of some tensors lie ``between`` those of another, as long as they: each
    follows its fellow. These are the imaginary parts of complex arrays.
    """

    sizes: Mapping[Scalar, int]
    layouts: Mapping[TensorView, TensorLayout]
    target: Target
    between: Mapping[TensorView, TensorView] = field(
        default_factory=dict["TensorView", "TensorView"]
    )

    def size(self, x: Scalar) -> int:
        """Return the value of ``x`` in this call."""
        return scalar_walk.evaluate(x, self.sizes)

    def bytes_of(self, access: Access) -> int:
        """Return the bytes of all elements that ``access`` goes to."""
        count = math.prod(self.size(loop.extent) for loop in access.loops)
        return count * access.tensor.dtype.itemsize


def accesses(
    fusion: Fusion, facts: Facts, strides: Mapping[TensorView, tuple[Scalar, ...]]
) -> list[Access]:
    """Return every write of an output, then every read of an argument."""
    return [_access(t, point, facts, strides[t]) for t, point in _touched(fusion)]


@remembered
def _touched(fusion: Fusion) -> tuple[Read, ...]:
    """Return the memory tensors that a kernel writes or reads, with the points."""
    space = space_of(fusion)
    found = [(t, space.points[t]) for t in dict.fromkeys(fusion.outputs)]
    for tensor, point in reads(fusion, roots(fusion, space)):
        expr = fusion.definition[tensor]
        if isinstance(expr, Argument) and not expr.by_value:
            found.append((tensor, point))
    return tuple(found)


@lru_cache(4096)
def address(point: Point, strides: tuple[Scalar, ...]) -> Scalar:
    """Return the offset, in elements, of ``point``."""
    total: Scalar = sc.const(0)
    for index, stride in zip(point, strides, strict=True):
        total = total + index * stride
    return total


def _access(
    tensor: TensorView, point: Point, facts: Facts, strides: tuple[Scalar, ...]
) -> Access:
    """Return the access; numbers replace the strides that are kernel parameters."""
    numbers: dict[Scalar, Scalar] = {
        symbol: sc.const(step)
        for symbol, step in zip(strides, facts.layouts[tensor].strides, strict=True)
        if isinstance(symbol, sc.Stride)
    }
    place, gaps = address(point, strides), [_gap(c) for c in point.guard]
    where = scalar_walk.substitute([place], numbers)[0] if numbers else place
    guards = tuple(linear_form(gap, facts) for gap in gaps)
    moving = (place, *gaps)
    return Access(tensor, point, linear_form(where, facts), guards, moving)


def _gap(condition: Scalar) -> Scalar:
    """Return what a condition compares with 0; anything else moves irregularly."""
    if isinstance(condition, sc.Binary) and condition.op is scalar_op.Op.LT:
        return condition.rhs - condition.lhs
    return condition


def linear_form(x: Scalar, facts: Facts) -> Linear:
    """Return how ``x`` moves; it starts where all loops stand at 0."""
    start = unit = 0
    steps: dict[LoopIndex, int] = {}
    irregular: set[LoopIndex] = set()
    leaps: list[Linear] = []
    for moving, fixed, coefficient in _terms(x):
        for number in scalar_walk.evaluate_all(fixed, facts.sizes):
            coefficient *= number
        if not moving:
            start += coefficient
        elif len(moving) == 1 and isinstance(moving[0], LoopIndex):
            steps[moving[0]] = steps.get(moving[0], 0) + coefficient
        else:
            unit = _common_divisor(unit, coefficient)
            leap = _leap(moving, facts)
            if leap is not None:
                leaps.append(leap)
                continue
            irregular.update(loop for a in moving for loop in scalar_walk.loops_in(a))
    return Linear(start, steps, frozenset(irregular), unit, tuple(leaps))


def _leap(moving: tuple[Atom, ...], facts: Facts) -> Linear | None:
    """Return what passes 0 where a term of ``moving`` factors does, between packets.

    A CPU cuts the range of its loop there instead, wherever that is.
    """
    match moving:
        case (sc.Binary(scalar_op.Op.LT),) if not facts.target.has_vectors:
            gap = linear_form(_gap(moving[0]), facts)
            is_between = gap.is_aligned(MOST_LANES, list(gap.steps))
            falls = all(step == -1 for step in gap.steps.values())
            return gap if is_between and falls and not gap.leaps else None
        case _:
            return None


def _common_divisor(a: int, b: int) -> int:
    """Return ``math.gcd``, of integers that stay open if they are."""
    while b:
        a, b = b, a % b
    return abs(a)


@lru_cache(4096)
def _terms(x: Scalar) -> tuple[tuple[tuple[Atom, ...], tuple[Atom, ...], int], ...]:
    """Return the factors of each term that move, those that do not, and the number."""
    found: list[tuple[tuple[Atom, ...], tuple[Atom, ...], int]] = []
    for monomial, coefficient in sc.terms_of(x).items():
        moving = tuple(a for a in monomial if _moves(a))
        fixed = tuple(a for a in monomial if a not in moving)
        found.append((moving, fixed, coefficient))
    return tuple(found)


def _moves(x: Scalar) -> bool:
    parts = scalar_walk.every([x])
    return any(isinstance(part, (LoopIndex, sc.Datum)) for part in parts)
