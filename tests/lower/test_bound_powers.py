# SPDX-License-Identifier: Apache-2.0
"""Logarithms and powers of moderate numbers, and what becomes of others among them."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.lower.cpu.bound_powers import MODERATE, MOST, POWERS
from tests.cpu_harness import apply

if TYPE_CHECKING:
    from nfuser.compiler.dtypes import DType

ODD = (0.0, -0.0, -1.5, 1e-310, 5e-324, np.inf, -np.inf, np.nan)
COUNT = 20_000  # two pieces of each of two streams, and what they leave
PLACES = (0, 3, 4500, 8191, 8192, 12_300, 16_400, COUNT - 1)


def _drawn(dtype: str, least: float, most: float) -> Any:
    exponents = np.random.default_rng(0).uniform(np.log2(least), np.log2(most), COUNT)
    return np.exp2(exponents).clip(least, most).astype(dtype)


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, by in MODERATE.items() for kind in by]
)
def test_moderate_numbers_have_the_same_bits_either_way(name: str, kind: DType) -> None:
    ranges, dtype = MODERATE[name][kind], kind.numpy.str
    base = _drawn(dtype, *ranges[0])
    base[:3] = *ranges[0], 1
    given = [base]
    for least, most in ranges[1:]:
        exponent = np.random.default_rng(1).uniform(least, most, COUNT).astype(dtype)
        exponent[:2000] = np.round(exponent[:2000])
        exponent[2000:3000] = 0
        exponent[:2] = most
        given.append(exponent)
    np.testing.assert_array_equal(
        apply(f"{name}_moderate", *given), apply(name, *given)
    )


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_number_is_as_right_as_the_others(odd: float) -> None:
    f = nfuser.fuse(np.log)
    x = _drawn("f8", 0.01, 100)
    assert "_moderate(" in f.kernels(x)[0].source
    for place in PLACES:
        given = x.copy()
        given[place] = odd
        with np.errstate(all="ignore"):
            wanted = np.log(given)
        np.testing.assert_allclose(f(given), wanted, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_one_odd_power_is_as_right_as_the_others(dtype: str) -> None:
    f = nfuser.fuse(lambda x, y: np.power(x, y))
    x = _drawn(dtype, 0.01, 100)
    y = np.random.default_rng(2).uniform(-3, 3, COUNT).astype(dtype)
    assert "power_moderate(" in f.kernels(x, y)[0].source
    for place in PLACES:
        for base, exponent in (
            *((x, 2.5) for x in ODD),
            (-2, 3),
            (9, 400),
            (9, np.nan),
        ):
            left, right = x.copy(), y.copy()
            left[place], right[place] = base, exponent
            with np.errstate(all="ignore"):
                wanted = np.power(left.astype("f8"), right).astype(dtype)
            rtol = 1e-6 if dtype == "f4" else 1e-14
            np.testing.assert_allclose(f(left, right), wanted, rtol=rtol)


@pytest.mark.parametrize("odd", [-2.0, 0.0, 40.0, 1e-300, 1e300])
def test_an_operand_of_several_functions_has_to_suit_all(odd: float) -> None:
    x = _drawn("f8", 0.5, 2)
    x[777] = odd
    for function in (
        lambda x: np.power(x, x),
        lambda x: np.log(x) + np.power(2.5, x),
        lambda x: np.power(2.5, x) + np.log(x),
    ):
        f = nfuser.fuse(function)
        assert "_moderate(" in f.kernels(x)[0].source
        with np.errstate(all="ignore"):
            wanted = function(x)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-13, atol=1e-15)


def test_operands_are_looked_at_before_anything_is_stored() -> None:
    f = nfuser.fuse(lambda x: np.log(x + 1))
    x = _drawn("f8", 0.01, 100)
    x[::1000] = -1
    with np.errstate(divide="ignore"):
        wanted = np.log(x + 1)
    f.bind(x, out=x)()
    np.testing.assert_allclose(x, wanted, rtol=1e-15, atol=1e-15)


def test_sums_of_logarithms_choose_too() -> None:
    f = nfuser.fuse(lambda x: -(x * np.log(x)).sum(axis=-1))
    x = _drawn("f8", 0.1, 2)[:12_000].reshape(4, 3000)
    assert "log_moderate" in f.kernels(x)[0].source
    np.testing.assert_allclose(f(x), -(x * np.log(x)).sum(axis=-1), rtol=1e-12)
    x[2, 2999] = 0
    assert np.isnan(f(x)[2])


def test_no_dear_function_is_computed_to_look_at() -> None:
    x = np.ones(3000)
    for function in (
        lambda x: np.log(np.exp(x) + 1),
        lambda x: np.log(x) * np.sin(x),
        lambda x: sum(np.log(x + k) for k in range(MOST + 1)),
    ):
        assert "_moderate" not in nfuser.fuse(function).kernels(x)[0].source


def test_no_power_of_moderate_numbers_is_extreme() -> None:
    for dtype, ((least, most), (below, above)) in POWERS.items():
        limits: Any = np.finfo(dtype.numpy.str)
        bits = max(-np.log2(least), np.log2(most)) * max(-below, above)
        assert bits < min(-np.log2(limits.tiny), np.log2(limits.max)) - 1
