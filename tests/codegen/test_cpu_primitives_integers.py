# SPDX-License-Identifier: Apache-2.0
"""Integer arithmetic, shifts, bits and casts on the CPU against NumPy."""

# Numba, mpmath and SciPy carry few types.
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

from nfuser.codegen.primitives import cpu
from tests.cpu_harness import Array, apply, compile_kernel

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = ("bool", *INTEGERS, "float32", "float64")

NUMPY: dict[str, Any] = {
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
}
BINARY = [
    "add",
    "subtract",
    "multiply",
    "floor_divide",
    "remainder",
    "fmod",
    "gcd",
    "left_shift",
    "right_shift",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "bit_and",
    "bit_or",
    "bit_xor",
]
UNARY = ("negative", "absolute", "sign", "invert")


def extremes(dtype: str) -> Array:
    if dtype == "bool":
        return np.array([False, True])
    limits = np.iinfo(dtype)
    near = [0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 63, 64, 65, 100]
    numbers = {limits.min, limits.min + 1, limits.max - 1, limits.max, *near}
    numbers |= {-n for n in near} if limits.min < 0 else set()
    return np.array(sorted(n for n in numbers if limits.min <= n <= limits.max), dtype)


def pairs(dtype: str) -> tuple[Array, Array]:
    numbers = extremes(dtype)
    a, b = np.meshgrid(numbers, numbers)
    return a.ravel().copy(), b.ravel().copy()


def quietly(function: Any, *operands: Any) -> Array:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*operands)


@pytest.mark.parametrize(("name", "dtype"), list(product(BINARY, INTEGERS)))
def test_binary_is_that_of_numpy(name: str, dtype: str) -> None:
    a, b = pairs(dtype)
    wanted = quietly(NUMPY.get(name) or getattr(np, name), a, b)
    got = apply(name, a, b)
    wrong = got != wanted
    assert not wrong.any(), list(zip(a[wrong], b[wrong], got[wrong], strict=True))[:5]


@pytest.mark.parametrize(("name", "dtype"), list(product(UNARY, INTEGERS)))
def test_unary_is_that_of_numpy(name: str, dtype: str) -> None:
    numbers = extremes(dtype)
    wanted = quietly(getattr(np, name), numbers)
    np.testing.assert_array_equal(apply(name, numbers), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_gcd_of_all_small_integers_is_that_of_numpy(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1).astype(dtype)
    a, b = (grid.ravel().copy() for grid in np.meshgrid(numbers, numbers))
    np.testing.assert_array_equal(apply("gcd", a, b), np.gcd(a, b))


@pytest.mark.parametrize("dtype", ["int32", "uint64"])
def test_gcd_of_what_shares_large_factors(dtype: str) -> None:
    random = np.random.default_rng(4)
    factors = [random.integers(1, 1 << 10, 5000).astype(dtype) for _ in range(3)]
    a, b = factors[0] * factors[1] ** 2, factors[2] * factors[1] ** 2
    np.testing.assert_array_equal(apply("gcd", a, b), np.gcd(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_power_wraps_as_numpy_does(dtype: str) -> None:
    a, b = pairs(dtype)
    a, b = a[b >= 0], b[b >= 0]
    np.testing.assert_array_equal(apply("power", a, b), quietly(np.power, a, b))


@pytest.mark.parametrize("name", ["maximum", "minimum", "bit_and", "bit_or", "bit_xor"])
def test_bools(name: str) -> None:
    a, b = pairs("bool")
    wanted = (NUMPY.get(name) or getattr(np, name))(a, b)
    np.testing.assert_array_equal(apply(name, a, b), wanted)


def test_invert_of_bools() -> None:
    numbers = extremes("bool")
    np.testing.assert_array_equal(apply("invert", numbers), ~numbers)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_index_division(dtype: str) -> None:
    top = np.iinfo(dtype).max
    a = np.array([0, 1, 6, 7, 8, top, top], dtype)
    b = np.array([1, 7, 7, 7, 7, 1, top], dtype)
    np.testing.assert_array_equal(apply("udiv", a, b), a // b)
    np.testing.assert_array_equal(apply("urem", a, b), a % b)


def short_name(dtype: str) -> str:
    if dtype == "bool":
        return dtype
    return dtype[0] + "".join(c for c in dtype if c.isdigit())


def cast_samples(source: str, target: str) -> Array:
    """Return numbers of the source, those a cast to the target leaves defined."""
    if not source.startswith("float"):
        return extremes(source)
    numbers = np.array([0, 0.25, 0.99, 1, 1.5, 2.5, 100.7, 126.9], source)
    if target == "bool" or target.startswith("float"):
        edges = np.array([np.nan, np.inf, 1e-40, 3e38, 1e300], np.float64)
        numbers = np.concatenate([numbers, quietly(edges.astype, source)])
    elif np.iinfo(target).bits > 16:
        limits = np.iinfo(target)
        below = np.nextafter(np.array(limits.max, source), np.array(0, source))
        numbers = np.append(numbers, below)
    if target in UNSIGNED:
        return numbers
    return np.concatenate([numbers, -numbers])


@pytest.mark.parametrize(("source", "target"), list(product(DTYPES, DTYPES)))
def test_casts_are_those_of_numpy(source: str, target: str) -> None:
    numbers = cast_samples(source, target)
    got = apply("to_" + short_name(target), numbers, to=target)
    np.testing.assert_array_equal(got, quietly(numbers.astype, target))


@pytest.mark.parametrize("target", ["int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_casts_out_of_range_give_the_lowest_integer(source: str, target: str) -> None:
    numbers = np.array([np.nan, np.inf, -np.inf, 1e19, -1e19], source)
    got = apply("to_" + short_name(target), numbers, to=target)
    assert (got == np.iinfo(target).min).all()


def test_operands_of_two_dtypes_are_refused() -> None:
    maximum, load, store = cpu.maximum, cpu.load, cpu.store

    def kernel(n, x, y, out):
        for i in range(n):
            store(out, i, maximum(load(x, i), load(y, i)))

    with pytest.raises(TypingError):
        compile_kernel(kernel, "float32", "float64", "float64")


def test_literals_take_the_type_of_the_other_operand() -> None:
    add, load, store = cpu.add, cpu.load, cpu.store

    def kernel(n, x, out):
        for i in range(n):
            store(out, i, add(load(x, i), 3))

    x = np.array([1, 127], np.int8)
    out = np.empty_like(x)
    compile_kernel(kernel, "int8", "int8")(2, x, out)
    assert out.tolist() == [4, -126]


def test_select_takes_every_dtype() -> None:
    select, load, store = cpu.select, cpu.load, cpu.store
    less = cpu.load_bool

    def kernel(n, c, x, y, out):
        for i in range(n):
            store(out, i, select(less(c, i), load(x, i), load(y, i)))

    condition = np.array([True, False, True])
    for dtype in (*INTEGERS, "float32", "float64"):
        x, y = np.array([1, 2, 3], dtype), np.array([4, 5, 6], dtype)
        out = np.empty_like(x)
        compile_kernel(kernel, "bool", dtype, dtype, dtype)(3, condition, x, y, out)
        assert out.tolist() == [1, 5, 3]


def test_type_names_are_numba_types() -> None:
    for dtype in (*INTEGERS, "float32", "float64"):
        assert getattr(cpu, short_name(dtype)) == getattr(types, dtype)
