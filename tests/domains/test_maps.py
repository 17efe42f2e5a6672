# SPDX-License-Identifier: Apache-2.0
"""Where an expression reads its sources is where NumPy's views read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.maps import Point, reduced_point, source_points
from nfuser.compiler.ir.expr import Reduce, ReduceOp
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from tests.hand_built import Hand

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView

Array = np.ndarray[Any, Any]


def _read(target: TensorView, hand: Hand, data: dict[TensorView, Array]) -> Array:
    """Gather ``target`` from the arguments through the maps alone."""
    shape = tuple(evaluate_all(target.shape, {}))
    definition = {t: e for e in hand.exprs for t in [e.result]}
    gathered = np.empty(shape)
    for point in np.ndindex(*shape):
        tensor, at = target, Point(tuple(sc.const(k) for k in point))
        while tensor not in data:
            ((tensor, at),) = source_points(definition[tensor], at)
        gathered[point] = data[tensor][tuple(evaluate_all(at, {}))]
    return gathered


@st.composite
def viewed(draw: st.DrawFn) -> tuple[Hand, TensorView, TensorView, Array, Array]:
    """An argument, a chain of views of it, and both as NumPy has them."""
    hand = Hand()
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    source = hand.shaped(*shape)
    data: Array = np.arange(float(np.prod(shape))).reshape(shape)
    tensor, array = source, data
    for _ in range(draw(st.integers(1, 4))):
        tensor, array = _viewed_once(draw, hand, tensor, array)
    return hand, source, tensor, data, array


def _viewed_once(
    draw: st.DrawFn, hand: Hand, tensor: TensorView, array: Array
) -> tuple[TensorView, Array]:
    ones = [k for k, n in enumerate(array.shape) if n == 1]
    kinds = ["permute", "slice", "expand_dims", "expand", *(["squeeze"] * bool(ones))]
    match draw(st.sampled_from(kinds)):
        case "permute":
            order = draw(st.permutations(range(array.ndim)))
            return hand.permute(tensor, *order), array.transpose(order)
        case "slice":
            cuts = [draw(st.slices(n).filter(_is_plain(n))) for n in array.shape]
            whole = [c.indices(n) for c, n in zip(cuts, array.shape, strict=True)]
            view = array[tuple(cuts)]
            starts, steps = [w[0] for w in whole], [w[2] for w in whole]
            return hand.slice(tensor, starts, steps, view.shape), view
        case "expand_dims":
            axis = draw(st.integers(0, array.ndim))
            return hand.expand_dims(tensor, axis), np.expand_dims(array, axis)
        case "squeeze":
            axis = draw(st.sampled_from(ones))
            return hand.squeeze(tensor, axis), np.squeeze(array, axis)
        case _:
            shape = [draw(st.integers(1, 3)) if n == 1 else n for n in array.shape]
            shape = [draw(st.integers(1, 3)), *shape] if array.ndim < 3 else shape
            return hand.expand(tensor, *shape), np.broadcast_to(array, shape)


def _is_plain(extent: int) -> Callable[[slice], bool]:
    def takes_some(cut: slice) -> bool:
        return len(range(*cut.indices(extent))) > 0

    return takes_some


@settings(max_examples=150)
@given(made=viewed())
def test_views_read_what_numpy_reads(
    made: tuple[Hand, TensorView, TensorView, Array, Array],
) -> None:
    hand, source, target, data, expected = made
    np.testing.assert_array_equal(_read(target, hand, {source: data}), expected)


def test_an_operand_is_read_where_it_stretches() -> None:
    hand = Hand()
    x, b, row = hand.shaped(3, 4), hand.shaped(4), hand.shaped(3, 1)
    total = hand.point("select", hand.point("isnan", x), b, row, shape=x.shape)
    i, j = scalar_symbols.loop_index(0, 3), scalar_symbols.loop_index(1, 4)
    points = source_points(hand.fusion(total).definition[total], Point((i, j)))
    assert [p.index for _, p in points] == [(i, j), (j,), (i, sc.const(0))]


def test_a_reduction_is_read_at_its_own_point_only() -> None:
    hand = Hand()
    x = hand.shaped(2, 3, 4, 5)
    total = hand.reduce(ReduceOp.SUM, x, 0, 2)
    expr = hand.exprs[-1]
    assert isinstance(expr, Reduce)
    i = [scalar_symbols.loop_index(k, n) for k, n in enumerate((2, 3, 4, 5))]
    assert source_points(expr, Point((i[1], i[3]))) == []
    kept: tuple[Scalar, ...] = (i[1], i[3])
    assert reduced_point(expr, Point(kept), Point((i[0], i[2]))).index == tuple(i)
    assert total.ndim == 2


def test_a_leaf_reads_nothing() -> None:
    hand = Hand()
    x, one = hand.shaped(3), hand.constant(1.0)
    assert source_points(hand.exprs[0], Point((sc.const(0),))) == []
    assert source_points(hand.exprs[1], Point(())) == []
    assert (x.ndim, one.ndim) == (1, 0)
