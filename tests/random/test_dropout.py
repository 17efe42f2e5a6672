# SPDX-License-Identifier: Apache-2.0

# What is dropped has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.errors import DTypeError, OptionError
from nfuser.nn import dropout
from nfuser.random import default_rng
from tests.random.philox import words_of


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("p", [0.0, 0.25, 0.9])
def test_kept_values_are_divided_by_the_probability_of_keeping(
    p: float, dtype: Any
) -> None:
    x = np.linspace(1, 2, 1000, dtype=dtype).reshape(10, 100)
    kept = words_of(3, 0, x.shape)(16) >= round(p * 2**16)
    wanted = np.where(kept, x / dtype(1 - p), dtype(0))
    fused = nfuser.fuse(lambda x, rng: dropout(x, p, rng=rng))
    for found in (dropout(x, p, rng=default_rng(3)), fused(x, default_rng(3))):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=2 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_what_is_kept_of_short_floats_is_rounded_once(dtype: Any) -> None:
    x = np.linspace(1, 2, 1000).astype(dtype)
    kept = words_of(3, 0, x.shape)(16) >= round(0.1 * 2**16)
    wanted = np.where(kept, x.astype(np.float32) * np.float32(1 / 0.9), 0)
    found = nfuser.fuse(lambda x, rng: dropout(x, 0.1, rng=rng))(x, default_rng(3))
    np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("p", [0.0, 1e-5, 0.1, 0.3, 0.99999])
def test_a_probability_is_known_to_the_nearest_multiple_of_two_to_the_minus_16(
    p: float,
) -> None:
    rng, x = default_rng(7), np.ones((16, 1 << 16), np.float32)
    known, passed = (
        nfuser.fuse(lambda x, rng: dropout(x, p, rng=rng)),
        nfuser.fuse(lambda x, p, rng: dropout(x, p, rng=rng)),
    )
    zeros = int((known(x, rng) == 0).sum())
    assert zeros == int((passed(x, p, default_rng(7)) == 0).sum())
    wanted = round(p * 2**16) / 2**16
    spread = (wanted * (1 - wanted) * x.size) ** 0.5
    assert abs(zeros - wanted * x.size) <= 5 * spread


@pytest.mark.parametrize("shape", [(33, 37), (4, 64), (1001,)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dropout_is_the_same_on_every_backend_and_layout(
    shape: tuple[int, ...], dtype: Any
) -> None:
    x = np.random.default_rng(0).random(shape).astype(dtype)

    def function(x: Any, rng: Any) -> Any:
        return dropout(x, 0.3, rng=rng)

    fused = nfuser.fuse(function)
    found = fused(x, default_rng(5))
    there = nfuser.fuse(function, backend="interpret")(x, default_rng(5))
    columns = fused(np.asfortranarray(x), default_rng(5))
    np.testing.assert_array_equal(there, found)
    np.testing.assert_array_equal(columns, found)


def test_a_probability_of_one_gives_zeros_whatever_was_there() -> None:
    x = np.array([np.inf, np.nan, 1.0])
    assert dropout(x, 1.0, rng=default_rng(1)).tolist() == [0, 0, 0]
    assert dropout(x, 1, rng=default_rng(1)).tolist() == [0, 0, 0]
    fused = nfuser.fuse(lambda x, p, rng: dropout(x, p, rng=rng))
    assert fused(x, 1.0, default_rng(1)).tolist() == [0, 0, 0]


def test_without_training_nothing_is_dropped_and_nothing_drawn() -> None:
    rng, x = default_rng(1), np.ones(3)
    assert dropout(x, 0.5, rng=rng, training=False) is x
    assert rng.state["call"] == 0


def test_dropout_and_what_surrounds_it_are_one_kernel() -> None:
    layer = nfuser.fuse(lambda x, b, rng: x + dropout(np.tanh(x + b), 0.1, rng=rng))
    told = layer.explain(np.ones((8, 4)), np.ones(4), default_rng(1))
    assert told.kernels == 1


def test_bad_input_is_refused() -> None:
    rng = default_rng(1)
    with pytest.raises(OptionError, match=r"^write a probability from 0 to 1"):
        dropout(np.ones(3), 1.5, rng=rng)
    with pytest.raises(DTypeError, match=r"^write x\.astype"):
        dropout(np.ones(3, int), 0.5, rng=rng)
    assert rng.state["call"] == 0
