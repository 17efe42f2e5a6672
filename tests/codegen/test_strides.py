# SPDX-License-Identifier: Apache-2.0
"""Functions of elements that lie apart run in vectors, as those side by side do."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override


def _seconds(call: Any) -> float:
    begin = perf_counter()
    for _ in range(20):
        call()
    return perf_counter() - begin


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", [np.tanh, np.exp, np.log])
def test_a_function_of_a_column_is_not_as_slow_as_scalar_code(
    function: Any, dtype: str
) -> None:
    x = (np.random.default_rng(0).random((10_000, 3)) + 0.1).astype(dtype)
    column, alone = x[:, 0], x[:, 0].copy()
    f = nfuser.fuse(function)
    g = nfuser.fuse(lambda x: function(x[:, 0]))
    tolerance = 3e-6 if dtype == "f4" else 1e-14
    for made in (f(column), g(x)):
        np.testing.assert_allclose(made, function(column), rtol=tolerance)
    with override(num_threads=1):
        f(alone)
        calls = (lambda: f(column), lambda: g(x), lambda: f(alone))
        rounds = [[_seconds(call) for call in calls] for _ in range(15)]
    apart, inside, beside = (median(times) for times in zip(*rounds, strict=True))
    assert apart < 3.2 * beside
    assert inside < 3.2 * beside


@pytest.mark.parametrize("step", [-3, -1, 2, 7])
def test_strides_of_any_sign_and_size_give_the_same(step: int) -> None:
    x = np.random.default_rng(1).random((50, 900))
    f = nfuser.fuse(lambda x, y: np.exp(x) + np.sin(y))
    parts = x[:, ::step], x[::-1].T.copy().T[:, ::step]
    wanted = np.exp(parts[0]) + np.sin(parts[1])
    np.testing.assert_allclose(f(*parts), wanted, rtol=1e-14)
