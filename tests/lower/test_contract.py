# SPDX-License-Identifier: Apache-2.0
"""Sums of products that a CPU computes in one operation, and those it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.codegen.primitives.cpu_target import has_fma

if TYPE_CHECKING:
    from collections.abc import Callable

N = 1003  # whole vectors, and some left over
RANDOM = np.random.default_rng(5)
A, B, C = (RANDOM.normal(size=N).astype("f4") for _ in range(3))

FUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product first": lambda a, b, c: a * b + c,
    "product last": lambda a, b, c: c + a * b,
    "less a number": lambda a, b, _: a * b - 0.5,
    "less a product": lambda a, b, c: c - a * b,
    "product less": lambda a, b, c: a * b - c,
    "of a square": lambda a, _, c: a * a + c,
}


@pytest.mark.skipif(not has_fma(), reason="the processor has no such instruction")
@pytest.mark.parametrize("name", FUSED)
def test_the_sum_of_a_product_is_rounded_once(name: str) -> None:
    function = FUSED[name]
    found = nfuser.fuse(function)(A, B, C)
    # f64 holds products of f32 exactly, and these sums to far below an ulp of f32.
    once = function(*(x.astype("f8") for x in (A, B, C))).astype("f4")
    np.testing.assert_array_equal(found, once)
    assert not np.array_equal(found, function(A, B, C))


def test_the_difference_of_equal_products_is_zero() -> None:
    @nfuser.fuse
    def function(a: Any, b: Any) -> Any:
        return a * b - b * a, (a + 1j * b) * (a - 1j * b)

    zero, size = function(A, B)
    np.testing.assert_array_equal(zero, np.zeros(N, "f4"))
    np.testing.assert_array_equal(size.imag, np.zeros(N, "f4"))


def test_a_product_that_is_read_twice_is_one_number() -> None:
    def function(a: Any, b: Any, c: Any) -> Any:
        product = a * b
        return product + c, product

    found = nfuser.fuse(function)(A, B, C)
    np.testing.assert_array_equal(found, function(A, B, C))


def test_integers_wrap_as_before() -> None:
    x = np.arange(N, dtype="i4") * 1_000_003

    @nfuser.fuse
    def function(a: Any) -> Any:
        return a * a + a

    found = function(x)
    np.testing.assert_array_equal(found, x * x + x)


def test_sums_of_columns_take_products_as_they_are() -> None:
    x, y = (RANDOM.normal(size=(64, 50)) for _ in range(2))

    @nfuser.fuse
    def function(a: Any, b: Any) -> Any:
        return (a * b).sum(0)

    found = function(x, y)
    np.testing.assert_allclose(found, (x * y).sum(0), rtol=1e-13, atol=1e-14)
