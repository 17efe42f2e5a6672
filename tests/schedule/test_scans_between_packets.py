# SPDX-License-Identifier: Apache-2.0
"""Scans of rows of odd length go in packets; either end is a step of its own."""

# pyright: reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _sums(x: Any) -> Any:
    return np.cumsum(x, axis=-1)


def _products(x: Any) -> Any:
    return np.cumprod(1 + x / 1024, axis=-1)


def _beside(x: Any, y: Any) -> Any:
    total = np.cumsum(x * y, axis=-1)
    return total - x, total + y


def _twice(x: Any, weight: Any) -> Any:
    once = np.cumsum(x, axis=-1)
    return once, np.cumsum(once * weight + x, axis=-1) - once


def _largest(x: Any) -> Any:
    return np.maximum.accumulate(x, axis=-1)


def _backward(x: Any) -> Any:
    return np.cumsum(x[:, ::-1], axis=-1)[:, ::-1] + x


def _reversed(x: Any) -> Any:
    return np.cumsum(x[:, ::-1], axis=-1)


def _shifted(x: Any) -> Any:
    return np.cumsum(x[:, 1:] - x[:, :-1], axis=-1)


def _rows(x: Any) -> Any:
    return np.cumsum(x * x[:, :1], axis=-1) * 2 + x[:, -1:]


def _arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    """Return arrays of small integers, whose sums are exact, where packets begin."""
    random = np.random.default_rng(0)
    made: list[Array] = []
    for shape in shapes:
        numbers = random.integers(-2, 3, shape).astype(dtype)
        room = np.empty(numbers.size + 16, numbers.dtype)
        begin = next(k for k in range(16) if room[k:].ctypes.data % 16 == 0)
        made.append(room[begin : begin + numbers.size].reshape(shape))
        made[-1][...] = numbers
    return made


def _check(function: Callable[..., Any], *arrays: Array) -> str:
    """Compare with NumPy; return the schedules."""
    fused = nfuser.fuse(function, backend="interpret")
    kernels = fused.kernels(*arrays)
    given = [a.astype(np.float64) for a in arrays]
    found: Any = fused(*arrays)
    wanted: Any = function(*given)
    pairs: Any = (found, wanted) if type(wanted) is tuple else ([found], [wanted])
    near = {2: 0.02, 4: 1e-5, 8: 1e-12}[arrays[0].dtype.itemsize]
    for got, want in zip(*pairs, strict=True):
        got = np.asarray(got).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    return "; ".join(str(kernel.schedule) for kernel in kernels)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("length", [2, 127, 511, 1025, 1027, 2047, 2049, 4099])
def test_rows_of_any_length_are_numpys(length: int, dtype: Any) -> None:
    (x,) = _arrays((7, length), dtype=dtype)
    schedule = _check(_sums, x)
    assert length < 1024 or "between ends" in schedule


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("offset", range(1, 9))
def test_ends_are_as_long_as_rows_have_it(offset: int, dtype: Any) -> None:
    (x,) = _arrays((9, 1024 + offset), dtype=dtype)
    schedule = _check(_largest, x)
    assert ("between ends" in schedule) == (offset * x.itemsize % 16 != 0)


@pytest.mark.parametrize("function", [_sums, _products, _largest])
def test_scans_of_all_kinds_begin_with_nothing(function: Callable[..., Any]) -> None:
    (x,) = _arrays((5, 1025))
    assert "between ends" in _check(function, x)


@pytest.mark.parametrize("rows", [1, 3, 64])
def test_what_is_read_beside_a_scan_has_ends_too(rows: int) -> None:
    assert "between ends" in _check(_beside, *_arrays((rows, 2051), (rows, 2051)))


def test_scans_of_scans_go_on_at_both_ends() -> None:
    x, weight = _arrays((6, 1031), (1031,))
    assert "between ends" in _check(_twice, x, weight)


@pytest.mark.parametrize("function", [_backward, _reversed, _shifted, _rows])
@pytest.mark.parametrize("shape", [(3, 2), (6, 130), (6, 1030), (6, 1033), (2, 9001)])
def test_what_is_scanned_may_lie_elsewhere(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    _check(function, *_arrays(shape))


def test_integers_are_scanned_by_packets() -> None:
    for dtype in (np.int32, np.int64):
        (x,) = _arrays((5, 4099), dtype=dtype)
        assert "between ends" in _check(_sums, x)


def test_several_rows_of_a_block_each_have_ends() -> None:
    (x,) = _arrays((11, 513))
    schedule = _check(_sums, x)
    assert "threads=32x4" in schedule
    assert "between ends" in schedule


def test_rows_that_begin_elsewhere_than_those_of_another_go_by_elements() -> None:
    x, y = _arrays((4, 2051), (4, 2051))
    room = np.empty(y.size + 8, y.dtype)
    begin = next(k for k in range(8) if room[k:].ctypes.data % 16 == 4)
    moved = room[begin : begin + y.size].reshape(y.shape)
    moved[...] = y
    assert "between ends" not in _check(_beside, x, moved)


def test_each_packet_is_read_and_written_once() -> None:
    (x,) = _arrays((4, 4099))
    (kernel,) = nfuser.fuse(_sums, backend="interpret").kernels(x)
    body = kernel.source.partition("def ")[2]
    assert body.count("load_packet_4(") == body.count("store_packet_4(") == 1
    assert body.count(" load(") == body.count(" store(") == 2
