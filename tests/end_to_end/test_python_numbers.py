# SPDX-License-Identifier: Apache-2.0
"""Python numbers beside arrays and among themselves: answers and errors."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BACKENDS = ("cpu", "interpret")
INTEGERS = {
    "int32": np.array([-(2**31), -1, 0, 5, 2**31 - 1], np.int32),
    "uint8": np.array([0, 5, 255], np.uint8),
    "int64": np.array([-(2**63), -1, 0, 2**63 - 1], np.int64),
    "uint64": np.array([0, 5, 2**63, 2**64 - 1], np.uint64),
}
NUMBERS = (5, 2**40, -1, 2**31, 2**63, 2**64, -(2**31) - 1, -(2**63), 10**30, -(10**30))
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ONES = np.ones(2)


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """Return the result as lists with its dtype, or the kind of error."""
    try:
        found = np.asarray(function(*args))
    except (ArithmeticError, ValueError) as error:
        kinds = (ZeroDivisionError, OverflowError, ValueError)
        return next(kind for kind in kinds if isinstance(error, kind))
    return found.dtype.name, found.tolist()


def assert_alike(
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    backend: str | None = None,
) -> Any:
    fused = nfuser.fuse(function, backend=backend)
    with np.errstate(all="ignore"):
        for args in calls:
            expected = outcome(function, *args)
            assert outcome(fused, *args) == expected, args
    return fused


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_comparison_with_any_integer_is_by_value(dtype: str, backend: str) -> None:
    x = INTEGERS[dtype]

    def function(x: Any, n: Any) -> Any:
        found = [getattr(operator, name)(x, n) for name in COMPARISONS]
        found += [getattr(operator, name)(n, x) for name in COMPARISONS]
        return sum(f * np.int32(1 << k) for k, f in enumerate(found))

    fused = assert_alike(function, [(x, n) for n in NUMBERS], backend)
    assert fused.cache_info().traces == 1
    for n in NUMBERS:
        assert_alike(lambda x, n=n: function(x, n), [(x,)], backend)


def test_a_comparison_with_a_size_is_by_value() -> None:
    x = np.arange(256, dtype=np.uint8).repeat(2)
    assert_alike(lambda x: (x < x.shape[0], x == x.shape[0] - 600)[0], [(x,), (x[:9],)])
    assert_alike(lambda x: x > x.shape[0] - 600, [(x,), (x[:9],)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_clip_holds_to_the_limits_of_the_dtype(dtype: str) -> None:
    x = INTEGERS[dtype]
    for low in (*NUMBERS, None):
        calls = [(x, low, high) for high in NUMBERS]
        assert_alike(np.clip, calls)
    pairs = [(-1, 3), (0, 300), (-(10**30), 10**30), (None, 2**40), (2**64, None)]
    for low, high in pairs:
        assert_alike(lambda x, low=low, high=high: x.clip(low, high), [(x,)])


def test_clip_of_one_dtype_between_those_of_another() -> None:
    x, high = INTEGERS["uint8"], np.array([-5, 3, 999], np.int16)
    assert_alike(lambda x, y: np.clip(x, -1, y), [(x, high)])
    assert_alike(lambda x, y: np.clip(x, y, 300), [(x, high)])
    assert_alike(lambda x, y, n: np.clip(x, y, n), [(x, high, 300), (x, high, 200)])
    assert_alike(lambda x, y, n: np.clip(x, y, n), [(x, high * 0.5, 300)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_where_wraps_what_the_dtype_cannot_hold(dtype: str) -> None:
    x = INTEGERS[dtype]
    fused = assert_alike(lambda x, n: np.where(x > 1, x, n), [(x, n) for n in NUMBERS])
    assert fused.cache_info().traces == 1
    assert_alike(lambda x, n: np.where(x > 1, n, 0), [(x, n) for n in NUMBERS])
    for n in NUMBERS:
        assert_alike(lambda x, n=n: np.where(x > 1, n, x), [(x,)])


def test_an_integer_beyond_all_floats_is_refused() -> None:
    assert_alike(lambda x, n: x + n, [(ONES, 5), (ONES, 10**400), (ONES, 10**300)])


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "1 / n": lambda x, n: x + 1 / n,
    "1.0 / n": lambda x, n: x + 1.0 / n,
    "1 // n": lambda x, n: x + 1 // n,
    "1.5 // n": lambda x, n: x + 1.5 // n,
    "1 % n": lambda x, n: x + 1 % n,
    "1.5 % n": lambda x, n: x + 1.5 % n,
    "n / 0": lambda x, n: x + n / 0,
    "n // 0.0": lambda x, n: x + n // 0.0,
    "n % 0": lambda x, n: x + n % 0,
    "n / n": lambda x, n: x + n / n,
    "n / size": lambda x, n: x + n / (x.shape[0] - 2),
    "of an expression": lambda x, n: x + 1 / (n * 2.0 - 4),
    "divmod(7, n)": lambda x, n: x + divmod(7, n)[1],
    "n ** -1": lambda x, n: x + n**-1,
    "n ** -0.5": lambda x, n: x + (n**-0.5).real,
    "n ** 0.5": lambda x, n: x + n**0.5,
    "too large": lambda x, n: x + (n + 10.0) ** 400,
    "by an array": lambda x, n: x / n,
    "NumPy's": lambda x, n: x + np.divide(1, n),
    "of NumPy's scalar": lambda x, n: x + np.float64(1) / n,
    "n / 4": lambda x, n: x + n / 4,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_python_numbers_end_as_pythons(name: str) -> None:
    function = OPERATIONS[name]
    assert_alike(function, [(ONES, n) for n in (4, 0, 4, 0, -1, 2, 4)])
    assert_alike(function, [(ONES, n) for n in (4.0, 0.0, -0.0, 4.0, -1.0, 2.0, 0.0)])
    assert_alike(function, [(ONES, n) for n in (0, 4)])


def test_a_division_that_succeeds_traces_once() -> None:
    fused = assert_alike(lambda x, n: x / n + 1 / n, [(ONES, n) for n in (2.0, 4.0)])
    assert fused.cache_info().traces == 1


def test_the_error_is_pythons_and_may_be_caught() -> None:
    def function(x: Any, n: float) -> Any:
        try:
            return x * (1 / n)
        except ZeroDivisionError:
            return x - 1

    calls = [(ONES, n) for n in (2.0, 0.0, 4.0, 0.0)]
    assert assert_alike(function, calls).cache_info().traces == 2
    with pytest.raises(ZeroDivisionError, match="float division by zero"):
        nfuser.fuse(lambda x, n: x * (1.0 / n))(ONES, 0.0)


TEXTS: dict[str, Callable[[Any], str]] = {
    "str": str,
    "repr": repr,
    "format": lambda n: f"{n}",
    "format with digits": lambda n: f"{n:.2f}",
    "percent": lambda n: "%s" % n,  # noqa: UP031 (the operator is what is tested)
    "of an expression": lambda n: str(n * 2 + 1),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_a_number_is_the_numbers(name: str) -> None:
    text = TEXTS[name]

    def function(x: Any, n: Any) -> Any:
        return x * hash_of(text(n))

    for numbers in ((2.5, 0.1, -0.0, 0.0, 2.5), (7, -8, 7), (np.float32(2.5),)):
        assert_alike(function, [(ONES, n) for n in numbers])


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode()[:6])


def test_text_of_a_size_is_the_sizes() -> None:
    fused = nfuser.fuse(lambda x: x * len(str(x.shape)) + float(str(x.shape[0])))
    for count in (2, 10, 2):
        np.testing.assert_array_equal(
            fused(np.ones(count)), np.full(count, len(str((count,))) + count)
        )


def test_text_of_an_array_says_that_it_is_one() -> None:
    seen: list[str] = []

    def function(x: Any) -> Any:
        seen.append(f"{x} {x!r} {x.sum()}")
        return x

    nfuser.fuse(function)(ONES)
    array = "<traced float64 array of 1 dimensions>"
    assert seen == [f"{array} {array} <traced float64 array of 0 dimensions>"]


def test_shifts_and_powers_with_an_open_integer_are_pythons() -> None:
    def function(x: Any, n: int) -> Any:
        return x + (5 << n) + (500 >> n) + pow(n + 1, 2, 3) + divmod(7, n + 1)[0]

    assert_alike(function, [(ONES, n) for n in (0, 3, -1)])
    assert_alike(lambda x, n: x + (n << (n - 1)), [(ONES, n) for n in (3, 0)])


def test_a_number_as_exponent_takes_the_root_as_numpy_does() -> None:
    x = np.array([-np.inf, -0.0, 0.0, 2.25, np.inf, np.nan, -1.0])
    fused = nfuser.fuse(lambda x, p: x**p)
    for p in (0.5, 2.0, 0.25, -0.5):
        with np.errstate(all="ignore"):
            wanted = x**p
        np.testing.assert_allclose(fused(x, p), wanted, rtol=1e-15)
        assert (np.signbit(fused(x, p)) == np.signbit(wanted))[:5].all()


@pytest.mark.parametrize("number", [2049, 65519, 65520, 70000, 10**30, -(10**30)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_integer_beside_halves_is_rounded_to_one_first(
    number: int, backend: str
) -> None:
    x = np.array([0, 1, -2, 65504, np.inf], np.float16)
    names = ("add", "sub", "mul", "truediv", "lt", "eq")

    def function(x: Any, n: Any) -> Any:
        found = [getattr(operator, name)(x, n) for name in names]
        return (*found, operator.truediv(n, x))

    with np.errstate(all="ignore"):
        expected = function(x, number)
    for one, other in zip(
        nfuser.fuse(function, backend=backend)(x, number), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)
