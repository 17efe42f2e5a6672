# SPDX-License-Identifier: Apache-2.0
"""What lies alike shares a kernel: updates of arrays, results of one shape, borders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.rewrite.beside_numpy import assert_as_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = [(5, 6), (17, 33), (7, 4), (130, 9)]


def updated_together(a: Any, b: Any) -> None:
    change = a[1:-1] * b[1:-1]
    a[1:-1] += change
    b[1:-1] -= change * 2


def each_from_the_other(a: Any, b: Any) -> None:
    """The second statement reads what the first one has left."""
    a[1:-1] += b[1:-1] * 2
    b[1:-1] += a[1:-1] * 3


def swapped(a: Any, b: Any) -> None:
    new = b[1:-1] + 1
    b[1:-1] = a[1:-1] - 1
    a[1:-1] = new


def pushed(a: Any, b: Any) -> None:
    a[1:] += a[:-1] * b[1:]
    b[1:] += b[:-1] * 2


def with_a_sum(a: Any, b: Any) -> Any:
    a += b
    b *= 2
    return (a * b).sum(axis=1), a - b


def of_one_shape(a: Any, b: Any) -> Any:
    """What is folded has one shape, though no axis of one meets one of the other."""
    c = a[1:] - a[:-1] + b[1:]
    return c.T[1:] * 2, c[:, :-1] + 1, c[:, 1:]


def turned(a: Any, b: Any) -> Any:
    """Of a square array rows and columns are as long as each other."""
    c = a[:4, :4] + b[:4, :4].T
    return c * 2, c.T + 1, b[:4, :4].T - 1, a[:4, :4]


def cyclic(a: Any, b: Any) -> None:
    for x in (a, b):
        x[:2] = x[-4:-2]
        x[-2:] = x[2:4]


def borders(a: Any, b: Any) -> Any:
    c = np.zeros_like(a)
    c[0] = a[1] * 2
    c[-1] = b[-2] - 1
    a[0], b[-1] = b[1], c[0]
    return c, a[:2] + b[:2]


@pytest.mark.parametrize(
    "function",
    [
        updated_together,
        each_from_the_other,
        swapped,
        pushed,
        with_a_sum,
        of_one_shape,
        turned,
        cyclic,
        borders,
    ],
)
@pytest.mark.parametrize("shape", SHAPES)
def test_results_are_numpys(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    assert_as_numpy(_returning(function), shape)


def _returning(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(a: Any, b: Any) -> Any:
        found = function(a, b)
        return a * 1 if found is None else found

    return called


def test_several_arrays_are_overwritten_in_one_kernel() -> None:
    def update(a: Any, b: Any, mask: Any) -> None:
        share = mask[1:-1] * 0.5
        a[1:-1] += share * a[1:-1]
        b[1:-1] = np.maximum(0, b[1:-1] - share)

    arrays = np.random.default_rng(7).random((3, 130, 9))
    assert nfuser.fuse(update).explain(*arrays).kernels == 1


def test_borders_that_are_alike_share_kernels() -> None:
    def step(a: Any, b: Any) -> None:
        a += b
        cyclic(a, b)

    a, b = np.random.default_rng(7).random((2, 130, 9))
    # Each border is read before it is overwritten, and that before the next one.
    assert nfuser.fuse(step).explain(a, b).kernels == 1 + 2 * 2


def test_unrelated_results_of_one_shape_share_a_kernel() -> None:
    def both(a: Any, b: Any, row: Any) -> Any:
        total = a + b  # so that both are of one shape
        return np.sqrt(total.sum(axis=1)), a * row[:, None], b - row[:, None]

    a, b = np.random.default_rng(7).random((2, 130, 9))
    assert nfuser.fuse(both).explain(a, b, a[:, 0].copy()).kernels <= 2
