# SPDX-License-Identifier: Apache-2.0
"""Where movements read their sources, and whether at all, is as NumPy has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.maps import Point, data_of, source_points
from nfuser.compiler.domains.reshape import analyze_reshape
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Concatenate,
    Constant,
    Expr,
    Pad,
    Remap,
    Reshape,
    Take,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.ir.tensor import TensorView, tensor
from tests.hand_built import Hand
from tests.oracle.views import padded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar

Array = np.ndarray[Any, Any]


class Reader:
    """Evaluates elements through the maps alone."""

    def __init__(self, exprs: Sequence[Expr], data: dict[TensorView, Array]) -> None:
        self._made = {e.result: e for e in exprs if not hasattr(e, "results")}
        self._data = data

    def array(self, target: TensorView) -> Array:
        """Return all elements of ``target``."""
        shape = tuple(evaluate_all(target.shape, {}))
        made = np.empty(shape, int)
        for place in np.ndindex(*shape):
            made[place] = self.element(target, Point(tuple(map(sc.const, place))))
        return made

    def element(self, target: TensorView, point: Point) -> int:
        """Return one element; the first source whose guard holds is read."""
        index, guard = self._values(point)
        assert all(guard)
        if target in self._data:
            array = self._data[target]
            assert all(0 <= k < n for k, n in zip(index, array.shape, strict=True))
            return int(array[tuple(index)])
        expr = self._made[target]
        if isinstance(expr, Constant):
            return int(expr.value.real)
        reads = source_points(expr, point)
        tensor, where = next(r for r in reads if all(self._values(r[1])[1]))
        return self.element(tensor, where)

    def _values(self, point: Point) -> tuple[list[int], list[int]]:
        known: dict[Scalar, int] = {}
        for chosen in data_of(point):
            place = evaluate_all(chosen.index, known)
            assert isinstance(chosen.tensor, TensorView)
            found = self.element(chosen.tensor, Point(tuple(map(sc.const, place))))
            extent = evaluate_all([chosen.extent], known)[0]
            known[chosen] = found + extent * (found < 0)
        found = evaluate_all(point.scalars, known)
        return found[: len(point)], found[len(point) :]


Pair = tuple[TensorView, Array]


@st.composite
def moved(draw: st.DrawFn) -> tuple[Hand, dict[TensorView, Array], Pair]:
    """An argument, two or three movements of it, and both as NumPy has them."""
    hand = Hand()
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    source = hand.shaped(*shape, dtype=DType.I64)
    array: Array = np.arange(int(np.prod(shape))).reshape(shape) + 1
    data = {source: array}
    pair: Pair = (source, array)
    for _ in range(draw(st.integers(2, 3))):
        move = draw(st.sampled_from([_reshape, _pad, _join, _roll, _repeat, _take]))
        if pair[1].size and pair[1].size < 150:
            pair = move(draw, hand, data, pair)
    return hand, data, pair


def _emit(hand: Hand, expr: Any, array: Array) -> Pair:
    hand.exprs.append(expr)
    return expr.result, array


def _like(array: Array) -> TensorView:
    return tensor(array.shape, DType.I64)


def _reshape(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    x, array = pair
    size = array.size
    first = draw(st.sampled_from([k for k in range(1, size + 1) if size % k == 0]))
    rest = size // first
    second = draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0]))
    made = array.reshape(first, second, rest // second)
    pattern = analyze_reshape(array.shape, made.shape)
    flat = np.squeeze(array, pattern.squeezed)
    if pattern.squeezed:
        x = hand.squeeze(x, *pattern.squeezed)
    wide = np.squeeze(made, pattern.broadcast)
    old = [k for left, _ in pattern.groups for k in left]
    new = [k for _, right in pattern.groups for k in right]
    groups = tuple(
        (tuple(map(old.index, left)), tuple(map(new.index, right)))
        for left, right in pattern.groups
    )
    assert flat.size == wide.size
    pair = _emit(hand, Reshape(x, _like(wide), groups), wide)
    if not pattern.broadcast:
        return pair
    return hand.expand_dims(pair[0], *pattern.broadcast), made


def _pad(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    x, array = pair
    widths: list[tuple[int, int]] = []
    for n in array.shape:
        left = draw(st.integers(-n, 2))
        widths.append((left, draw(st.integers(-n - left, 2))))
    made = padded(array, widths, -7)
    lefts = tuple(sc.const(left) for left, _ in widths)
    fill = hand.constant(-7, DType.I64)
    return _emit(hand, Pad(x, fill, _like(made), lefts), made)


def _join(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    x, array = pair
    axis = draw(st.integers(0, array.ndim - 1))
    n = array.shape[axis]
    at = draw(st.integers(0, n))
    cuts = [np.s_[at:], np.s_[:at], np.s_[:]]
    arrays: list[Array] = []
    parts: list[TensorView] = []
    for cut in draw(st.permutations(cuts)):
        whole = [slice(None)] * array.ndim
        whole[axis] = cut
        part = array[tuple(whole)]
        starts = [0] * array.ndim
        starts[axis] = cut.indices(n)[0]
        arrays.append(part)
        parts.append(hand.slice(x, starts, [1] * array.ndim, part.shape))
    made = np.concatenate(arrays, axis)
    return _emit(hand, Concatenate(tuple(parts), _like(made), axis), made)


def _remapped(
    hand: Hand,
    pair: Pair,
    made: Array,
    axis: int,
    index: Callable[[Scalar], Scalar],
) -> Pair:
    shape = made.shape
    every = [scalar_symbols.place(k, n) for k, n in enumerate(shape)]
    whole = tuple(index(p) if k == axis else p for k, p in enumerate(every))
    return _emit(hand, Remap(pair[0], _like(made), whole), made)


def _roll(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    axis = draw(st.integers(0, pair[1].ndim - 1))
    n, by = pair[1].shape[axis], draw(st.integers(-5, 5))
    made = np.roll(pair[1], by, axis)
    return _remapped(hand, pair, made, axis, lambda p: (p + (-by) % n) % n)


def _repeat(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    axis = draw(st.integers(0, pair[1].ndim - 1))
    times = draw(st.integers(1, 3))
    made = np.repeat(pair[1], times, axis)
    return _remapped(hand, pair, made, axis, lambda p: p // times)


def _take(draw: st.DrawFn, hand: Hand, data: Any, pair: Pair) -> Pair:
    x, array = pair
    axis = draw(st.integers(0, array.ndim - 1))
    n = array.shape[axis]
    along = draw(st.booleans())
    shape = (
        list(array.shape) if along else draw(st.lists(st.integers(1, 3), max_size=1))
    )
    if along:
        shape[axis] = draw(st.integers(1, 3))
    every = st.integers(-n, n - 1)
    flat = draw(
        st.lists(every, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    )
    chosen = np.array(flat, int).reshape(shape)
    index = hand.shaped(*shape, dtype=DType.I64)
    data[index] = chosen
    if along:
        made = np.take_along_axis(array, chosen, axis)
    else:
        made = np.take(array, chosen, axis)
    made = np.asarray(made)
    return _emit(hand, Take(x, index, _like(made), axis, along), made)


@settings(max_examples=120, deadline=None)
@given(made=moved())
def test_movements_read_what_numpy_reads(
    made: tuple[Hand, dict[TensorView, Array], Pair],
) -> None:
    hand, data, (target, expected) = made
    np.testing.assert_array_equal(Reader(hand.exprs, data).array(target), expected)
