# SPDX-License-Identifier: Apache-2.0
"""Rows of odd length go in packets but for their ends, wherever each begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
DTYPES = (ml_dtypes.bfloat16, np.float16, np.float32, np.float64, np.int8)


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _residual(x: Any, y: Any, weight: Any) -> Any:
    total = x + y
    scale = np.sqrt((total * total).mean(axis=-1, keepdims=True) + 1e-6)
    return total, total / scale * weight


def _places(x: Any) -> Any:
    return x.argmax(axis=-1), x.min(axis=-1), x.astype(np.float32).sum(axis=-1)


def _largest(x: Any) -> Any:
    return x.max(axis=-1)


def _aligned(array: Array) -> Array:
    """Return ``array`` at an address that a packet begins at."""
    room = np.empty(array.size + 16, array.dtype)
    begin = next(k for k in range(16) if room[k:].ctypes.data % 16 == 0)
    made = room[begin : begin + array.size].reshape(array.shape)
    made[...] = array
    return made


def _arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[Array]:
    random = np.random.default_rng(0)
    made = (random.standard_normal(shape) * 4 for shape in shapes)
    return [_aligned(a.astype(dtype)) for a in made]


def _check(function: Callable[..., Any], *arrays: Array) -> str:
    """Compare with NumPy; return the schedule."""
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(*arrays)
    given = [a.astype(np.float64) if a.dtype.kind != "i" else a for a in arrays]
    found: Any = fused(*arrays)
    wanted: Any = function(*given)
    pairs: Any = (found, wanted) if type(wanted) is tuple else ([found], [wanted])
    near = 0.02 if arrays[0].dtype.itemsize == 2 else 1e-4
    for got, want in zip(*pairs, strict=True):
        got = np.asarray(got).astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=near, atol=near)
    return str(kernel.schedule)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [2, 7, 63, 515, 1023, 1025, 4095, 4099])
def test_rows_of_any_length_are_numpys(length: int, dtype: Any) -> None:
    (x,) = _arrays((9, length), dtype=dtype)
    schedule = _check(_places, x)
    assert length < 1024 or "between ends" in schedule


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("offset", range(1, 9))
def test_ends_are_as_long_as_rows_have_it(offset: int, dtype: Any) -> None:
    length = 2048 + offset
    x, y, w = _arrays((8, length), (8, length), (length,), dtype=dtype)
    schedule = _check(_residual, x, y, w)
    assert ("between ends" in schedule) == (offset * x.itemsize % 8 != 0)


def test_rows_lie_in_registers_in_shared_memory_or_between_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    half = ml_dtypes.bfloat16
    registers = _check(_softmax, *_arrays((3, 4097), dtype=half))
    assert "kept in 4 steps, width=8 between ends" in registers
    assert "as stored" in _check(_softmax, *_arrays((3, 32_769), dtype=half))
    assert "in clusters" in _check(_softmax, *_arrays((3, 131_073), dtype=half))
    use_smaller_gpu(monkeypatch, most_cluster=1)
    assert "in step" in _check(_softmax, *_arrays((3, 131_073), dtype=half))
    # Blocks take several rows each, and copy the next while they meet.
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 64)
    use_smaller_gpu(monkeypatch, most_threads=64, cache_bytes=0, multiprocessors=8)
    monkeypatch.setattr(reduction_cuda, "STORED", ())
    for length in (9001, 9003):
        schedule = _check(_softmax, *_arrays((20, length), dtype=half))
        assert "splits=any" in schedule
        assert "between ends" in schedule


@pytest.mark.parametrize("length", [1025, 1026, 2047, 4099])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32, np.float64])
def test_weights_come_out_of_two_packets(length: int, dtype: Any) -> None:
    x, y, w = _arrays((5, length), (5, length), (length,), dtype=dtype)
    schedule = _check(_residual, x, y, w)
    (kernel,) = nfuser.fuse(_residual, backend="interpret").kernels(x, y, w)
    assert ("between ends" in schedule) == ("load_packet_across" in kernel.source)
    assert length % 2 == 0 or x.itemsize == 8 or "between ends" in schedule


def test_rows_that_begin_elsewhere_than_those_of_another_go_by_elements() -> None:
    x, y, w = _arrays((4, 2051), (4, 2051), (2051,))
    room = np.empty(y.size + 8, y.dtype)
    begin = next(k for k in range(8) if room[k:].ctypes.data % 16 == 4)
    moved = room[begin : begin + y.size].reshape(y.shape)
    moved[...] = y
    assert "between ends" in _check(_residual, x, y, w)
    assert "between ends" not in _check(_residual, x, moved, w)


@pytest.mark.parametrize("shape", [(3, 0), (0, 1025), (3, 1)])
def test_rows_may_be_empty_and_single(shape: tuple[int, int]) -> None:
    (x,) = _arrays(shape)
    found = nfuser.fuse(_softmax, backend="interpret")(x) if x.shape[1] else x
    assert found.shape == shape
    assert (found == 1).all()


def test_each_packet_is_read_once_and_ends_by_one_warp() -> None:
    (x,) = _arrays((16, 4099), dtype=ml_dtypes.bfloat16)
    (kernel,) = nfuser.fuse(_largest, backend="interpret").kernels(x)
    body = kernel.source.partition("def ")[2]
    assert body.count("load_packet_8_bf16(") == 1
    assert body.count("load_bf16(") == 1
