# SPDX-License-Identifier: Apache-2.0
"""Arrays of ``np.empty`` are not written before the function writes them."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.arange(24.0).reshape(4, 6)


def borders(x: Any) -> Any:
    made = np.empty(x.shape)
    made[1:] = x[1:] * 2
    made[0] = x[-1]
    return made


def made_of_the_class(x: Any) -> Any:
    made = np.ndarray((4, 6))
    made[:, ::2] = x[:, ::2]
    made[:, 1::2] = x[:, ::2] - x[:, 1::2]
    return made


def like(x: Any) -> Any:
    made, other = np.empty_like(x), np.empty_like(x, dtype=np.int64)
    made[:2], made[2:] = x[2:], x[:2]
    other[...] = 7
    return made, other


def along_an_axis(x: Any) -> Any:
    made = np.empty_like(x)
    made[:, 0] = x[:, 0]
    for k in range(1, x.shape[1]):
        made[:, k] = made[:, k - 1] * 0.5 + x[:, k]
    return made


def element_by_element(x: Any) -> Any:
    made = np.empty((4, 6))
    for i in range(4):
        for j in range(6):
            made[i, j] = x[i, j] + 1
    return made * 2


def zeros_stay(x: Any) -> Any:
    made, other = np.empty((4, 6)), np.zeros((4, 6))
    made[1:], made[:1] = x[1:], 3
    other[2] = x[2]
    return made, other


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize(
    "function",
    [
        *(borders, made_of_the_class, like, along_an_axis, element_by_element),
        zeros_stay,
    ],
)
def test_what_is_written_is_there(function: Callable[[Any], Any], backend: str) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for k in range(3):
        x = X + k
        for one, other in zip(fused(x), function(x), strict=True):
            np.testing.assert_array_equal(one, other)


def test_nothing_fills_them() -> None:
    filled = nfuser.fuse(lambda x: _halves(np.zeros(x.shape), x)).explain(X)
    unset = nfuser.fuse(lambda x: _halves(np.empty(x.shape), x)).explain(X)
    assert filled.kernels == unset.kernels + 1
    assert filled.fused.writes == unset.fused.writes + X.nbytes


def _halves(made: Any, x: Any) -> Any:
    made[:, :3] = x[:, 3:] + 1
    made[:, 3:] = x[:, :3] + made[:, :3]
    return made
