# SPDX-License-Identifier: Apache-2.0
"""A row that one traced integer names is a view, outside of loops, too."""

# What a traced function is given, and gives, has no static type.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser


def a_row_by_an_element(u: Any, p: Any) -> Any:
    row = u[p[0]]
    row *= 5
    return u.sum()


def an_item_of_a_row(u: Any, p: Any) -> Any:
    u[p[0]][1] = 5
    u[p[1], 1:][1] = 7
    return u.sum()


def rows_by_elements(u: Any, p: Any) -> Any:
    for k in p:
        row = u[k]
        row *= 5
    return u.sum()


def by_what_a_loop_counted(u: Any, p: Any) -> Any:
    for k in range(len(u) - 2):
        u[0, k % 2] += 1
    np.negative(u[:, k], out=u[:, k])
    u[k].fill(3)
    return u.sum()


def a_row_that_is_written_later(u: Any, p: Any) -> Any:
    row = u[p[0]]
    u[:] = 2
    return row * 1


def by_an_array_without_axes(u: Any, p: Any) -> Any:
    row = u[p.max(keepdims=True).reshape(())]
    row += 1
    return row


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize(
    "function",
    [
        *(a_row_by_an_element, an_item_of_a_row, rows_by_elements),
        *(by_what_a_loop_counted, a_row_that_is_written_later),
        by_an_array_without_axes,
    ],
)
def test_a_row_that_a_number_names_is_a_view(function: Any, backend: str) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for n in (6, 6, 5):
        p = np.array([1, n - 2])
        one = np.arange(n * 4.0).reshape(n, 4)
        other = one.copy()
        np.testing.assert_array_equal(fused(other, p), function(one, p))
        np.testing.assert_array_equal(other, one)
