# SPDX-License-Identifier: Apache-2.0
"""Bounds from below hold for what is computed, and are found where they serve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.lower.folds.lower_bound import least
from nfuser.compiler.rewrite.passes import rewrite
from nfuser.compiler.schedule.reduction.rewritten.expand import expand_moments
from tests.hand_built import settle, traced

if TYPE_CHECKING:
    from collections.abc import Callable


def _powers(x: Any, axis: int, summed: int) -> Any:
    return np.exp(x - x.max(axis=axis, keepdims=True)).sum(axis=summed)


BOUNDED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "powers of what is at most 0": (lambda x: _powers(x, 1, 1), 1.0),
    "of another axis": (lambda x: _powers(x, 0, 1), 0.0),
    "deviation": (lambda x: np.sqrt(x.var(axis=1) + 0.25), 0.5),
    "mean of squares": (lambda x: (x * x).mean(axis=1) + 2.0, 2.0),
    "largest": (lambda x: np.maximum(np.abs(x).max(axis=1), 3.0), 3.0),
    "sum of any": (lambda x: x.sum(axis=1), -math.inf),
    "sum of sizes": (lambda x: abs(x).sum(axis=1), 0.0),
    "product of two": (lambda x: (x * (x + 1.0)).sum(axis=1), -math.inf),
    "difference": (lambda x: abs(x).sum(axis=1) - 1.0, -math.inf),
}


@pytest.mark.parametrize("case", BOUNDED)
def test_no_element_is_less(case: str) -> None:
    function, bound = BOUNDED[case]
    x = np.random.default_rng(0).standard_normal((6, 6), np.float32)
    fusion = rewrite(settle(traced(function, x), x.shape)).fusion
    fusion = expand_moments(fusion, one_pass=False)
    (output,) = fusion.outputs
    assert least(fusion.definition, output) == bound
    assert function(x).min() >= bound


def _shares(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True))


def _normed(x: Any) -> Any:
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-3)


@pytest.mark.parametrize(("function", "scales"), [(_shares, True), (_normed, False)])
def test_rows_are_scaled_where_their_divisor_may_be_tiny(
    function: Callable[[Any], Any], scales: bool
) -> None:
    x = np.random.default_rng(0).standard_normal((3, 64))
    x = (x * 1e-15).astype(ml_dtypes.bfloat16)
    fused = nfuser.fuse(function, backend="interpret")
    wanted = function(x.astype(np.float64))
    np.testing.assert_allclose(fused(x).astype(np.float64), wanted, rtol=2**-7)
    (kernel,) = fused.kernels(x)
    assert "reciprocal_near(" in kernel.source
    assert ("absolute(" in kernel.source) == scales
