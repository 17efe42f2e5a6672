# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels move rows of odd length in packets that run across their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
BF16 = ml_dtypes.bfloat16


def _biased(x: Any, bias: Any) -> Any:
    return np.maximum(x + bias, 0)


def _scaled(x: Any, rows: Any) -> Any:
    return x * rows[:, None]


def _tail(x: Any, y: Any) -> Any:
    return x[:, 1:] * y


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    swapped = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + swapped * sin


def _steps(x: Any) -> Any:
    return x[:, 1:] - x[:, :-1]


def _joined(x: Any, y: Any) -> Any:
    return np.concatenate([x, y], axis=1) + 1


def _arrays(*shapes: tuple[int, ...], dtype: Any) -> list[Array]:
    random = np.random.default_rng(0)
    return [(random.standard_normal(shape) * 4).astype(dtype) for shape in shapes]


def _schedule(function: Callable[..., Any], *arrays: Array) -> str:
    """Compare with NumPy; return the schedule."""
    fused = nfuser.fuse(function, backend="interpret")
    np.testing.assert_array_equal(fused(*arrays), function(*arrays))
    (kernel,) = fused.kernels(*arrays)
    return kernel.schedule


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("columns", [1, 3, 7, 33, 129])
@pytest.mark.parametrize("rows", [8, 48])
def test_what_is_repeated_goes_by_elements(rows: int, columns: int, dtype: Any) -> None:
    for function, beside in ((_biased, (columns,)), (_scaled, (rows,))):
        x, other = _arrays((rows, columns), beside, dtype=dtype)
        width = min(16 // x.itemsize, 8)
        assert f"width={width}" in _schedule(function, x, other)


@pytest.mark.parametrize("rows", [1, 5, 9])
def test_packets_are_as_wide_as_divide_all_elements(rows: int) -> None:
    x, bias = _arrays((rows, 33), (33,), dtype=np.float32)
    assert "width=1" in _schedule(_biased, x, bias)
    doubled = _arrays((2 * rows, 33), (33,), dtype=np.float32)
    assert "width=2" in _schedule(_biased, *doubled)


@pytest.mark.parametrize("dtype", [BF16, np.float32])
def test_what_begins_elsewhere_goes_by_elements(dtype: Any) -> None:
    x, y = _arrays((16, 34), (16, 33), dtype=dtype)
    assert f"width={16 // x.itemsize}" in _schedule(_tail, x, y)


def test_only_as_many_axes_join_as_packets_need() -> None:
    x, cos, sin = _arrays((2, 4, 16, 9), (16, 9), (16, 9), dtype=np.float32)
    assert "width=4" in _schedule(_turned, x, cos, sin)
    (kernel,) = nfuser.fuse(_turned, backend="interpret").kernels(x, cos, sin)
    # All axes as one would leave the tables to single elements.
    assert kernel.source.count("load_packet_4(local") == 3


def _differences(x: Any) -> Any:
    return x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]


def _spread(x: Any) -> Any:
    return _differences(x[:, 2:]) - _differences(x[:, :-2])


def test_the_more_elements_beside_packets_the_narrower_these_are() -> None:
    x = np.rint(np.random.default_rng(2).standard_normal((16, 37)) * 9)
    narrow, wide = x.astype(np.float16), x.astype(np.float32)
    assert "width=8" in _schedule(_steps, narrow[:, 3:].copy())
    assert "width=4" in _schedule(_differences, narrow[:, 2:].copy())
    assert "width=1" in _schedule(_spread, narrow)
    assert "width=4" in _schedule(_steps, wide[:, 3:].copy())


def test_joins_along_rows_go_in_packets() -> None:
    x, y = _arrays((16, 5), (16, 8), dtype=np.float32)
    assert "width=4" in _schedule(_joined, x, y)
