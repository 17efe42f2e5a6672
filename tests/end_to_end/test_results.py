# SPDX-License-Identifier: Apache-2.0
"""What results are besides their numbers: types, memory order, aliasing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from tests.fuzz.arrays import LAYOUTS, build


def _doubled(x: Any) -> Any:
    return x * 2


def _summed(x: Any) -> Any:
    return np.sum(x), x + 1


def _columns(x: Any) -> Any:
    return np.sum(x, axis=0)


def _same(x: Any) -> Any:
    return x, x


def test_a_full_reduction_gives_a_numpy_scalar() -> None:
    total, more = nfuser.fuse(_summed)(np.arange(6, dtype=np.float32))
    assert type(total) is np.float32
    assert type(more) is np.ndarray


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_output_has_numpys_memory_order(layout: str) -> None:
    x = build("float32", (3, 4, 5), layout=layout, seed=1)
    assert nfuser.fuse(_doubled)(x).strides == (x * 2).strides


def test_outputs_share_no_memory() -> None:
    x = np.arange(5.0)
    first, second = nfuser.fuse(_same)(x)
    assert not np.shares_memory(first, x)
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays_stay_empty(shape: tuple[int, ...]) -> None:
    total, more = nfuser.fuse(_summed)(np.zeros(shape, np.float32))
    assert total == 0
    assert more.shape == shape


def test_a_sum_beside_the_rest_of_an_empty_array_is_empty() -> None:
    def function(x: Any) -> Any:
        return np.power(x, 0.25), np.sum(x, axis=1)

    root, total = nfuser.fuse(function)(np.zeros((1, 2, 0), np.float32))
    assert (root.shape, total.shape) == ((1, 2, 0), (1, 0))


def test_the_same_call_gives_the_same_bits() -> None:
    x = build("float32", (37, 257), seed=4)
    fused = nfuser.fuse(_columns)
    assert fused(x).tobytes() == fused(x).tobytes()


@pytest.mark.parametrize("shape", [(2, 1000, 2), (257, 3, 40), (9000, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kept_rows_of_many_short_runs_stay_in_their_array(
    shape: tuple[int, ...], dtype: str
) -> None:
    """The last runs along memory are short: the place in a kept row counts elements."""
    x = build(dtype, shape, seed=3)
    axes = tuple(range(1, x.ndim))

    def softmax(x: Any) -> Any:
        return xp.softmax(x, axis=axes)

    np.testing.assert_allclose(nfuser.fuse(softmax)(x), softmax(x), rtol=1e-5)


def _below_the_largest(x: Any, w: Any) -> Any:
    return x * w - (x * w).max(axis=-1, keepdims=True)


def test_a_product_that_is_computed_again_is_the_same_number() -> None:
    x, w = np.random.default_rng(0).random((2, 8, 100))
    found = nfuser.fuse(_below_the_largest, backend="cpu")(x, w)
    assert (found.max(axis=-1) == 0).all()
    np.testing.assert_array_equal(found, _below_the_largest(x, w))
