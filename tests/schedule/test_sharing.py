# SPDX-License-Identifier: Apache-2.0
"""Which packets a thread takes so that it reads broadcast operands once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.pointwise import cuda as pointwise_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _scaled(x: Array, scale: Array) -> Array:
    return x * scale


def _gated(x: Array, bias: Array) -> Array:
    return np.tanh(x + bias) * np.tanh(x)


def _schedule(function: Callable[..., Any], *arrays: Array) -> str:
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(*arrays)
    return kernel.schedule


@pytest.mark.parametrize(
    ("heads", "length", "items"),
    [
        (6, 520, "items=2"),
        (5, 520, ""),  # a head would be left over
        (6, 8, ""),  # what is shared stays in the nearest cache
    ],
)
def test_rows_share_a_large_operand(heads: int, length: int, items: str) -> None:
    x, scale = np.ones((heads, length, 64), "f4"), np.ones((length, 64), "f4")
    schedule = _schedule(_scaled, x, scale)
    assert items in schedule
    assert items or "items" not in schedule


@pytest.mark.parametrize("near", [1, 4, 64])
def test_blocks_take_turns_along_long_rows(
    near: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointwise_cuda, "NEAR_BLOCKS", near)
    rng = np.random.default_rng(1)
    for shape in ((4, 520, 32), (2, 2, 1100, 32)):
        x, scale = rng.random(shape, np.float32), rng.random(shape[-2:], np.float32)
        fused = nfuser.fuse(_scaled, backend="interpret")
        np.testing.assert_array_equal(fused(x, scale), x * scale)
        (kernel,) = fused.kernels(x, scale)
        assert "items=2 in turn" in kernel.schedule
        assert kernel.grid is not None
        blocks = -(-x.size // (4 * 2 * 256))
        surplus = x.size // scale.size // 2 * -(-scale.size // (4 * 256 * near))
        assert blocks <= math.prod(kernel.grid) <= blocks + surplus


def test_rows_of_much_computing_share_a_small_operand() -> None:
    x, bias = np.ones((8, 64), ml_dtypes.bfloat16), np.ones(64, ml_dtypes.bfloat16)
    assert "items=2" in _schedule(_gated, x, bias)
    assert "items" not in _schedule(_gated, x[:7], bias)
    assert "items" not in _schedule(_scaled, x, bias)


def test_nothing_is_shared_where_nothing_is_broadcast() -> None:
    x = np.ones((8, 520, 64), "f4")
    assert "items" not in _schedule(_scaled, x, x)


def test_shared_operands_give_what_numpy_gives() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((2, 3, 520, 32), np.float32)
    scale = rng.random((520, 32), np.float32)
    fused = nfuser.fuse(_scaled, backend="interpret")
    np.testing.assert_array_equal(fused(x, scale), x * scale)
    turned = x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(fused(turned, scale), x * scale)
