# SPDX-License-Identifier: Apache-2.0
"""``reduce`` and ``accumulate`` of ufuncs give what NumPy's give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import UnsupportedError

RNG = np.random.default_rng(0)
FLOATS = np.where(RNG.random((4, 5)) < 0.2, np.nan, RNG.standard_normal((4, 5)))
TRUTH = RNG.random((4, 5)) < 0.5


def _assert_alike(function: Any, x: Any) -> None:
    for found, wanted in zip(nfuser.fuse(function)(x), function(x), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, 2e-3 if found.dtype == "f2" else 1e-6)


def test_floats_fold_past_what_is_no_number() -> None:
    def function(x: Any) -> Any:
        both = np.fmax.reduce(x), np.fmin.reduce(x, axis=1, keepdims=True)
        return *both, np.fmax.reduce(x, axis=None)

    _assert_alike(function, FLOATS)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "?"])
def test_sums_of_exponentials_fold(dtype: str) -> None:
    def function(x: Any) -> Any:
        return np.logaddexp.reduce(x), np.logaddexp.reduce(x, axis=-1, keepdims=True)

    _assert_alike(function, np.nan_to_num(FLOATS * 3).astype(dtype))


@pytest.mark.parametrize("dtype", ["?", "i4", "f8"])
def test_truth_folds_and_accumulates(dtype: str) -> None:
    def function(x: Any) -> Any:
        folds = np.logical_xor.reduce(x), np.logical_xor.reduce(x, axis=None)
        sums = np.logical_or.accumulate(x), np.logical_and.accumulate(x, axis=1)
        return *folds, *sums

    _assert_alike(function, TRUTH.astype(dtype))


def test_bits_of_bool_fold() -> None:
    def function(x: Any) -> Any:
        either = np.bitwise_or.reduce(x), np.bitwise_and.reduce(x, axis=1)
        return *either, np.bitwise_xor.reduce(x, axis=None)

    _assert_alike(function, TRUTH)
    with pytest.raises(UnsupportedError, match=r"bitwise_or\.reduce"):
        nfuser.fuse(function)(TRUTH.astype(np.int32))
