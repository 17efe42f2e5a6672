# SPDX-License-Identifier: Apache-2.0
"""Gradients through what index arrays read and write."""

# Functions of arrays have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

RNG = np.random.default_rng(0)
X, ROWS = RNG.random((5, 4)), RNG.random((7, 4))
AT, J = RNG.integers(-5, 5, 7), RNG.integers(0, 4, 7)
C, V = RNG.integers(0, 4, (5, 3)), RNG.random(7)


def _set(x: Any) -> Any:
    y = x * 2
    y[AT] = ROWS * x[0]
    y[AT, J] = x[1, 0] * V
    return y**2


def _added(x: Any) -> Any:
    y = x * 2
    np.add.at(y, AT, ROWS * x[0])
    np.subtract.at(y, (AT, J), x[1, 0] * V)
    return y**2


CASES: dict[str, Any] = {
    "rows": lambda x: x[AT] * ROWS,
    "elements": lambda x: x[AT, J] * V,
    "columns": lambda x: np.take(x, J, axis=1) ** 2,
    "along": lambda x: np.take_along_axis(x, C, 1) ** 3,
    "stretched along": lambda x: np.take_along_axis(x[:1], C, 1) ** 3,
    "set": _set,
    "added": _added,
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
def test_what_index_arrays_move_has_derivatives(function: Any) -> None:
    def total(x: Any) -> Any:
        return function(x).sum()

    found = nfuser.grad(total)(X)
    _, pushed = nfuser.jvp(total, (X,), (np.ones_like(X),))
    for place in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[place] = 1e-6
        slope = (total(X + step) - total(X - step)) / 2e-6
        assert abs(found[place] - slope) < 1e-6
    assert abs(pushed - found.sum()) < 1e-9
