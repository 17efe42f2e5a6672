# SPDX-License-Identifier: Apache-2.0
"""Numbers that callers pass, and what is worked out of them, in native calls."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.device.native.shared import is_as_expected

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not is_as_expected(), reason="no native calls here")

X = np.linspace(-3.0, 3.0, 100)

FORMULAS: dict[str, Callable[..., Any]] = {
    "quotient": lambda x, s, t: x * (s / t),
    "square": lambda x, s, t: x * s**2 + t,
    "inverse": lambda x, s, t: x * (1.0 / (2 * s * t)),
    "negative power": lambda x, s, t: x * s**-2 + t,
    "power of two numbers": lambda x, s, t: x * s**t,
    "root": lambda x, s, t: x * s**0.5 - t,
    "floored": lambda x, s, t: x * (s // t),
    "remainder": lambda x, s, t: x * (s % t),
    "difference below": lambda x, s, t: x / (s - t),
    "turned round": lambda x, s, t: x / -(s / t),
    "power below": lambda x, s, t: x * (t / s**3),
}
NUMBERS = (2.0, 3.5, -1.5, 0.0, -0.0, 1e-300, 1e200, -1e200, math.inf, math.nan, 1.0)


def _ends(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a call gives, or the class of what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except ArithmeticError as error:
            return type(error)


def _same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    else:
        assert found is expected


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("kind", [float, np.float64], ids=["float", "float64"])
def test_arithmetic_of_numbers_is_native(formula: str, kind: Any) -> None:
    function = FORMULAS[formula]
    fused = nfuser.fuse(function)
    for k in range(20):
        s, t = kind(1.25 + k), kind(3.5 + k / 7)
        _same(fused(X, s, t), function(X, s, t))
    assert fused.native_calls >= 17


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("kind", [float, np.float64], ids=["float", "float64"])
def test_arithmetic_of_numbers_ends_as_python_and_numpy_end(
    formula: str, kind: Any
) -> None:
    function = FORMULAS[formula]
    fused = nfuser.fuse(function)
    for _ in range(4):
        fused(X, kind(2.5), kind(1.5))
    for s in NUMBERS:
        for t in NUMBERS:
            args = (X, kind(s), kind(t))
            _same(_ends(fused, *args), _ends(function, *args))


SCALARS = (
    *(np.float64, np.float32, np.int64, np.int32, np.int16, np.int8, np.uint64),
    *(np.uint32, np.uint16, np.uint8, np.bool, np.longlong, np.ulonglong),
)


@pytest.mark.parametrize("kind", SCALARS)
def test_scalars_of_numpy_are_native_and_keep_their_dtype(kind: Any) -> None:
    def product(x: Any, s: Any) -> Any:
        return x * s

    for dtype in (np.float32, np.int16, np.float64):
        fused = nfuser.fuse(product)
        x = np.arange(1, 20).astype(dtype)
        for value in (3, 1, 0, 5, 7, 1):
            _same(fused(x, kind(value)), product(x, kind(value)))
        assert fused.native_calls >= 3


def test_the_largest_and_least_integers_of_numpy_are_passed_whole() -> None:
    fused = nfuser.fuse(lambda x, s: x + s)
    zero = np.zeros(4, np.uint64)
    for value in (1, 2, 3, 2**63 - 1, 2**63, 2**64 - 1, 5):
        _same(fused(zero, np.uint64(value)), zero + np.uint64(value))
    for kind in (np.int8, np.int16, np.int32, np.int64):
        limits = np.iinfo(kind)
        zero = np.zeros(4, np.int64)
        for value in (1, 2, limits.min, limits.max, -1):
            _same(fused(zero, kind(value)), zero + kind(value))


def test_a_float_and_a_float64_promote_in_their_own_ways() -> None:
    fused = nfuser.fuse(lambda x, s: x * s)
    x = np.ones(5, np.float32)
    for _ in range(4):
        assert fused(x, 2.0).dtype == np.float32
        assert fused(x, np.float64(2.0)).dtype == np.float64
        assert fused(x, np.float32(2.0)).dtype == np.float32
    assert fused.native_calls >= 6


def test_integers_past_64_bits_and_narrow_ones_are_refused_as_before() -> None:
    fused = nfuser.fuse(lambda x, n: x + 3 * n)
    x = np.zeros(4, np.int8)
    for n in (1, 2, 3, 4):
        _same(fused(x, n), x + 3 * n)
    assert fused.native_calls >= 1
    for n in (43, 2**62, 2**64, -(2**70)):
        with pytest.raises(OverflowError):
            fused(x, n)
    _same(fused(x, 42), x + 3 * 42)


def test_sums_and_products_of_integers_are_native() -> None:
    fused = nfuser.fuse(lambda x, m, n: x * (m * n - 3 * m + 1) + (m + n) // 7)
    for k in range(12):
        m, n = k + 1, 3 * k + 2
        _same(fused(X, m, n), X * (m * n - 3 * m + 1) + (m + n) // 7)
    assert fused.native_calls >= 8


INDEXED: dict[str, Callable[..., Any]] = {
    "a column": lambda x, k: x[:, k] * 2,
    "a row": lambda x, k: x[k] * 2,
    "the row before": lambda x, k: x[k - 1] + x[k],
    "an element": lambda x, k: x[3, k] + x[k, 3],
    "a row further on": lambda x, k: x[k + np.int8(2) * k],
    "a window": lambda x, k: x[:, k : k + 3].sum(axis=1),
    "rolled": lambda x, k: np.roll(x, k, axis=1) * 2,
}


@pytest.mark.parametrize("formula", INDEXED)
@pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8], ids=str)
def test_integers_that_index_are_native_and_compile_nothing(
    formula: str, kind: Any
) -> None:
    function = INDEXED[formula]
    fused = nfuser.fuse(function)
    x = np.arange(160.0 * 160).reshape(160, 160)
    for k in (3, 1, 2, 5, 4):
        np.testing.assert_array_equal(fused(x, kind(k)), function(x, k))
    before, compiled = fused.native_calls, fused.cache_info().compiled
    for k in range(6, 40):
        np.testing.assert_array_equal(fused(x, kind(k)), function(x, k))
    assert fused.native_calls - before >= 30
    assert fused.cache_info().compiled == compiled
    assert fused.cache_info().traces <= 3


def test_indices_from_the_end_and_outside_are_as_in_numpy() -> None:
    fused = nfuser.fuse(lambda x, k: x[:, k] * 2)
    x = np.arange(30.0).reshape(3, 10)
    for kind in (int, np.int64):
        for k in (*range(-10, 10), *range(-10, 10), *range(-10, 10)):
            np.testing.assert_array_equal(fused(x, kind(k)), x[:, k] * 2)
        for k in (10, -11, 2**31, -(2**63)):
            with pytest.raises(IndexError, match="out of bounds"):
                fused(x, kind(k))
        narrow = np.arange(3.0).reshape(3, 1)
        for k in (0, -1, 0, -1, 0, -1):
            np.testing.assert_array_equal(fused(narrow, kind(k)), narrow[:, k] * 2)
        with pytest.raises(IndexError, match="out of bounds"):
            fused(narrow, kind(1))
    with pytest.raises(IndexError):
        fused(x, 2**64)
    assert fused.native_calls >= 40


def test_a_bool_is_no_index_after_integers_were() -> None:
    fused = nfuser.fuse(lambda x, k: x[:, k] * 2)
    x = np.arange(30.0).reshape(3, 10)
    for _ in range(4):
        fused(x, 1)
    for flag in (True, np.True_):
        with pytest.raises(nfuser.errors.UnsupportedError):
            fused(x, flag)


def test_packets_of_a_gpu_stay_aligned_whatever_the_index() -> None:
    fused = nfuser.fuse(lambda x, k: x[k : k + 64] * 2, backend="interpret")
    x = np.arange(160, dtype=np.float32)
    for k in (0, 4, 1, 8, 3, 2, 5, 64):
        np.testing.assert_array_equal(fused(x, k), x[k : k + 64] * 2)
