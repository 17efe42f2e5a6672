# SPDX-License-Identifier: Apache-2.0
"""A CPU copies a tile of what lies the other way round, and reads it on its stack."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nfuser

Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16


def _array(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)


def _transposed(a: Any, b: Any) -> Any:
    return a + b.T


def _itself(a: Any, b: Any) -> Any:
    return a - a.T * 2, a + b


def _two(a: Any, b: Any) -> Any:
    return a * 2 + b.T - a.T


def _batched(a: Any, b: Any) -> Any:
    return a[None] + b.reshape(1, *b.shape).transpose(0, 2, 1)


def _part(a: Any, b: Any) -> Any:
    return a[1:, :-1] + b.T[:-1, 1:]


def _check(function: Any, a: Array, b: Array) -> list[str]:
    """Compare with NumPy; return the schedules."""
    fused = nfuser.fuse(function)
    np.testing.assert_array_equal(fused(a, b), function(a, b))
    return [kernel.schedule for kernel in fused.kernels(a, b)]


@pytest.mark.parametrize("dtype", [BF16, np.int8, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("sides", [(64, 64), (65, 127), (200, 3), (1, 90), (130, 256)])
def test_what_crosses_goes_through_the_stack(sides: Any, dtype: Any) -> None:
    a, b = _array(*sides, dtype=dtype), _array(*sides[::-1], dtype=dtype)
    for function in (_transposed, _batched):
        _check(function, a, b)


@pytest.mark.parametrize("side", [1, 2, 63, 64, 65, 193])
def test_arrays_meet_themselves(side: int) -> None:
    a, b = _array(side, side), _array(side, side)
    for function in (_itself, _two, _part):
        _check(function, a, b)


@pytest.mark.parametrize(("function", "staged"), [(_transposed, 1), (_two, 2)])
def test_each_array_has_a_tile(function: Any, staged: int) -> None:
    a, b = _array(130, 130), _array(130, 130)
    assert f"staged={staged}" in _check(function, a, b)[0]


def test_dear_operations_gather_meanwhile() -> None:
    def dear(a: Any, b: Any) -> Any:
        return np.exp(a) + b.T

    a, b = _array(130, 130), _array(130, 130)
    fused = nfuser.fuse(dear)
    np.testing.assert_allclose(fused(a, b), dear(a, b), rtol=1e-6, atol=1e-5)
    (kernel,) = fused.kernels(a, b)
    assert "tiles" in kernel.schedule
    assert "staged" not in kernel.schedule


def test_a_copy_to_the_stack_is_read_after_it() -> None:
    a, b = _array(130, 130), _array(130, 130)
    (kernel,) = nfuser.fuse(_transposed).kernels(a, b)
    body = kernel.source.partition("def ")[2]
    assert body.count("load(T1") == 1
    assert body.index("store(local0") < body.index("load(local0")
