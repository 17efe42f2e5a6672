# SPDX-License-Identifier: Apache-2.0
"""Outputs lie in memory as NumPy's do, whatever the layout of the operands."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.execution.runtime.outputs.memory_order import (
    axis_order,
    dense,
    strides_of_all,
)
from tests.hand_built import settle, sizes_of, traced

Array = np.ndarray[Any, Any]


@st.composite
def laid_out(draw: st.DrawFn, shape: tuple[int, ...]) -> Array:
    """An array of ``shape`` in some memory order, with gaps, flips and stretches."""
    rank = len(shape)
    order = draw(st.permutations(range(rank)))
    gaps = draw(st.lists(st.sampled_from([1, 1, 2]), min_size=rank, max_size=rank))
    steps = draw(st.lists(st.sampled_from([1, 1, -1]), min_size=rank, max_size=rank))
    stretched = draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank))
    inner = [1 if s == 0 else n for n, s in zip(shape, stretched, strict=True)]
    memory = np.zeros([inner[k] * gaps[k] for k in order], np.float32)
    array = memory.transpose(np.argsort(order))
    array = array[tuple(slice(None, None, g) for g in gaps)]
    array = array[tuple(slice(None, None, s) for s in steps)]
    return np.broadcast_to(array, shape)


@st.composite
def calls(draw: st.DrawFn) -> list[Array]:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    arrays = [draw(laid_out(shape)) for _ in range(draw(st.integers(1, 3)))]
    # One operand may have fewer axes, or axes of one.
    if draw(st.booleans()):
        cut = draw(st.integers(0, len(shape)))
        arrays.append(draw(laid_out(shape[cut:])))
    return arrays


def _strides(function: Any, arrays: list[Array]) -> list[tuple[int, ...]]:
    """Return the strides, in elements, that the outputs of ``function`` get."""
    shapes = [a.shape for a in arrays]
    fusion = settle(traced(function, *arrays), *shapes).fusion
    given = {
        x.result: tuple(s // a.itemsize for s in a.strides)
        for x, a in zip(fusion.arguments, arrays, strict=True)
    }
    sizes = sizes_of(*shapes)
    found = {t: tuple(evaluate_all(t.shape, sizes)) for t in fusion.definition}
    strides = strides_of_all(fusion, found, given)
    return [dense(found[t], axis_order(t.ndim, [strides[t]])) for t in fusion.outputs]


def _agrees(own: tuple[int, ...], array: Array) -> bool:
    """Tell whether ``own`` are the array's strides, where they mean something."""
    pairs = zip(own, array.strides, array.shape, strict=True)
    return all(a * array.itemsize == b or n == 1 for a, b, n in pairs)


def _check(function: Any, arrays: list[Array]) -> None:
    expected: Any = function(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for own, array in zip(_strides(function, arrays), expected, strict=True):
        assert _agrees(own, np.asarray(array)), (own, array.strides, array.shape)


@settings(max_examples=200)
@given(arrays=calls())
def test_elementwise_results_lie_as_numpys(arrays: list[Array]) -> None:
    def total(*given: Any) -> Any:
        result = np.exp(given[0])
        for array in given:
            result = result + array
        return result, given[0] * given[-1]

    _check(total, arrays)


@settings(max_examples=150)
@given(
    array=st.lists(st.integers(1, 4), min_size=1, max_size=4).flatmap(
        lambda shape: laid_out(tuple(shape))
    ),
    axes=st.sets(st.integers(0, 3)),
    keepdims=st.booleans(),
)
def test_reductions_lie_as_numpys(array: Array, axes: set[int], keepdims: bool) -> None:
    along = tuple(sorted(k for k in axes if k < array.ndim))
    _check(lambda x: x.sum(axis=along, keepdims=keepdims), [array])
    _check(lambda x: x.max(axis=along, keepdims=keepdims) * 2, [array])


@settings(max_examples=150)
@given(array=st.integers(1, 4).flatmap(lambda n: laid_out((n, 3, 2))))
def test_copies_lie_as_numpys(array: Array) -> None:
    _check(lambda x: np.copy(x, order="K"), [array])


@settings(max_examples=150)
@given(data=st.data())
def test_joined_arrays_lie_as_numpys(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    beside = [(*shape[:axis], n, *shape[axis + 1 :]) for n in sizes]
    _check(
        lambda *given: np.concatenate(given, axis),
        [data.draw(laid_out(one)) for one in beside],
    )
    _check(
        lambda *given: np.stack(given, axis),
        [data.draw(laid_out(tuple(shape))) for _ in sizes],
    )


def test_operands_that_disagree_give_c_order() -> None:
    assert axis_order(2, [(1, 4), (4, 1)]) == [1, 0]
    assert axis_order(2, [(1, 4), (1, 4)]) == [0, 1]
    assert axis_order(2, [(0, 0), (1, 4)]) == [0, 1]
    assert axis_order(3, [(-1, 8, 2)]) == [0, 2, 1]


def test_dense_strides_fill_memory() -> None:
    assert dense((2, 0, 3), [0, 1, 2]) == (1, 2, 2)
    assert dense((), []) == ()


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_arrays_come_back_in_numpys_order(backend: str) -> None:
    import nfuser

    x = np.ones((2, 3, 4), np.float32).transpose(2, 0, 1)
    y = np.asfortranarray(np.ones((4, 2, 3), np.float32))
    function = lambda a, b: (a + 1, a + b, b.sum(1), (a * b).max(0))  # noqa: E731
    fused = nfuser.fuse(function, backend=None if backend == "cpu" else backend)
    for got, want in zip(fused(x, y), function(x, y), strict=True):
        assert got.strides == want.strides
        np.testing.assert_array_equal(got, want)
