# SPDX-License-Identifier: Apache-2.0
"""A reshape's squeeze, merges, splits and broadcast are together NumPy's reshape."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.reshape import analyze_reshape
from nfuser.compiler.ir.scalars.scalar_walk import evaluate

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar

Shape = tuple[int, ...]


@st.composite
def factored(draw: st.DrawFn) -> tuple[Shape, Shape]:
    """Two shapes of as many elements: the same factors, merged in two ways."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 4, 5]), max_size=5))
    return _joined(draw, factors), _joined(draw, factors)


def _joined(draw: st.DrawFn, factors: list[int]) -> Shape:
    sizes: list[int] = []
    for factor in factors:
        if sizes and draw(st.booleans()):
            sizes[-1] *= factor
        else:
            sizes.append(factor)
    for _ in range(draw(st.integers(0, 2))):
        sizes.insert(draw(st.integers(0, len(sizes))), 1)
    return tuple(sizes)


@given(shapes=factored())
def test_the_parts_make_the_whole(shapes: tuple[Shape, Shape]) -> None:
    old, new = shapes
    pattern = analyze_reshape(old, new)
    data = np.arange(prod(old)).reshape(old)
    array = np.squeeze(data, pattern.squeezed)
    done: list[int] = []
    for left, right in pattern.groups:
        done += [new[k] for k in right]
        # One run alone: the axes before and after it stay as they are.
        array = array.reshape(*done, *(old[k] for k in range(left[-1] + 1, len(old))))
        before, after = [old[k] for k in left], [new[k] for k in right]
        assert prod(before) == prod(after)
        assert 1 not in before + after
        for few in range(1, min(len(before), len(after))):
            cuts = {prod(before[:k]) for k in range(1, len(before))}
            assert prod(after[:few]) not in cuts, "a run that two shorter ones make"
    result = np.expand_dims(array.reshape(done), pattern.broadcast)
    np.testing.assert_array_equal(result, data.reshape(new))


@given(shapes=factored())
def test_every_axis_has_one_part(shapes: tuple[Shape, Shape]) -> None:
    old, new = shapes
    pattern = analyze_reshape(old, new)
    left = [k for group in pattern.groups for k in group[0]]
    right = [k for group in pattern.groups for k in group[1]]
    assert left == sorted(left)
    assert right == sorted(right)
    assert sorted([*left, *pattern.squeezed]) == list(range(len(old)))
    assert sorted([*right, *pattern.broadcast]) == list(range(len(new)))
    assert {old[k] for k in pattern.squeezed} <= {1}
    assert {new[k] for k in pattern.broadcast} <= {1}


@given(shapes=factored())
def test_what_a_pattern_asks_of_sizes_is_true(shapes: tuple[Shape, Shape]) -> None:
    old, new = (
        [scalar_symbols.size(k, i) for i in range(len(s))] for k, s in enumerate(shapes)
    )
    values: dict[Scalar, int] = dict(
        zip([*old, *new], [*shapes[0], *shapes[1]], strict=True)
    )
    asked = analyze_reshape(*shapes).constraints(old, new)
    for a, b in asked:
        assert evaluate(a, values) == evaluate(b, values)
    # Together they say that there are as many elements: one wrong size breaks one.
    for symbol in [*old, *new]:
        changed = {**values, symbol: values[symbol] + 1}
        assert any(evaluate(a, changed) != evaluate(b, changed) for a, b in asked)
