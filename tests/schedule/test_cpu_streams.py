# SPDX-License-Identifier: Apache-2.0
"""A CPU kernel walks through several places of memory only where it waits for it."""
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

CASES: dict[str, tuple[Any, bool]] = {
    "a copy": (lambda x, y: x * 1, True),
    "two arrays": (lambda x, y: x + y, True),
    "a part": (lambda x, y: x[1:-1] * y[2:], True),
    "neighbours": (lambda x, y: x[:-2] + x[1:-1] + x[2:], False),
    "a difference": (lambda x, y: y[1:] * (x[1:] - x[:-1]), False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_reads_neighbours_goes_along_one_place(name: str) -> None:
    function, side_by_side = CASES[name]
    x, y = np.random.default_rng(5).random((2, 20_011))
    fused = nfuser.fuse(function)
    np.testing.assert_array_equal(fused(x, y), function(x, y))
    (kernel,) = fused.kernels(x, y)
    assert ("streams=" in str(kernel.schedule)) is side_by_side


FOLDS: dict[str, tuple[Any, tuple[int, ...], bool]] = {
    "all elements": (lambda x: x.sum(), (3000, 300), False),
    "a place among all": (lambda x: x.argmax(), (900_000,), False),
    "columns of whole rows": (lambda x: x.max(0), (3000, 300), False),
    "columns of narrow rows": (lambda x: x.max(0), (40_000, 20), True),
    "many sums of each column": (lambda x: (x.mean(0), x.var(0)), (900, 1000), True),
    "columns of a part of rows": (lambda x: x.max(0), (300, 9000), True),
}


@pytest.mark.parametrize("name", FOLDS)
def test_pieces_that_follow_one_another_are_gone_through_one_by_one(name: str) -> None:
    function, shape, side_by_side = FOLDS[name]
    x = np.random.default_rng(5).random(shape, "f4")
    fused = nfuser.fuse(function)
    for found, wanted in zip(*map(np.atleast_1d, (fused(x), function(x))), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
    (kernel,) = fused.kernels(x)
    assert ("streams=" in str(kernel.schedule)) is side_by_side
