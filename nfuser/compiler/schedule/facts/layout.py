# SPDX-License-Identifier: Apache-2.0
"""Order, grouping and packets: what the strides of one call allow.

Decisions are taken on numbers and kept as patterns, so that a kernel made for one call
serves every call with the same pattern.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.schedule.facts.facts import MOST_LANES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.maps import Point
    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Access, Facts, Linear

Groups: TypeAlias = "tuple[tuple[int, ...], ...]"  # loop numbers, outermost first
Patterns: TypeAlias = "tuple[tuple[StrideStep, ...], ...]"  # one a tensor
Packed: TypeAlias = "frozenset[tuple[int, Point]]"  # (number of tensor, where)


@value
class StrideStep:
    """The stride of one axis as a pattern.

    ``kind`` is zero, unit, two, free (a kernel parameter) or chain: the extent of axis
    ``inner`` times its stride. A CPU loads every other element in whole vectors, if the
    kernel knows that it is; two tensors between each other's elements, as the parts of
    complex numbers, are stored so, too: ``after`` is the number of the first of them.
    """

    kind: str
    inner: int = -1
    after: int = -1


def pattern(
    tensor: TensorView, facts: Facts, after: int | None = None
) -> tuple[StrideStep, ...]:
    """Return how the strides of ``tensor`` relate to its extents.

    ``after`` is the number of what lies between its elements, if they come second; None
    if every other element is not to be accessed in vectors.
    """
    strides = facts.layouts[tensor].strides
    sizes = [facts.size(x) for x in tensor.shape]
    steps: list[StrideStep] = []
    for k, stride in enumerate(strides):
        # The axis to the right comes first: it is the likely partner where sizes agree.
        others = [*range(k + 1, len(strides)), *range(k - 1, -1, -1)]
        inner = next(
            (j for j in others if sizes[j] > 1 and strides[j] * sizes[j] == stride), -1
        )
        if tensor.axes[k].is_broadcast or stride == 0:
            steps.append(StrideStep("zero"))
        elif stride == 1:
            steps.append(StrideStep("unit"))
        elif inner >= 0 and stride > 0 and not tensor.axes[inner].is_broadcast:
            steps.append(StrideStep("chain", inner))
        elif stride == 2 and after is not None:
            steps.append(StrideStep("two", after=after))
        else:
            steps.append(StrideStep("free"))
    return tuple(steps)


def strides_of(
    tensor: TensorView, number: int, steps: Sequence[StrideStep]
) -> tuple[Scalar, ...]:
    """Return the strides of tensor ``number`` that ``steps`` describe, as scalars."""
    found: dict[int, Scalar] = {}

    def stride(k: int) -> Scalar:
        if k not in found:
            step = steps[k]
            match step.kind:
                case "zero":
                    found[k] = sc.const(0)
                case "unit":
                    found[k] = sc.const(1)
                case "two":
                    found[k] = sc.const(2)
                case "chain":
                    found[k] = tensor.shape[step.inner] * stride(step.inner)
                case _:
                    found[k] = scalar_symbols.stride(number, k)
        return found[k]

    return tuple(stride(k) for k in range(tensor.ndim))


def ordered(
    loops: Sequence[LoopIndex], found: Sequence[Access], facts: Facts
) -> list[LoopIndex]:
    """Return ``loops`` as memory runs: largest steps outside.

    The access with the most elements decides, an output (they come first) on a tie.
    """
    if len(loops) < 2 or not found:
        return list(loops)

    def weight(access: Access) -> int:
        total = 1
        for loop in loops:
            if access.steps.get(loop, 0):
                total *= facts.size(loop.extent)
        return total

    leader = max(found, key=weight)
    return sorted(loops, key=lambda x: -abs(leader.steps.get(x, 0)))


def grouped(
    loops: Sequence[LoopIndex], found: Sequence[Access], facts: Facts
) -> Groups:
    """Join neighbours that every access steps through as if they were one loop."""
    groups: list[list[LoopIndex]] = []
    for loop in loops:
        if groups and all(_joins(groups[-1][-1], loop, a, facts) for a in found):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return tuple(tuple(loop.number for loop in group) for group in groups)


def _joins(outer: LoopIndex, inner: LoopIndex, access: Access, facts: Facts) -> bool:
    if facts.target.has_vectors and not _steps_on(access, outer, inner):
        return False
    for moved in (access.address, *access.edges):
        step = moved.steps.get(inner, 0) * facts.size(inner.extent)
        if {outer, inner} & moved.irregular or moved.steps.get(outer, 0) != step:
            return False
    return True


def _steps_on(access: Access, outer: LoopIndex, inner: LoopIndex) -> bool:
    """Tell whether a step of ``outer`` is all of ``inner``, whatever the sizes.

    Where it only is in this call, each element of a joined loop takes a division to
    find its place, and no vector of a CPU divides.
    """
    return all(_step(x, outer) is _step(x, inner) * inner.extent for x in access.moving)


def _step(x: Scalar, loop: LoopIndex) -> Scalar:
    """Return what ``loop`` is multiplied by in the sum ``x``."""
    terms = {
        tuple(atom for atom in monomial if atom is not loop): coefficient
        for monomial, coefficient in sc.terms_of(x).items()
        if monomial.count(loop) == 1
    }
    return sc.from_terms(terms)


def packet_width(
    group: Sequence[LoopIndex],
    found: Sequence[Access],
    facts: Facts,
    largest: int = 16,
) -> int:
    """Return how many elements along ``group`` one thread moves at once.

    The narrowest element that is read or written in unit steps fills ``largest``
    bytes where packets start aligned, whatever the other loops do. What does not goes
    element by element, unless narrower packets suit all better.
    """
    unit = [a for a in found if runs_through(a, group, facts)]
    if not unit:
        return 1
    size = 1
    for loop in group:
        size *= facts.size(loop.extent)
    width = min(largest // min(a.tensor.dtype.itemsize for a in unit), MOST_LANES)
    widths: list[int] = []
    while width >= 1:
        if size % width == 0:
            widths.append(width)
        width //= 2
    return max(widths, key=lambda n: _speed(unit, group, n, facts))


def leader_of(
    group: Sequence[LoopIndex], found: Sequence[Access], width: int, facts: Facts
) -> tuple[Access, int] | None:
    """Return whose memory packets are better counted by than by rows, and their width.

    Rows may begin anywhere between two boundaries of packets. All that are as long are
    then whole packets from the first boundary in each row on; what lies before and
    behind these goes element by element. None where packets of ``width``, which begin
    with the rows, are as fast.
    """
    unit = [a for a in found if is_unit(a, group[-1])]
    if not unit:
        return None
    wide = min(16 // min(a.tensor.dtype.itemsize for a in unit), MOST_LANES)
    size = 1
    for loop in group:
        size *= facts.size(loop.extent)
    if wide == 1 or size < LEAST_PACKETS * wide:
        return None

    def speed(leader: Access) -> float:
        return LED * _speed(unit, group, wide, facts, leader)

    most = max(_elements(a, facts) for a in unit)
    rows = [a for a in unit if _elements(a, facts) == most]
    leaders = [
        a
        for a in rows
        if _may_lead(a, group)
        and all(is_packed(other, group, wide, facts, a) for other in rows)
    ]
    best = max(leaders, key=speed, default=None)
    if best is None or speed(best) <= _speed(unit, group, width, facts):
        return None
    return best, wide


def line_of(leader: Access, width: int, length: int, line_bytes: int) -> int:
    """Return how many elements lie between boundaries that packets are counted from.

    Warps move whole lines of memory where rows are so long that their ends, of up to a
    line, are few.
    """
    line = line_bytes // leader.tensor.dtype.itemsize
    return line if length >= LEAST_LINES * line else width


def _elements(access: Access, facts: Facts) -> int:
    return math.prod(facts.size(extent) for extent in access.tensor.shape)


def _may_lead(access: Access, group: Sequence[LoopIndex]) -> bool:
    """Tell whether rows of ``access`` begin where the host and kernels can tell."""
    where = access.address
    forward = all(step >= 0 for loop, step in where.steps.items() if loop not in group)
    return forward and where.start >= 0 and not (where.irregular or access.edges)


LEAST_PACKETS = 4 * 32  # of a row that elements before and behind them are worth
LEAST_LINES = 128  # of a row, of which the ends may be two
LEAST_ACROSS = 8  # bytes of packets of which two are read for one
LED = 0.97  # share of their speed that packets keep beside such elements


# Share of the memory's speed that accesses of so many bytes reach, roughly; and what
# single elements lose of it whose neighbours in a warp lie packets of 16 bytes away:
# the more, the more lines each of their accesses goes to.
_SPEED = {1: 0.3, 2: 0.5, 4: 0.8, 8: 0.95, 16: 1.0}
_LOST = {1: 0.2, 2: 0.2, 4: 0.08, 8: 0.05, 16: 0.0}


def worth_in_packets(
    access: Access, group: Sequence[LoopIndex], width: int, elements: int, facts: Facts
) -> float:
    """Return the speed at which ``access`` moves its bytes, times their number.

    Beside packets of ``width`` it may go by single elements, once for each of all
    ``elements``: a cache has to bring them together, however few they are.
    """
    size, moved = access.tensor.dtype.itemsize, facts.bytes_of(access)
    if width == 1 or not access.loops:
        return moved * _SPEED[size]
    if runs_through(access, group, facts) and is_packed(access, group, width, facts):
        return moved * _SPEED[min(width * size, 16)]
    lost = _LOST[size] * width * size / 16
    return moved * _SPEED[size] - elements * size * lost


def _speed(
    unit: Sequence[Access],
    group: Sequence[LoopIndex],
    width: int,
    facts: Facts,
    leader: Access | None = None,
) -> float:
    """Return the speed at which all of ``unit`` move."""
    return sum(_worth(a, group, width, facts, leader) for a in unit)


def _worth(
    access: Access,
    group: Sequence[LoopIndex],
    width: int,
    facts: Facts,
    leader: Access | None,
) -> float:
    """Return the speed at which ``access`` moves its bytes, times their number."""
    size = access.tensor.dtype.itemsize
    if is_packed(access, group, width, facts, leader):
        return size * _SPEED[min(width * size, 16)]
    # A thread's neighbours lie ``width`` elements away: the cache has to help.
    return size * _SPEED[size] * 0.9


def runs_through(access: Access, loops: Sequence[LoopIndex], facts: Facts) -> bool:
    """Tell whether ``access`` goes element by element through all of ``loops``."""
    return is_unit(access, loops[-1]) and all(
        _joins(outer, inner, access, facts) for outer, inner in pairwise(loops)
    )


def is_unit(access: Access, lane: LoopIndex) -> bool:
    """Tell whether ``access`` moves element by element along ``lane``."""
    return access.steps.get(lane, 0) == 1 and lane not in access.irregular


def runs_along(access: Access, lane: LoopIndex) -> bool:
    """Tell whether neighbours along ``lane`` lie side by side, or are one element."""
    return abs(access.steps.get(lane, 0)) <= 1 and lane not in access.irregular


def is_packed(
    access: Access,
    group: Sequence[LoopIndex],
    width: int,
    facts: Facts,
    leader: Access | None = None,
) -> bool:
    """Tell whether packets of ``access`` are aligned, each wholly under its guard.

    Where there is a ``leader``, packets begin where those of its memory do.
    """
    itemsize = access.tensor.dtype.itemsize
    chunk = min(width, 16 // itemsize)
    where = access.address.beside(leader.address) if leader else access.address
    return (
        facts.layouts[access.tensor].alignment % (chunk * itemsize) == 0
        and where.is_aligned(chunk, group)
        and all(_is_even(g, group, 0 if leader else width) for g in access.edges)
    )


def _is_even(guard: Linear, group: Sequence[LoopIndex], width: int) -> bool:
    """Tell whether a guard holds for all of a packet or for none of it.

    A ``width`` of 0 is that of packets which begin anywhere.
    """
    step = guard.steps.get(group[-1], 0)
    if group[-1] in guard.irregular or abs(step) > (1 if width else 0):
        return False
    # What grows along the lanes is above 0 from 1 on, what falls, down to 1.
    edge = replace(guard, start=guard.start - 1) if step > 0 else guard
    return step == 0 or edge.is_aligned(width, group)


def packets(dtype: DType, width: int) -> list[tuple[int, int]]:
    """Cut ``width`` elements into accesses of at most 16 bytes: (start, length)."""
    chunk = min(width, 16 // dtype.itemsize)
    return [(start, chunk) for start in range(0, width, chunk)]


def packed(
    group: Sequence[LoopIndex],
    found: Sequence[Access],
    width: int,
    facts: Facts,
    tensors: Sequence[TensorView],
    leader: Access | None = None,
) -> Packed:
    """Return the accesses along ``group`` that go in packets of ``width``."""
    if width == 1:
        return frozenset()
    return frozenset(
        (tensors.index(a.tensor), a.point)
        for a in found
        if runs_through(a, group, facts) and is_packed(a, group, width, facts, leader)
    )


def across(
    group: Sequence[LoopIndex],
    found: Sequence[Access],
    width: int,
    facts: Facts,
    tensors: Sequence[TensorView],
    leader: Access,
) -> Packed:
    """Return the reads along ``group`` that begin elsewhere than the ``leader``'s.

    Two whole packets hold each of theirs, where those are wide enough to be worth it.
    """

    def lies_across(access: Access) -> bool:
        itemsize = access.tensor.dtype.itemsize
        size = min(width * itemsize, 16)
        return (
            is_unit(access, group[-1])
            and access.irregular.isdisjoint(group)
            and size >= LEAST_ACROSS
            and facts.layouts[access.tensor].alignment % size == 0
            and all(_is_even(guard, group, 0) for guard in access.edges)
            and not is_packed(access, group, width, facts, leader)
        )

    return frozenset(
        (tensors.index(a.tensor), a.point) for a in found if lies_across(a)
    )


def runs_inside(
    kept: Sequence[LoopIndex],
    reduced: Sequence[LoopIndex],
    found: Sequence[Access],
    facts: Facts,
) -> bool:
    """Tell whether memory runs along ``reduced`` loops rather than ``kept`` ones."""
    if not kept or not reduced:
        return True

    def unit_bytes(lane: LoopIndex) -> int:
        total = 0
        for access in found:
            if is_unit(access, lane):
                total += access.tensor.dtype.itemsize * _elements(access, facts)
        return total

    return unit_bytes(reduced[-1]) >= unit_bytes(kept[-1])


def power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least ``n``."""
    return 1 << max(n - 1, 0).bit_length()
