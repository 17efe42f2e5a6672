# SPDX-License-Identifier: Apache-2.0
"""What is repeated or stacked a constant number of times is read without division."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.random import of

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 33, 100, 129, 1000, 1025)
LENGTHS = (0, 1, 2, 5, 64, 4096, 8191, 8193)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "repeated": lambda x: np.repeat(x, 3),
    "repeated beside another": lambda x: np.repeat(x, 3)[1:] + np.repeat(x, 3)[:-1],
    "repeated from within": lambda x: np.repeat(x, 3)[1:],
    "repeated twice": lambda x: np.repeat(np.repeat(x, 2), 3),
    "repeated of rows": lambda x: np.repeat(x.reshape(-1, 1) + x[:5], 3, axis=1),
    "spread": lambda x: np.broadcast_to(x[:, None], (x.shape[0], 3)).reshape(-1),
    "stacked": lambda x: np.stack([x, x + 1, x * 2], axis=-1).reshape(-1),
    "stacked of many": lambda x: np.stack([x + k for k in range(12)], -1).reshape(-1),
    "zeros of both signs": lambda x: np.stack([x * 0.0, x * -0.0], -1).reshape(-1),
    "joined": lambda x: np.concatenate([np.repeat(x, 3), x, np.repeat(x, 2)]),
    "padded": lambda x: np.pad(np.repeat(x, 3), (2, 5)),
    "both ways": lambda x: np.repeat(np.repeat(x[:, None] + x[:3], 2, 0), 2, 1),
    "summed": lambda x: np.repeat(x.reshape(-1, 1) + x[:64], 3, axis=1).sum(axis=0),
    "normed": lambda x: np.repeat(x, 3) - np.repeat(x, 3).max(initial=0),
    "crossed": lambda x: np.repeat(x[:64, None] + x[:64], 3, axis=1).T + 1,
    "masked": lambda x: np.where(np.arange(3 * len(x)) % 3 == 1, np.repeat(x, 3), -1),
    "reversed": lambda x: np.repeat(x, 3)[::-1] * 2,
    "wrapped": lambda x: np.roll(np.repeat(x, 3), 4),
    "kron": lambda x: np.kron(x, np.array([1.0, -2.0, 0.5], x.dtype)),
}


def _numbers(count: int, dtype: str = "f8") -> Any:
    numbers = np.random.default_rng(3).integers(-9, 9, count).astype(dtype)
    return numbers * (1 - 2j) if np.dtype(dtype).kind == "c" else numbers


@pytest.mark.parametrize("name", FUNCTIONS)
def test_groups_of_any_begin_and_end_are_numpys(name: str) -> None:
    function = FUNCTIONS[name]
    fused = nfuser.fuse(function)
    for length in (64, 65, 4096, 8193):
        x = _numbers(length)
        got, expected = fused(x), function(x)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("count", COUNTS)
def test_any_number_of_times(count: int) -> None:
    flat = nfuser.fuse(lambda x: np.repeat(x, count))
    rows = nfuser.fuse(lambda x: np.repeat(x, count, axis=1) + 1)
    for length in LENGTHS:
        if length * count < 1 << 20:
            x = _numbers(length, "f4")
            np.testing.assert_array_equal(flat(x), np.repeat(x, count))
            table = np.stack([x, x * 2, x + 1])
            expected = np.repeat(table, count, axis=1) + 1
            np.testing.assert_array_equal(rows(table), expected)


@pytest.mark.parametrize("count", [2, 3, 5, 7, 12])
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "i4", "f8", "c8", "c16"])
def test_elements_of_any_size(dtype: str, count: int) -> None:
    x = _numbers(3001, dtype)
    got = nfuser.fuse(lambda x: np.repeat(x, count))(x)
    np.testing.assert_array_equal(got, np.repeat(x, count))


@pytest.mark.parametrize("name", ["repeated", "spread", "stacked", "stacked of many"])
def test_the_innermost_loops_divide_nothing(name: str) -> None:
    (kernel,) = nfuser.fuse(FUNCTIONS[name]).kernels(np.ones(5000))
    assert "select(" not in kernel.source
    assert not any("udiv(i" in x or "urem(" in x for x in kernel.source.splitlines())


@pytest.mark.parametrize("count", [3, 8])
def test_what_is_repeated_is_computed_once(count: int) -> None:
    def function(x: Any) -> Any:
        return np.repeat(np.exp(x), count)

    x: Any = np.linspace(-1, 1, 2000)
    (kernel,) = nfuser.fuse(function).kernels(x)
    assert kernel.source.count(" = exp(t") == 1
    got = nfuser.fuse(function)(x)
    np.testing.assert_array_equal(got, np.repeat(nfuser.fuse(np.exp)(x), count))


def test_functions_of_each_element_stay_in_one_loop() -> None:
    x: Any = np.linspace(-1, 1, 2000)
    y: Any = np.linspace(-1, 1, 6000)
    fused = nfuser.fuse(lambda x, y: np.exp(np.repeat(x, 3) + y))
    (kernel,) = fused.kernels(x, y)
    assert "udiv(" in kernel.source
    np.testing.assert_allclose(fused(x, y), np.exp(np.repeat(x, 3) + y), rtol=1e-14)


def test_a_drawn_word_goes_by_its_place() -> None:
    def noise(count: int) -> Any:
        return of(7).random(count)

    x = _numbers(300)
    got = nfuser.fuse(lambda x: np.repeat(x, 3) + noise(900))(x)
    drawn = nfuser.fuse(lambda x: x + noise(900))(np.zeros(900))
    np.testing.assert_array_equal(got, np.repeat(x, 3) + drawn)
