# SPDX-License-Identifier: Apache-2.0
"""Splits, merges and bindings run through every index exactly once."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar_walk import evaluate, evaluate_all
from nfuser.compiler.schedule.nest import Binding, LastTile, NestBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import LoopIndex, Scalar
    from nfuser.compiler.schedule.nest import LoopAxis, Nest


def _loops(extents: Sequence[int]) -> list[LoopIndex]:
    """Loops whose extents are symbols, so that nothing folds that could not."""
    return [
        scalar_symbols.loop_index(k, scalar_symbols.size(0, k))
        for k in range(len(extents))
    ]


def _points(
    nest: Nest, loops: Sequence[LoopIndex], values: Mapping[Scalar, int]
) -> Iterator[tuple[tuple[int, ...], bool, bool]]:
    """Yield the index of every iteration, and whether it is in bounds and clamped."""
    leaves = nest.leaves
    wanted = [nest.index_of[loop] for loop in loops]
    bounds = [(b.index, b.extent) for b in (*nest.kept_bounds, *nest.reduced_bounds)]
    ranges = [range(evaluate(leaf.extent, values)) for leaf in leaves]
    for place in itertools.product(*ranges):
        at = dict(values)
        at |= {leaf.index: k for leaf, k in zip(leaves, place, strict=True)}
        inside = all(
            evaluate(index, at) < evaluate(extent, at) for index, extent in bounds
        )
        stops = evaluate_all([leaf.stop for leaf in leaves], at)
        if not _is_reached(place, stops, inside):
            continue
        yield tuple(evaluate_all(wanted, at)), inside, bool(bounds)


def _is_reached(place: Sequence[int], stops: Sequence[int], inside: bool) -> bool:
    """Tell whether the loops run to ``place``; no count of theirs is negative."""
    for k, stop in zip(place, stops, strict=True):
        assert stop >= 0 or not inside
        if k >= stop:
            return False
    return True


def _counted(nest: Nest, extents: Sequence[int]) -> Counter[tuple[int, ...]]:
    loops = _loops(extents)
    values: dict[Scalar, int] = {
        scalar_symbols.size(0, k): n for k, n in enumerate(extents)
    }
    return Counter(p for p, inside, _ in _points(nest, loops, values) if inside)


def _all(extents: Sequence[int]) -> Counter[tuple[int, ...]]:
    return Counter(itertools.product(*(range(n) for n in extents)))


@pytest.mark.parametrize("tail", [LastTile.GUARD, LastTile.CLAMP, LastTile.SHRINK])
@given(extent=st.integers(1, 40), factor=st.integers(1, 12))
def test_a_split_covers_every_index_once(
    tail: LastTile, extent: int, factor: int
) -> None:
    (loop,) = _loops([extent])
    builder = NestBuilder([loop], [])
    outer, inner = builder.split(builder.axis(loop), factor, tail)
    builder.bind(outer, Binding.SERIAL)
    builder.bind(inner, Binding.VECTOR)
    assert _counted(builder.freeze(), [extent]) == _all([extent])


@given(outer_extent=st.integers(1, 10), factor=st.integers(1, 8))
def test_an_exact_split_has_no_bounds(outer_extent: int, factor: int) -> None:
    extent = outer_extent * factor
    (loop,) = _loops([extent])
    builder = NestBuilder([loop], [])
    outer, inner = builder.split(builder.axis(loop), factor, LastTile.EXACT)
    builder.bind(outer, Binding.SERIAL)
    builder.bind(inner, Binding.PACKET)
    nest = builder.freeze()
    assert not nest.kept_bounds
    assert _counted(nest, [extent]) == _all([extent])


@given(extent=st.integers(1, 40), factor=st.integers(1, 12))
def test_a_clamped_surplus_repeats_the_last_element(extent: int, factor: int) -> None:
    (loop,) = _loops([extent])
    builder = NestBuilder([loop], [])
    outer, inner = builder.split(builder.axis(loop), factor, LastTile.CLAMP)
    builder.bind(outer, Binding.BLOCK_X)
    builder.bind(inner, Binding.THREAD_X)
    nest = builder.freeze()
    values: dict[Scalar, int] = {scalar_symbols.size(0, 0): extent}
    surplus = [p for p, inside, _ in _points(nest, [loop], values) if not inside]
    assert len(surplus) == -extent % factor
    assert set(surplus) <= {(extent - 1,)}


@given(extents=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_merge_runs_through_all_in_order(extents: list[int]) -> None:
    loops = _loops(extents)
    builder = NestBuilder(loops, [])
    builder.bind(builder.merge([builder.axis(x) for x in loops]), Binding.SERIAL)
    nest = builder.freeze()
    values: dict[Scalar, int] = {
        scalar_symbols.size(0, k): n for k, n in enumerate(extents)
    }
    visited = [p for p, _, _ in _points(nest, loops, values)]
    assert visited == list(itertools.product(*(range(n) for n in extents)))


@st.composite
def nests(draw: st.DrawFn) -> tuple[list[int], Nest]:
    """Extents and a nest made of random merges and splits of them.

    What ends early may be split once more, to end early again, and is not merged.
    """
    extents = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    loops = _loops(extents)
    builder = NestBuilder(loops, [])
    axes = [builder.axis(loop) for loop in loops]
    sizes, early = list(extents), [False for _ in extents]
    for _ in range(draw(st.integers(0, 4))):
        k = draw(st.integers(0, len(axes) - 1))
        if draw(st.booleans()) and k + 1 < len(axes) and not any(early[k : k + 2]):
            axes[k : k + 2] = [builder.merge(axes[k : k + 2])]
            sizes[k : k + 2] = [sizes[k] * sizes[k + 1]]
            early[k : k + 2] = [False]
            continue
        is_shrunk = early[k] or draw(st.booleans())
        factor, tail = draw(_splits(sizes[k]))
        tail = LastTile.SHRINK if is_shrunk else tail
        axes[k : k + 1] = builder.split(axes[k], factor, tail)
        sizes[k : k + 1] = [-(-sizes[k] // factor), factor]
        early[k : k + 1] = [early[k], is_shrunk]
    _bind_all(builder, axes)
    return extents, builder.freeze()


@st.composite
def _splits(draw: st.DrawFn, extent: int) -> tuple[int, LastTile]:
    if draw(st.booleans()):
        divisors = [f for f in range(1, extent + 1) if extent % f == 0]
        return draw(st.sampled_from(divisors)), LastTile.EXACT
    return draw(st.integers(1, 7)), draw(
        st.sampled_from([LastTile.GUARD, LastTile.CLAMP])
    )


def _bind_all(builder: NestBuilder, axes: Sequence[LoopAxis]) -> None:
    for axis in axes:
        builder.bind(axis, Binding.SERIAL)


@settings(max_examples=300)
@given(made=nests())
def test_random_transforms_cover_every_index_once(made: tuple[list[int], Nest]) -> None:
    extents, nest = made
    assert _counted(nest, extents) == _all(extents)


def test_a_bound_extent_may_be_larger_under_a_guard() -> None:
    (loop,) = _loops([10])
    builder = NestBuilder([], [loop])
    step, place = builder.split(builder.axis(loop), 4, LastTile.GUARD)
    builder.bind(step, Binding.UNROLLED, 8)
    builder.bind(place, Binding.THREAD_X)
    nest = builder.freeze()
    assert math.prod(evaluate(x.extent, {}) for x in nest.leaves) == 32
    assert _counted(nest, [10]) == _all([10])


def test_leaves_know_whether_they_fold() -> None:
    kept, folded = _loops([4, 6])
    builder = NestBuilder([kept], [folded])
    outer, lane = builder.split(builder.axis(folded), 2, LastTile.EXACT)
    builder.bind(builder.axis(kept), Binding.BLOCK_X)
    builder.bind(outer, Binding.SERIAL)
    builder.bind(lane, Binding.PACKET)
    nest = builder.freeze()
    assert [x.binding for x in nest.kept] == [Binding.BLOCK_X]
    assert [x.binding for x in nest.reduced] == [Binding.SERIAL]
    assert nest.lane is not None
    assert nest.lane_reduces
    assert nest.leaf(Binding.PACKET) is nest.lane
    assert nest.leaf(Binding.THREAD_Y) is None


def test_guards_belong_to_the_loops_that_they_guard() -> None:
    kept, folded = _loops([4, 6])
    builder = NestBuilder([kept], [folded])
    for loop, bindings in (
        (kept, (Binding.BLOCK_X, Binding.THREAD_Y)),
        (folded, (Binding.SERIAL, Binding.THREAD_X)),
    ):
        parts = builder.split(builder.axis(loop), 32, LastTile.GUARD)
        for axis, binding in zip(parts, bindings, strict=True):
            builder.bind(axis, binding)
    nest = builder.freeze()
    assert [b.extent for b in nest.kept_bounds] == [kept.extent]
    assert [b.extent for b in nest.reduced_bounds] == [folded.extent]


def test_an_axis_of_one_has_index_zero() -> None:
    builder = NestBuilder([], [])
    builder.bind(builder.one(), Binding.BLOCK_X)
    nest = builder.freeze()
    assert [x.extent for x in nest.leaves] == [sc.const(1)]


@given(
    length=st.integers(64, 90),
    factor=st.sampled_from([2, 4, 8]),
    gap=st.integers(0, 20),
    spare=st.booleans(),
)
@settings(deadline=None)
def test_tiles_from_the_first_boundary_and_the_rest_cover_every_index_once(
    length: int, factor: int, gap: int, spare: bool
) -> None:
    rows, along = _loops([3, length])
    builder = NestBuilder([rows], [along])
    begin = rows * (along.extent + gap)
    whole, lane = builder.align(builder.axis(along), factor, begin, factor, spare=spare)
    step, place = builder.split(whole, 32, LastTile.GUARD)
    builder.bind_rest(whole, place)
    builder.bind(builder.axis(rows), Binding.BLOCK_X)
    builder.bind(step, Binding.SERIAL)
    builder.bind(place, Binding.THREAD_X)
    builder.bind(lane, Binding.PACKET)
    nest = builder.freeze()
    assert nest.rest is not None
    found = _counted(nest, [3, length])
    starts = {row: min(k for r, k in found if r == row) for row, _ in found}
    assert all((row * (length + gap) + k) % factor == 0 for row, k in starts.items())
    assert found + _counted(nest.rest, [3, length]) == _all([3, length])
