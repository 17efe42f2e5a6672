# SPDX-License-Identifier: Apache-2.0
"""Squared deviations from the mean are moments, in whatever words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.schedule.reduction.rewritten.find_moments import find_moments
from tests.hand_built import Hand

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _kept(x: Array) -> Array:
    return ((x - x.mean(axis=(0, 2), keepdims=True)) ** 2).mean(axis=(0, 2))


def _inserted(x: Array) -> Array:
    count = x.shape[0] * x.shape[2]
    centred = x - (x.sum(axis=(0, 2)) / count)[:, None]
    return (centred * centred).sum(axis=(0, 2)) / count


def _inserted_twice(x: Array) -> Array:
    mean = x.sum(axis=(0, 2)) / (x.shape[0] * x.shape[2])
    centred = x.swapaxes(0, 1) - mean[:, None, None]
    return (centred * centred).sum(axis=(1, 2)) / (x.shape[0] * x.shape[2])


def _named(x: Array) -> Array:
    return x.var(axis=(0, 2))


def _along_the_first(x: Array) -> Array:
    return np.square(x - x.mean(axis=0)).sum(axis=0) / x.shape[0]


def _steps(function: Callable[[Array], Array], x: Array) -> list[str]:
    """Return the lines of the kernel that reads ``x``, without names and numbers."""
    source = str(nfuser.fuse(function, backend="interpret").kernels(x)[0].source)
    body = source.partition("launch_bounds")[2].partition("):")[2]
    return sorted(re.sub(r"\b[a-z]+\d*(_\d+)? = |\d+", "", body).splitlines())


def test_a_variance_is_one_kernel_in_three_spellings() -> None:
    x = np.empty((64, 5, 4096), np.float32)
    kept, inserted, named = (_steps(f, x) for f in (_kept, _inserted, _named))
    assert kept == named
    assert inserted == named


@pytest.mark.parametrize(
    "function", [_kept, _inserted, _inserted_twice, _along_the_first]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_the_variance(function: Callable[[Array], Array], dtype: str) -> None:
    drawn = np.random.default_rng(0).standard_normal((7, 5, 6))
    x = (drawn + 100).astype(dtype)
    found = nfuser.fuse(function)(x)
    wanted = function(x.astype(np.longdouble))
    np.testing.assert_allclose(found, wanted.astype(dtype), rtol=2e-6)


def test_deviations_from_anything_else_stay_sums() -> None:
    hand = Hand()
    x = hand.argument(2)
    other = hand.expand_dims(hand.reduce(ReduceOp.MAX, x, 1), 1)
    centred = hand.point("subtract", x, other)
    squares = hand.point("multiply", centred, centred)
    fusion = hand.fusion(hand.reduce(ReduceOp.SUM, squares, 1))
    assert find_moments(fusion) is fusion
