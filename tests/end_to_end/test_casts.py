# SPDX-License-Identifier: Apache-2.0
"""A cast to 16 bits rounds, once, whatever it comes from."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser

BACKENDS = ("cpu", "interpret")
HALVES = {np.float16: 10, ml_dtypes.bfloat16: 7}  # digits after the leading one


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", HALVES)
def test_a_double_is_rounded_once(backend: str, target: Any) -> None:
    fused = nfuser.fuse(lambda x: x.astype(target), backend=backend)
    step = 2.0 ** -HALVES[target]
    tie = 1 + step * (np.arange(8) + 0.5)  # halfway between two of ``target``
    above, below = tie * (1 + 2.0**-50), tie * (1 - 2.0**-50)
    floor = (1 + step * np.arange(8)).astype(target)
    ceiling = (1 + step * (np.arange(8) + 1)).astype(target)
    for sign in (1, -1):
        np.testing.assert_array_equal(fused(sign * above), sign * ceiling)
        np.testing.assert_array_equal(fused(sign * below), sign * floor)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-320])
    with np.errstate(over="ignore"):
        expected = edges.astype(np.float32).astype(target).astype(np.float32)
    found = fused(edges).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", HALVES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_number_is_rounded_where_the_program_says_so(
    backend: str, target: Any, kind: Any
) -> None:
    fused = nfuser.fuse(lambda x: x.astype(target).astype(np.float32), backend=backend)
    number = kind(0.7953068)
    assert fused(number) == number.astype(target).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("target", HALVES)
def test_a_captured_number_is_rounded(backend: str, target: Any) -> None:
    third = np.asarray(1 / 3)

    def scaled(x: Any) -> Any:
        return x * np.asarray(third).astype(target).astype(np.float32)

    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(nfuser.fuse(scaled, backend=backend)(x), scaled(x))
