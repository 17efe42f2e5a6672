# SPDX-License-Identifier: Apache-2.0
"""Axes of extent 1 are inserted after what is computed, and undone at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.expr import ExpandDims, ReduceOp
from nfuser.compiler.ir.text import text
from nfuser.compiler.rewrite.insert_axes_last import insert_axes_last
from tests.hand_built import Hand

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def test_a_chain_is_computed_before_its_axis_is_inserted(
    golden: Callable[[str], None],
) -> None:
    hand = Hand()
    x = hand.argument(2)
    row = hand.expand_dims(hand.reduce(ReduceOp.SUM, x, 1), 1)
    mean = hand.point("divide", row, hand.constant(4.0), shape=row.shape)
    root = hand.point("sqrt", mean, shape=row.shape)
    fusion = hand.fusion(hand.point("divide", x, root))
    golden(text(insert_axes_last(fusion)))


def test_tensors_with_axes_inserted_at_different_places_stay() -> None:
    hand = Hand()
    x, y = hand.argument(1), hand.argument(1)
    column, row = hand.expand_dims(x, 1), hand.expand_dims(y, 0)
    shape = (*x.shape, *y.shape)
    fusion = hand.fusion(hand.point("exp", hand.point("add", column, row, shape=shape)))
    assert insert_axes_last(fusion) is fusion


def test_axes_inserted_one_after_another_are_inserted_at_once() -> None:
    hand = Hand()
    x = hand.argument(1)
    twice = hand.expand_dims(hand.expand_dims(x, 1), 0)
    fusion = insert_axes_last(hand.fusion(hand.point("exp", twice, shape=twice.shape)))
    (view,) = (
        e for e in fusion.exprs if isinstance(e, ExpandDims) and e.axes == (0, 2)
    )
    assert view.source is x


def _table(x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1)


def _by_variance(x: Array) -> Array:
    return (x - x.mean(-1)[:, None]) / np.sqrt(x.var(-1) + 1)[:, None]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_two_spellings_of_a_norm_subtract_the_mean_once(dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(dtype)
    counts: list[int] = []
    for function in (_table, _by_variance):
        fused = nfuser.fuse(function, backend="interpret")
        (kernel,) = fused.kernels(x)
        counts.append(str(kernel.source).count("= subtract("))
        np.testing.assert_allclose(
            fused(x).astype(float), _table(x.astype(float)), atol=2e-2, rtol=1e-2
        )
    assert counts[0] == counts[1] == 1
