# SPDX-License-Identifier: Apache-2.0
"""Sines of small angles, and what becomes of large ones among them."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.bound_angles import BOUNDS, MOST, NARROW

FUNCTIONS = (np.sin, np.cos, np.tan)
WIDE = BOUNDS[DType.F64]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("odd", [WIDE, WIDE * 1.5, 1e300, np.inf, -np.inf, np.nan])
def test_one_large_angle_is_as_right_as_the_others(function: Any, odd: float) -> None:
    x = np.random.default_rng(0).uniform(-100, 100, 20000)
    x[9001] = odd
    with np.errstate(invalid="ignore"):
        wanted = function(x)
    np.testing.assert_allclose(nfuser.fuse(function)(x), wanted, rtol=1e-15, atol=0)


def test_angles_are_looked_at_before_anything_is_stored() -> None:
    f = nfuser.fuse(lambda x: np.sin(x * 2))
    x = np.random.default_rng(0).uniform(-10, 10, 5000)
    x[::1000] = 1e200
    wanted = np.sin(x * 2)
    f.bind(x, out=x)()
    np.testing.assert_allclose(x, wanted, rtol=1e-15)


def test_sums_of_sines_choose_too() -> None:
    f = nfuser.fuse(lambda x: np.sin(x).sum(axis=-1))
    x = np.random.default_rng(0).uniform(0, 3, (4, 3000))
    assert "sin_bounded" in f.kernels(x)[0].source
    np.testing.assert_allclose(f(x), np.sin(x).sum(axis=-1), rtol=1e-13)
    x[1, 5] = 1e20
    np.testing.assert_allclose(f(x), np.sin(x).sum(axis=-1), rtol=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "odd", [8192.0, 9000.0, WIDE, WIDE * 1.5, 1e38, np.inf, -np.inf, np.nan]
)
def test_float32_has_two_ways_as_well(function: Any, odd: float) -> None:
    x = np.random.default_rng(0).uniform(-100, 100, 20000).astype("f4")
    x[9001] = odd
    f = nfuser.fuse(function)
    with np.errstate(invalid="ignore"):
        wanted = function(x.astype("f8"))
    np.testing.assert_allclose(f(x), wanted, rtol=1.2e-7, atol=0)
    assert "_bounded" in f.kernels(x)[0].source


@pytest.mark.parametrize("function", FUNCTIONS[:2])
def test_small_float32_angles_stay_in_float32(function: Any) -> None:
    x = np.random.default_rng(4).uniform(-9e3, 9e3, 30_000).astype("f4")
    x[:9000] = np.linspace(-NARROW[DType.F32] / 2, NARROW[DType.F32] / 2, 9000)
    f = nfuser.fuse(function)
    assert f"{function.__name__}_narrow" in f.kernels(x)[0].source
    np.testing.assert_allclose(f(x), function(x.astype("f8")), rtol=1.2e-7, atol=0)


def test_an_angle_that_grows_in_the_loop_is_not_within_one_of_zero() -> None:
    def grown(x: Any) -> Any:
        small = np.sin(x)
        return np.sin(small) + np.sin(small * 3) + np.cos(small + 1)

    x = np.linspace(-6, 6, 1000)
    np.testing.assert_allclose(nfuser.fuse(grown)(x), grown(x), rtol=1e-13, atol=1e-15)


def test_sums_of_narrow_sines_choose_in_each_piece() -> None:
    f = nfuser.fuse(lambda x: np.cos(x).sum(axis=-1))
    x = np.random.default_rng(0).uniform(0, 3, (4, 30_000)).astype("f4")
    for odd in (1.0, 1e20):
        x[1, 5] = x[2, 29_999] = x[3, 15_000] = odd
        wanted = np.cos(x.astype("f8")).sum(axis=-1)
        np.testing.assert_allclose(f(x), wanted, rtol=1e-5)


def test_a_chain_of_sines_is_not_computed_to_learn_its_angles() -> None:
    def chain(x: Any, count: int) -> Any:
        for _ in range(count):
            x = x + 0.5 * np.sin(x)
        return x

    x = np.linspace(0, 3, 100)
    short, long, very_long = (
        nfuser.fuse(lambda x, n=n: chain(x, n)).kernels(x)[0].source
        for n in (2, 8, MOST + 1)
    )
    assert "sin_bounded" in short
    assert (long.count("= sin(t"), long.count("= sin_bounded(t")) == (8, 8)
    # In one version is compiled what takes long to compile.
    assert "sin_bounded" not in very_long


def _sines(source: str) -> tuple[int, int]:
    code = source.partition("def ")[2]
    known = code.count("= sin_bounded(") + code.count("= sin_narrow(")
    return code.count("= sin("), known


def test_a_sine_is_a_small_angle_itself() -> None:
    x = np.random.default_rng(1).uniform(-9, 9, 5000).astype("f4")
    f = nfuser.fuse(lambda x: np.sin(np.sin(x)))
    # What is looked at is the first angle, no sine, and the second is always small.
    source = f.kernels(x)[0].source
    assert _sines(source) == (2, 4)
    for odd in (1e30, np.nan, np.inf):
        x[100] = odd
        with np.errstate(invalid="ignore"):
            wanted = np.sin(np.sin(x.astype("f8")))
        np.testing.assert_allclose(f(x), wanted, rtol=2.5e-7)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_only_what_a_chain_of_sines_begins_with_is_looked_at(dtype: str) -> None:
    def chain(u: Any, k: Any) -> Any:
        for _ in range(6):
            u = u + k * np.sin(u)
        return u

    f = nfuser.fuse(chain)
    x = np.random.default_rng(2).uniform(-9, 9, 9000).astype(dtype)
    k = x.dtype.type(0.25)
    source = f.kernels(x, k)[0].source
    assert _sines(source) == (6, 6)
    assert source.partition("def ")[2].count("absolute(") == 2
    rtol = 3e-6 if dtype == "f4" else 1e-13
    for odd in (1.0, 1e15, 2.0**24):
        x[8000] = odd
        wanted = chain(x.astype("f8"), float(k))
        near = np.arange(9000) != 8000
        np.testing.assert_allclose(f(x, k)[near], wanted[near], rtol=rtol, atol=rtol)
        if dtype == "f8":
            np.testing.assert_allclose(f(x, k), wanted, rtol=1e-10)
    large = chain(x, k * 1e20)
    assert np.isfinite(f(x, k * 1e20)).all() == np.isfinite(large).all()


@pytest.mark.parametrize("scale", [1e3, 1e8, 1e30])
def test_what_is_scaled_up_is_an_angle_of_any_size(scale: float) -> None:
    x = np.random.default_rng(3).uniform(-9, 9, 5000)
    wanted = np.sin(np.sign(np.sin(x)) * scale)
    by_array = nfuser.fuse(lambda x, y: np.sin(np.sign(np.sin(x)) * y))
    np.testing.assert_allclose(by_array(x, np.full(5000, scale)), wanted, rtol=1e-14)
    fixed = nfuser.fuse(lambda x: np.sin(np.sign(np.sin(x)) * scale))
    np.testing.assert_allclose(fixed(x), wanted, rtol=1e-14)
