# SPDX-License-Identifier: Apache-2.0
"""ldexp is exact, and rounds once, where its results are subnormal too."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from tests.cpu_harness import apply

BF16 = ml_dtypes.bfloat16


def _operands(dtype: Any, span: int, count: int = 20_000) -> tuple[Any, Any]:
    random = np.random.default_rng(8)
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    drawn = random.integers(0, np.iinfo(bits).max, count, bits, endpoint=True)
    x = drawn.view(dtype)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, np.nan], dtype)
    x = np.concatenate([np.where(np.isnan(x), dtype(1), x), np.tile(edges, 50)])
    n = random.integers(-span, span, x.size)
    n[::97] = random.choice(
        [-span, span, 0, 5000, -5000, 2**40, -(2**40)], n[::97].size
    )
    return x, n


def _equal(found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    np.testing.assert_array_equal(found, wanted)


def _wanted(x: Any, n: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.ldexp(x, np.clip(n, -5000, 5000).astype(np.int32))


@pytest.mark.parametrize(("dtype", "span"), [(np.float32, 300), (np.float64, 2200)])
def test_the_primitive_of_the_cpu(dtype: Any, span: int) -> None:
    x, n = _operands(dtype, span)
    _equal(apply("ldexp", x, n.astype(dtype)), _wanted(x, n))


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("dtype", "span"), [(np.float16, 45), (np.float32, 300), (np.float64, 2200)]
)
def test_numpys_function_traces(dtype: Any, span: int, backend: Any) -> None:
    x, n = _operands(dtype, span, 2000)
    fused = nfuser.fuse(lambda x, n: np.ldexp(x, n), backend=backend)
    _equal(fused(x, n), _wanted(x, n))


def test_bfloat16_takes_exponents_that_it_does_not_hold() -> None:
    x = np.array([2.0**-133, 1.0, 2.0**127], BF16)
    for n in (257, -257, 131, -131):
        found = nfuser.fuse(lambda x, n=n: np.ldexp(x, n))(x)
        wanted = [math.ldexp(float(v), n) if n < 0 else float(v) * 2.0**n for v in x]
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(found, np.array(wanted).astype(BF16))


def test_numbers_alone_are_worked_out_on_the_host() -> None:
    fused = nfuser.fuse(lambda x, n: x * np.ldexp(0.75, n))
    np.testing.assert_array_equal(fused(np.ones(3), 4), np.full(3, 12.0))


def test_what_is_no_exponent_is_refused() -> None:
    x = np.ones(3)
    for n in (x, x.astype(np.uint64)):
        with pytest.raises(TypeError, match="ldexp takes integers up to int64"):
            nfuser.fuse(lambda x, n: np.ldexp(x, n))(x, n)


def test_a_python_integer_beside_an_array_fits_32_bits_as_numpys() -> None:
    fused = nfuser.fuse(lambda x, n: np.ldexp(x, n))
    x, far = np.array([1.5, -2.0]), 2**31
    with pytest.raises(OverflowError, match="out of bounds for int32"):
        fused(x, far)
    assert list(fused(x, np.int64(far))) == [np.inf, -np.inf]
    assert fused(1.5, far) == np.inf
