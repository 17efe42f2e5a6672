# SPDX-License-Identifier: Apache-2.0
"""Loops whose operations wait for each other, several vectors side by side."""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.cpu.vectors.chains import Chains, chains_of
from nfuser.compiler.lower.kernel.kernel_ir import Call, Let, Number, Value, Var

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.linspace(-1, 1, 1 << 14, dtype=np.float32)
ONE = Number(1.0, DType.F32)


def _chain(x: Any) -> Any:
    for _ in range(10):
        x = abs(x * 1.0001 + 0.5) * 0.5 - 0.25
    return x


def _short(x: Any) -> Any:
    return abs(x * 2 + 1)


def _horner(x: Any) -> Any:
    y = x * 0.125
    for k in range(12):
        y = y * x + 1 / (k + 1)
    return y


def _tree(x: Any) -> Any:
    parts = [x * k for k in range(2, 18)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _summed(x: Any) -> Any:
    return _chain(x).sum()


def _of_integers(x: Any) -> Any:
    return _chain(x.astype("i4").astype("f4")).astype("i4")


CASES = [
    (_chain, {8}),
    (_horner, {4}),
    (_short, set[int]()),
    (_tree, set[int]()),
    (_summed, set[int]()),
    (_of_integers, set[int]()),
]


@pytest.mark.parametrize(("function", "counts"), CASES)
def test_vectors_lie_side_by_side_where_operations_wait_in_a_chain(
    function: Callable[[Any], Any], counts: set[int]
) -> None:
    (kernel,) = nfuser.fuse(function).kernels(X)
    assert set(map(int, re.findall(r"interleave\((\d+)\)", kernel.source))) == counts


@pytest.mark.parametrize("size", [1, 7, 16, 127, 128, 129, 1000, 8192, 8321])
def test_what_is_left_over_is_computed_as_the_rest(size: int) -> None:
    for function in (_chain, _horner):
        found = nfuser.fuse(function)(X[:size])
        np.testing.assert_array_equal(found, nfuser.fuse(function)(X)[:size])
        np.testing.assert_allclose(found, function(X[:size]), rtol=1e-6, atol=1e-7)


def _plus(*operands: Value) -> Call:
    return Call("add", operands, DType.F32)


def test_the_longest_chain_and_what_is_held_are_found() -> None:
    a, b, c = (Var(DType.F32) for _ in range(3))
    first, second = Let(a, _plus(ONE, ONE)), Let(b, _plus(a, _plus(a, ONE)))
    body = (first, second, Let(c, _plus(a, b)))
    assert chains_of(body) == Chains(operations=4, longest=4, held=2)


def test_a_turn_that_waits_for_the_last_one_has_no_chains_of_its_own() -> None:
    a, b = Var(DType.F32), Var(DType.F32)
    assert chains_of((Let(b, _plus(a, ONE)), Let(a, b))) is None


def test_functions_that_wait_for_each_other_have_most_vectors_abreast() -> None:
    """Whatever their number; those side by side leave no registers for as many."""

    def chained(x: Any) -> Any:
        for _ in (1, 2, 3):
            x = np.exp(-x) + x
        return x

    def beside(x: Any) -> Any:
        return np.exp(x) * np.log(x) + np.tanh(x)

    def wide_inside(x: Any) -> Any:  # hypot of float32 is computed in float64
        return np.hypot(np.exp(x), np.exp(np.exp(x)))

    for dtype in ("f4", "f8"):
        x = np.full(5000, 0.5, dtype)
        assert "interleave(4)" in nfuser.fuse(chained).kernels(x)[0].source
        assert "interleave(2)" in nfuser.fuse(beside).kernels(x)[0].source
    source = nfuser.fuse(wide_inside).kernels(np.full(5000, 0.5, "f4"))[0].source
    assert "interleave(2)" in source


def _step_of_a_sine(x: Any) -> Any:
    return x + 0.1 * np.sin(x)


def _decay(x: Any) -> Any:
    return np.exp(-x)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("step", "count"),
    [(_step_of_a_sine, 20), (_decay, 40)],
)
def test_functions_of_a_chain_are_called_before_registers_are_short(
    dtype: str, step: Callable[[Any], Any], count: int
) -> None:
    def chained(x: Any) -> Any:
        for _ in range(count):
            x = step(x)
        return x

    def beside(x: Any) -> Any:
        return sum(step(x * k) for k in range(count // 2))

    x = np.full(5000, 0.5, dtype)
    source = nfuser.fuse(chained).kernels(x)[0].source
    assert "functions_apart()" in source
    assert f"interleave({8 if dtype == 'f4' else 4})" in source
    assert "functions_apart()" not in nfuser.fuse(beside).kernels(x)[0].source


def _thirty_sines(x: Any) -> Any:
    for _ in range(30):
        x = x + 0.1 * np.sin(x)
    return x


@pytest.mark.parametrize(("dtype", "count"), [(np.float32, 8), (np.float64, 4)])
def test_more_vectors_wait_for_functions_that_are_called(
    dtype: type, count: int
) -> None:
    (kernel,) = nfuser.fuse(_thirty_sines).kernels(np.ones(1 << 14, dtype))
    assert "functions_apart()" in kernel.source
    assert f"interleave({count})" in kernel.source


def test_of_long_turns_fewer_vectors_lie_abreast() -> None:
    """All of them are what LLVM has to compile, and the next turn is far away."""

    def quotients(steps: int) -> Callable[[Any], Any]:
        def function(x: Any) -> Any:
            numbers = [1 / (k + 1) for k in range(steps)]
            return 1 / reduce(lambda y, number: y * x + number, numbers, 1 / x)

        return function

    x = np.full(5000, 0.5)
    for steps, count in ((10, 4), (200, 2)):
        (kernel,) = nfuser.fuse(quotients(steps)).kernels(x)
        assert f"interleave({count})" in kernel.source
