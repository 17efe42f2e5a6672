# SPDX-License-Identifier: Apache-2.0

# What is dropped has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import DTypeError, OptionError
from nfuser.nn import dropout
from nfuser.random import default_rng
from nfuser.random.distributions import uniform
from tests.random.philox import words_of


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("p", [0.0, 0.25, 0.9])
def test_kept_values_are_divided_by_the_probability_of_keeping(
    p: float, dtype: Any
) -> None:
    x = np.linspace(1, 2, 1000, dtype=dtype).reshape(10, 100)
    kept = uniform.random(words_of(3, 0, x.shape), np.float32) >= p
    wanted = np.where(kept, x / dtype(1 - p), dtype(0))
    fused = nfuser.fuse(lambda x, rng: dropout(x, p, rng=rng))
    for found in (dropout(x, p, rng=default_rng(3)), fused(x, default_rng(3))):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=2 * float(np.finfo(dtype).eps))


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
