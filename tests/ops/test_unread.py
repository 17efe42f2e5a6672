# SPDX-License-Identifier: Apache-2.0
"""Sizes that do not fit are refused in each call, read or not."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import AxisError, ShapeError

X, Y = np.ones((4, 6)), np.ones((4, 6))
CASES: dict[str, tuple[Any, tuple[int, int], tuple[int, int], str]] = {
    "a sum": (lambda x, y: x + y, (4, 6), (3, 6), "could not be broadcast"),
    "a product": (lambda x, y: x @ y.T, (4, 5), (4, 6), "matmul"),
    "what is joined": (lambda x, y: np.hstack([x, y]), (4, 6), (3, 6), "concatenate"),
    "a stretched row": (
        lambda x, y: np.broadcast_to(x[0], y.shape),
        (4, 6),
        (4, 5),
        "broadcast_to",
    ),
    "another shape": (lambda x, y: x.reshape(2, -1), (3, 5), (3, 5), "reshape"),
    "an axis that goes": (lambda x, y: x[:1].squeeze(0) + y, (4, 6), (4, 5), "broad"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_nobody_reads_is_refused_where_sizes_do_not_fit(name: str) -> None:
    make, one, other, message = CASES[name]

    def function(x: Any, y: Any) -> Any:
        make(x, y)
        return x * 2

    fused = nfuser.fuse(function)
    np.testing.assert_array_equal(fused(X, Y), X * 2)
    np.testing.assert_array_equal(fused(X[:2], Y[:2]), X[:2] * 2)
    for _ in range(2):
        with pytest.raises(ValueError, match=message) as caught:
            fused(np.ones(one), np.ones(other))
        assert isinstance(caught.value, ShapeError)
        assert "test_unread.py" in str(caught.value)
    assert fused.cache_info().traces == 1


def test_no_element_is_taken_of_an_empty_axis_that_nobody_reads() -> None:
    def function(x: Any, place: Any) -> Any:
        np.take(x, place)
        return x + 1

    fused = nfuser.fuse(function)
    place = np.array([0, 2])
    assert fused(np.ones(3), place).shape == (3,)
    with pytest.raises(AxisError, match="take: axis 0 has size 0"):
        fused(np.ones(0), place)


def test_what_nobody_reads_is_in_no_kernel() -> None:
    def function(x: Any, y: Any) -> Any:
        np.exp(x + y)
        return x * 2

    (kernel,) = nfuser.fuse(function).kernels(X, Y)
    assert "exp" not in kernel.source.partition("def ")[2]
