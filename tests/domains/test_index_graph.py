# SPDX-License-Identifier: Apache-2.0
"""Groups of (axis, expression) pairs with the same index, from uses alone."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
import nfuser.numpy as xp
from nfuser.compiler.concretize import answer, concretize, questions
from nfuser.compiler.domains.index_graph import IndexGraph, index_graph, text
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.ir.expr import Concatenate, Pad, Pointwise, Slice, results
from tests.hand_built import Hand, settle, settled, sizes_of, traced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

X = np.ones((4, 8), np.float32)


def _graph(fusion: Fusion, placed: Mapping[TensorView, int] | None = None) -> Any:
    found = index_graph(fusion, placed)
    assert isinstance(found, IndexGraph)
    return found


def _copy_of_a_row() -> Fusion:
    """``T3[I2, I3] = add(copy(T0[b0, I0]), T1[I4, I5])``, by hand."""
    hand = Hand()
    t0 = hand.shaped(1, scalar_symbols.size(0, 1))
    t1 = hand.argument(2)
    total = hand.point("add", hand.point("copy", t0), t1)
    return settle(hand.fusion(total, name="example"), (1, 7), (5, 7)).fusion


def test_a_placed_tensor_has_loops_of_its_own_below_its_depth() -> None:
    fusion = _copy_of_a_row()
    (t3,) = fusion.outputs
    add = fusion.definition[t3]
    assert isinstance(add, Pointwise)
    t2, t1 = add.operands
    copy = fusion.definition[t2]
    assert isinstance(copy, Pointwise)
    (t0,) = copy.operands
    (b0, first), (b1, second), (i2, i3), (i4, i5) = (t.axes for t in (t0, t2, t3, t1))
    groups = {frozenset(g) for g in _graph(fusion, {t2: 1}).groups.values()}
    assert groups == {
        frozenset({(b0, copy), (b1, copy), (b1, add)}),
        frozenset({(first, copy), (second, copy)}),
        frozenset({(second, add), (i5, add), (i3, add)}),
        frozenset({(i2, add), (i4, add)}),
    }
    inlined = _graph(fusion)
    assert inlined.indices(second, copy) == inlined.indices(second, add)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_the_depth_of_a_placed_tensor(
    golden: Callable[[str], None], depth: int
) -> None:
    fusion = _copy_of_a_row()
    t2 = fusion.exprs[-2]
    golden(text(_graph(fusion, {results(t2)[0]: depth})))


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    h = x.shape[-1] // 2
    rotated = np.concatenate([-x[..., h:], x[..., :h]], axis=-1)
    return x * cos + rotated * sin


def test_a_rotation_meets_itself_and_is_three_reads(
    golden: Callable[[str], None],
) -> None:
    fusion = settled(_rotated, X, X, X)
    graph = _graph(fusion)
    (x,) = (a.result for a in fusion.arguments if a.slot == 0)
    last = x.axes[-1]
    slices = [e for e in fusion.exprs if isinstance(e, Slice)]
    product = next(e for e in fusion.users[x] if isinstance(e, Pointwise))
    (joined,) = (e for e in fusion.exprs if isinstance(e, Concatenate))
    read = [graph.indices(last, e) for e in (product, *slices)]
    assert [len(indices) for indices in read] == [1, 1, 1]
    assert len({index for indices in read for index in indices}) == 3
    # The extents are equal, and so says the exact relation; the indices are not.
    assert len(graph.indices(joined.result.axes[-1], joined)) == 1
    golden(text(graph))


def test_a_shifted_copy_is_not_read_where_its_source_is(
    golden: Callable[[str], None],
) -> None:
    def shifted(t: Any, a: int) -> Any:
        return t + xp.pad(t, ((a, -a),))

    fusion = traced(shifted, X[0], 3)
    asked = questions(fusion)
    values = sizes_of((8,)) | {scalar_symbols.scalar_input(1): 3}
    fusion = concretize(fusion, asked, answer(fusion, asked, values)).fusion
    graph = _graph(fusion)
    (t,) = (a.result.axes[0] for a in fusion.arguments if not a.by_value)
    add = fusion.definition[fusion.outputs[0]]
    (pad,) = (e for e in fusion.exprs if isinstance(e, Pad))
    (direct,), (through,) = graph.indices(t, add), graph.indices(t, pad)
    assert direct - through is pad.lefts[0]
    golden(text(graph))


def test_one_expression_may_read_an_axis_at_two_indices() -> None:
    fusion = settled(lambda x: np.concatenate([x, x]).sum(), X[0])
    graph = _graph(fusion)
    (x,) = (a.result for a in fusion.arguments)
    (joined,) = fusion.users[x]
    assert len(graph.indices(x.axes[0], joined)) == 2


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.reshape(2, 2, -1) + 1, id="split"),
        pytest.param(lambda x: x.reshape(-1) + 1, id="merge"),
        pytest.param(lambda x: x.T + 1, id="permute"),
        pytest.param(lambda x: x / x.sum(1, keepdims=True), id="normalize"),
        pytest.param(lambda x: np.roll(x, 3, axis=1), id="roll"),
    ],
)
def test_text(golden: Callable[[str], None], function: Callable[[Any], Any]) -> None:
    golden(text(_graph(settled(function, X))))


def test_an_index_may_be_an_element_of_a_tensor(golden: Callable[[str], None]) -> None:
    rows = np.array([2, -1])
    golden(text(_graph(settled(lambda x, i: np.take(x, i, axis=0), X, rows))))


def test_what_no_kernel_can_run_has_no_graph() -> None:
    found = index_graph(settled(lambda x: (x.sum(0), x.sum(1)), X))
    assert isinstance(found, Mismatch)
