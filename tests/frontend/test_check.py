# SPDX-License-Identifier: Apache-2.0
"""``nfuser.check`` tells rounding that a function magnifies from a wrong result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

X = np.random.default_rng(0).random((50, 1000)) * 1e-3 + 1e3


def cancelling(x: Any, scale: float = 1.0) -> Any:
    return ((x * x).mean(1) - x.mean(1) ** 2) * scale


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_function_that_cancels_may_err_as_numpy_does(dtype: Any) -> None:
    found = nfuser.check(cancelling, X.astype(dtype), 2.0)
    assert found.errors[0] <= found.limits[0]


def test_a_wrong_result_is_found_all_the_same() -> None:
    def wrong(x: Any) -> Any:
        is_fused = not isinstance(x.shape[0] * 1.0, float) or type(x) is not np.ndarray
        return cancelling(x) + (1e-4 if is_fused else 0.0)

    with pytest.raises(AssertionError, match="differs by"):
        nfuser.check(wrong, X)


def test_a_limit_that_is_given_holds() -> None:
    with pytest.raises(AssertionError, match="limit"):
        nfuser.check(cancelling, X, rtol=1e-12)
