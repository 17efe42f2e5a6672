# SPDX-License-Identifier: Apache-2.0
"""Sizes and run-time numbers: what stays open, and what leaves a guard."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import enum
import functools
import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType, as_dtype
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars.scalar_walk import evaluate
from nfuser.compiler.ir.scalars.symbols import scalar_input, size
from nfuser.compiler.trace import Trace, call_of, trace_function
from nfuser.compiler.trace.standins import host_numbers
from nfuser.errors import ArgumentError
from tests.trace.meaning import rerun, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.scalars.scalar import Scalar

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def trace(function: Callable[..., Any], *args: Any) -> Trace:
    return trace_function(function, call_of(args or (X,)))


def serves(trace: Trace, *arrays: Any) -> bool:
    known: dict[Scalar, int] = {
        size(slot, k): extent
        for slot, array in enumerate(arrays)
        for k, extent in enumerate(array.shape)
    }
    return all(evaluate(g.condition, known) == g.answer for g in trace.guards)


class Level(enum.IntEnum):
    HIGH = 3


class Length(float):
    pass


@pytest.mark.parametrize("number", [Level.HIGH, Length(2.5)])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_what_is_made_of_pythons_numbers_is_not_weak(number: Any, dtype: str) -> None:
    x = np.arange(1, 4).astype(dtype)
    for function in (
        lambda x, n: x * n,
        lambda x, n: n - x,
        lambda x, n: np.where(x > 2, x, n),
        lambda x, _: np.maximum(x, number),
    ):
        found, wanted = nfuser.fuse(function)(x, number), function(x, number)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_arithmetic_on_sizes_leaves_no_guard() -> None:
    def function(x: Any) -> Any:
        n, m = x.shape
        return x * (n * m - 1) // (m + 2) + n / m + (n + m) % 5 + x.size

    found = trace(function)
    assert found.guards == ()
    other = np.ones((3, 5), np.float32)
    np.testing.assert_allclose(rerun(found, [other]), function(other))


def test_sizes_divide_from_below_as_pythons_integers_do() -> None:
    def function(x: Any) -> Any:
        n = x.shape[0]
        return x + -(-n // 3) + -n % 5 + (n - 99) // 4 + (n - 99) % 7

    found = trace(function)
    for count in (1, 2, 3, 7, 98):
        other = np.ones((count, 2), np.float32)
        assert serves(found, other)
        np.testing.assert_allclose(rerun(found, [other]), function(other))
    assert not serves(found, np.ones((100, 2)))


def test_a_float_to_the_power_of_an_integer_stays_open() -> None:
    def function(x: Any, t: int) -> Any:
        return x * (1 - 0.9**t) + pow(-1.5, t) + np.float64(2) ** -t

    fused = nfuser.fuse(function)
    for t in (1, 2, 3, 10, 0, -4):
        np.testing.assert_allclose(fused(X, t), function(X, t), 1e-6)
    assert fused.cache_info().traces == 1
    with pytest.raises(ZeroDivisionError, match="negative power"):
        nfuser.fuse(lambda x, t: x * 0.0**t)(X, -1)
    for base, most in ((10.0, 308), (0.5, -1023), (-1.0, 10**15)):
        powers = nfuser.fuse(lambda x, t, base=base: (x, base**t))
        assert powers(X, 2)[1] == base**2
        np.testing.assert_allclose(powers(X, most)[1], base**most, 1e-12)
    with pytest.raises(OverflowError):
        nfuser.fuse(lambda x, t: x * 10.0**t)(X, 309)


def test_a_number_has_the_class_that_it_has_outside() -> None:
    @functools.singledispatch
    def scaled(n: Any, x: Any) -> Any:
        raise AssertionError(n)

    scaled.register(int, lambda n, x: x * n)
    scaled.register(float, lambda n, x: x / n)

    def function(x: Any, n: Any, r: Any, s: Any) -> Any:
        kinds: Any = (int, float, numbers.Integral, numbers.Real, np.floating)
        given = (n, r, s, n + 1, r * 2, n * r, x.shape[0])
        found = sum(
            isinstance(v, kind) << (len(kinds) * k + j)
            for k, v in enumerate(given)
            for j, kind in enumerate(kinds)
        )
        match n:
            case int():
                x = x + 1
            case _:
                x = x - 1
        return scaled(n, x) + scaled(r, x), float(found), [n] * 2

    for s in (np.float64(1.5), np.float32(2), np.int16(3)):
        fused = nfuser.fuse(function)
        for n, r in ((3, 2.5), (4, 0.5)):
            got, wanted = fused(X, n, r, s), function(X, n, r, s)
            np.testing.assert_allclose(got[0], wanted[0], 1e-6)
            assert got[1:] == wanted[1:]
        assert fused.cache_info().traces == 1
    with pytest.raises(TypeError, match="not iterable"):
        nfuser.fuse(lambda x, n: x * sum(n))(X, 3)


def test_a_comparison_of_sizes_leaves_its_answer() -> None:
    def function(x: Any) -> Any:
        return x + 1 if x.shape[0] < x.shape[1] else x - 1

    found = trace(function)
    assert serves(found, np.ones((2, 3)))
    assert not serves(found, np.ones((3, 2)))


@pytest.mark.parametrize(
    "consume", [int, float, hash, len, math.sqrt, lambda n: list(range(n)), str, repr]
)
def test_what_python_consumes_is_guarded_by_value(consume: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        consume(x if consume is len else x.shape[0])
        return x + 1

    found = trace(function)
    assert not serves(found, np.ones((5, 8)))
    assert serves(found, np.ones((4, 9)))


def test_slices_by_sizes_hold_for_other_sizes() -> None:
    def function(x: Any) -> Any:
        h = x.shape[-1] // 2
        return x[..., :h] * 2, x[1:, -h:], x[::-2, 1::3], x[-1], x[:-1, ..., 0]

    found = trace(function)
    other = np.random.default_rng(0).normal(size=(7, 11)).astype(np.float32)
    assert serves(found, other)
    for one, two in zip(rerun(found, [other]), function(other), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("start", [None, -9, -3, 0, 2, 9])
@pytest.mark.parametrize("stop", [None, -9, -2, 0, 3, 9])
@pytest.mark.parametrize("step", [None, 2, -1, -3])
def test_slices_clamp_as_pythons(start: Any, stop: Any, step: Any) -> None:
    part = slice(start, stop, step)
    for count in (0, 1, 4):
        x = np.arange(count * 2.0).reshape(count, 2)
        np.testing.assert_array_equal(run(lambda a: a[part] * 1, x), x[part])


def test_a_float_argument_is_weak_and_run_time() -> None:
    found = trace(lambda x, a: x * (2 * a + 1), X, 0.5)
    assert found.fusion.outputs[0].dtype is DType.F32
    assert found.value_guards == ()
    np.testing.assert_array_equal(rerun(found, [X, 3.0]), X * 7)


def test_a_numpy_scalar_keeps_its_dtype() -> None:
    found = trace(lambda x, a: x * a, X, np.float64(0.5))
    assert found.fusion.outputs[0].dtype is DType.F64
    small = trace(lambda x, a: x + a, np.ones(3, np.uint8), np.int8(1))
    assert small.fusion.outputs[0].dtype is DType.I16


def test_a_function_of_a_python_number_gives_a_numpy_scalar() -> None:
    found = trace(lambda x, a: x * np.sqrt(a), X, 2.0)
    assert found.fusion.outputs[0].dtype is as_dtype((X * np.sqrt(2.0)).dtype)


def test_a_float_that_python_consumes_is_guarded() -> None:
    def function(x: Any, a: float, b: float) -> Any:
        return x * b if 2 * a > 1 else x

    found = trace(function, X, 2.0, 3.0)
    assert [(g.slot, g.value) for g in found.value_guards] == [(1, 2.0)]
    assert found.value_guards[0].source is not None
    np.testing.assert_array_equal(rerun(found, [X, 2.0, 5.0]), X * 5)


def test_an_integer_argument_is_open_until_consumed() -> None:
    found = trace(lambda x, n: x * n, X, 3)
    assert found.guards == ()
    found = trace(lambda x, n: x.sum(axis=n), X, 1)
    assert [g.answer for g in found.guards] == [1]
    found = trace(lambda x, n: x**n, X.astype(np.int32), 2)
    assert len(found.guards) == 1  # whether it is negative


def test_integers_that_meet_narrow_dtypes_are_checked_at_each_call() -> None:
    found = trace(lambda x, n: x + n, np.ones(3, np.uint8), 5)
    (check,) = found.checks
    assert check.dtype is DType.U8
    assert "uint8" in check.message
    assert len(trace(lambda x, n: x + n, np.ones(3, np.int64), 5).checks) == 1
    assert trace(lambda x: x + x.size, np.ones(3, np.int64)).checks == ()


def test_returned_numbers_remember_that_they_are_pythons() -> None:
    found = trace(lambda x, a, n: (x, n, n * 2, a * 2, 3, True, x.shape), X, 2.0, 7)
    kinds = [leaf.python for leaf in found.output_leaves]
    assert kinds == [None, int, int, float, int, bool, int, int]
    given = rerun(found, [X, 2.0, 7], {scalar_input(2): 7})
    assert given[1:6] == (7, 14, 4.0, 3, True)


def test_a_variance_of_too_few_is_not_a_number() -> None:
    assert np.isnan(run(lambda x: np.var(x, ddof=1), np.ones(1)))


def test_the_host_knows_each_operation_that_a_trace_makes() -> None:
    made = (name for name in POINT_OPS if not name.endswith("_near"))
    assert all(callable(host_numbers.meaning(name)) for name in made)


METHODS: list[Callable[[Any], Any]] = [
    lambda n: n.bit_length() + n.bit_count() + n.to_bytes(2, "big")[1],
    lambda n: sum(n.as_integer_ratio()) + n.conjugate() + n.real + n.imag,
    lambda n: n.numerator * 2 + n.denominator,
    lambda n: np.ndim(n) + np.size(n) + len(np.shape(n)),
    lambda n: np.full(8, n) + np.asarray(n),
]


@pytest.mark.parametrize("method", METHODS)
def test_methods_of_an_integer(method: Callable[[Any], Any]) -> None:
    def function(x: Any, n: Any) -> Any:
        return x * method(n)

    for n in (5, -3) if method is not METHODS[0] else (5, 6):
        np.testing.assert_array_equal(run(function, X, n), function(X, n))


def test_methods_of_a_float_take_the_value_of_today() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * n.is_integer() + n.as_integer_ratio()[1] + len(n.hex())

    for n in (2.0, 2.5, np.float64(0.1)):
        np.testing.assert_array_equal(run(function, X, n), function(X, n))
    found = trace(function, X, 2.5)
    assert [guard.value for guard in found.value_guards] == [2.5]


def test_plain_numpy_takes_the_value_of_today() -> None:
    def function(x: Any, n: Any) -> Any:
        return x * np.full(8, n) + np.array([n * 2])

    np.testing.assert_array_equal(run(function, X, 2.5), function(X, 2.5))
    assert [g.value for g in trace(function, X, 2.5).value_guards] == [2.5]


TRUE: Any = np.bool_(True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(True),
        lambda x: x.reshape(True, 3),
        lambda x: np.reshape(x, (3, TRUE)),
        lambda x: np.broadcast_to(x[:1], True),
        lambda x: np.full_like(x, 1.0, shape=(True,)) + x,
        lambda x: np.pad(x, True),
        lambda x: np.pad(x, [True, False]),
        lambda x: np.pad(x, {0: True}),
    ],
)
def test_a_truth_value_is_no_size(function: Callable[[Any], Any]) -> None:
    x = np.ones(3)
    with pytest.raises(TypeError):
        function(x)
    with pytest.raises(ArgumentError, match="expected an integer, found"):
        nfuser.fuse(function)(x)


@pytest.mark.parametrize(
    "function", [lambda x: np.pad(x, (True, 1)), lambda x: np.roll(x, True)]
)
def test_a_truth_value_is_a_number_where_it_is_numpys(
    function: Callable[[Any], Any],
) -> None:
    x = np.arange(3.0)
    np.testing.assert_array_equal(nfuser.fuse(function)(x), function(x))


def test_a_number_that_a_loop_carries_is_divided_as_python_divides() -> None:
    def by_float(u: Any, k: int) -> Any:
        s = 1.5
        for _ in range(k):
            s = s / (k - 1)
        return u * s

    def by_whole(u: Any, k: int) -> Any:
        s = 7
        for _ in range(k):
            s = s // (k - 1)
        return u * s

    def rest(u: Any, k: int) -> Any:
        s = 7.0
        for _ in range(k):
            s = s % (k - 1)
        return u * s

    for function in (by_float, by_whole, rest):
        fused = nfuser.fuse(function)
        for k in (0, 1, 2, 3, 1, 0):
            if k == 1:
                with pytest.raises(ZeroDivisionError):
                    fused(np.ones(2), k)
            else:
                wanted = function(np.ones(2), k)
                np.testing.assert_array_equal(fused(np.ones(2), k), wanted)
