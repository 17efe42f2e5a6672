# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""What lies along another axis than the rest is read in tiles on the CPU."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.config import override


def heuristic_of(function: Any, *arguments: Any) -> str:
    (kernel,) = nfuser.fuse(function).kernels(*arguments)
    return kernel.schedule


@pytest.mark.parametrize("shape", [(1, 1), (64, 64), (65, 63), (1, 200), (300, 129)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "f2"])
def test_a_transposed_operand(shape: tuple[int, int], dtype: str) -> None:
    a = (np.arange(shape[0] * shape[1]) % 100).reshape(shape).astype(dtype)
    b = (np.arange(a.size) % 7).reshape(shape[::-1]).astype(dtype)
    np.testing.assert_array_equal(nfuser.fuse(lambda a, b: a + b.T)(a, b), a + b.T)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_every_order_of_three_axes(order: tuple[int, ...]) -> None:
    a = np.random.default_rng(1).random((70, 90, 67))
    b = a.transpose(order).copy().transpose(np.argsort(order))
    made = nfuser.fuse(lambda a, b: (a - b) * a)(a, b)
    np.testing.assert_array_equal(made, (a - b) * a)


def test_both_outputs_of_two_orders() -> None:
    a = np.random.default_rng(2).random((130, 257))
    made = nfuser.fuse(lambda a: (a * 2, (a * 3).T.copy()))(a)
    np.testing.assert_array_equal(made[0], a * 2)
    np.testing.assert_array_equal(made[1], (a * 3).T)


def test_tiles_are_for_long_strides_only() -> None:
    a, b = np.ones((512, 512)), np.ones((512, 512))
    assert "across=0" in heuristic_of(lambda a, b: a + b.T, a, b)
    assert "across" not in heuristic_of(lambda a, b: a + b, a, b)
    pixels = np.ones((512, 512, 3), np.float32).transpose(2, 0, 1)
    planes = np.ones((3, 512, 512), np.float32)
    assert "across" not in heuristic_of(lambda a, b: a + b, planes, pixels)


@pytest.mark.parametrize("inside", [1, 17, 190, 1023])
def test_short_rows_of_much_are_not_cut(inside: int) -> None:
    x = np.random.default_rng(4).random((3 + (1 << 19) // inside, inside + 2))

    def between(x: Any) -> Any:
        return (x[:-2, 1:-1] + x[2:, 1:-1]) - x[1:-1, 2:]

    fused = nfuser.fuse(between)
    np.testing.assert_array_equal(fused(x), between(x))
    assert ("short" in heuristic_of(between, x)) == (inside > 1)
    assert "short" not in heuristic_of(between, x[:50])


def test_threads_do_not_change_a_bit() -> None:
    a = np.random.default_rng(3).random((1030, 777), np.float32)
    f = nfuser.fuse(lambda a, b: np.exp(a) * b.T)
    made: list[Any] = []
    for threads in (1, 2, 8):
        with override(num_threads=threads):
            made.append(f(a, a.T.copy()))
    np.testing.assert_array_equal(made[0], made[1])
    np.testing.assert_array_equal(made[0], made[2])
