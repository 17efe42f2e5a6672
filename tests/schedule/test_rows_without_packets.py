# SPDX-License-Identifier: Apache-2.0
"""Rows of odd length go element by element, many at once and none under a guard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * weight + bias


def _normalised(x: Any) -> Any:
    scale = np.abs(x).max(axis=-1, keepdims=True) / 127
    return x / scale, scale[..., 0]


def _scaled(x: Any, weight: Any) -> Any:
    return x * weight


def _blended(x: Any, weight: Any, y: Any, z: Any, shift: Any) -> Any:
    return x * weight + y * z - shift


def _misaligned(array: Array) -> Array:
    """Return ``array`` at an address that no packet begins at."""
    room = np.empty(array.size + 1, array.dtype)[1:]
    assert room.ctypes.data % 16
    room[:] = array.ravel()
    return room.reshape(array.shape)


def _arrays(function: Callable[..., Any], rows: int, length: int) -> list[Array]:
    random = np.random.default_rng(0)
    count = {_softmax: 0, _normalised: 0, _scaled: 1, _layer_norm: 2}[function]
    shapes = [(rows, length), *[(length,)] * count]
    made = (random.standard_normal(s).astype(ml_dtypes.bfloat16) for s in shapes)
    return [_misaligned(a) for a in made]


@pytest.mark.parametrize("function", [_softmax, _layer_norm, _normalised, _scaled])
@pytest.mark.parametrize("length", [1, 31, 64, 257, 1025, 4097, 20_001])
def test_results_are_numpys_wherever_rows_begin(
    function: Callable[..., Any], length: int
) -> None:
    arrays = _arrays(function, 4, length)
    found: Any = nfuser.fuse(function, backend="interpret")(*arrays)
    wanted: Any = function(*(a.astype(np.float64) for a in arrays))
    if function is not _normalised:
        found, wanted = [found], [wanted]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("function", [_softmax, _layer_norm, _normalised])
def test_elements_of_a_kept_row_are_read_without_a_condition(
    function: Callable[..., Any],
) -> None:
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(*_arrays(function, 4, 4097))
    assert "kept in 15 steps" in kernel.schedule
    body = kernel.source.partition("def ")[2]
    # Steps are loops of a known length, the last of them alone is under a condition.
    loads = re.findall("^( *)t.* = load_bf16\\(T0", body, re.MULTILINE)
    plain, guarded = 8 * " ", 12 * " "
    assert loads == [plain, guarded]
    assert "range(14)" in body
    assert "minimum(" not in body


def test_all_turns_along_a_long_row_but_the_last_have_no_guard() -> None:
    arrays = _arrays(_layer_norm, 4, 38_001)
    (kernel,) = nfuser.fuse(_layer_norm, backend="interpret").kernels(*arrays)
    assert "looped" in kernel.schedule  # it would not fit the registers of a block
    loads = re.findall("^( *)t.* = load_bf16\\(T0", kernel.source, re.MULTILINE)
    first, plain, guarded = 4 * " ", 12 * " ", 16 * " "
    # The first element stands for the mean; then a pass for moments, and one to store,
    # which goes back from the end of the row.
    assert loads == [first, plain, guarded, guarded, plain]


def test_single_elements_share_indices_along_another_axis() -> None:
    x, weight = _arrays(_scaled, 16, 4097)
    (kernel,) = nfuser.fuse(_blended, backend="interpret").kernels(
        x, weight, *(_misaligned(x + k) for k in range(3))
    )
    assert "items=8" in kernel.schedule
    assert kernel.source.count("load_bf16(T1") == 1
    body = kernel.source.partition("for i0 in ")[2]
    assert "load_bf16(T0" in body
    assert "divide" not in body


def test_rows_that_would_fill_a_multiprocessor_each_are_read_twice() -> None:
    def kernel(function: Callable[..., Any], rows: int, length: int) -> Any:
        x = _misaligned(np.zeros((rows, length), ml_dtypes.bfloat16))
        (found,) = nfuser.fuse(function, backend="interpret").kernels(x)
        return found

    assert "kept in 31 steps" in kernel(_softmax, 200, 16_385).schedule
    assert "looped, width=1, threads=256x1" in kernel(_softmax, 200, 20_481).schedule
    # The fewer of them are under way, the nearer they are the second time.
    looped = kernel(_softmax, 200, 32_769)
    assert "looped, width=1, threads=512x1" in looped.schedule
    assert looped.source.count("* 8192") > 0  # a turn of all threads: known distances
    # Few rows leave multiprocessors idle anyway.
    assert "kept in 33 steps" in kernel(_softmax, 100, 32_769).schedule


@pytest.mark.parametrize("function", [_softmax, _layer_norm])
@pytest.mark.parametrize("length", [8193, 12_289])
def test_rows_that_are_read_again_are_numpys(
    function: Callable[..., Any], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reduction_cuda, "MOST_STEPS", 0)
    arrays = _arrays(function, 3, length)
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(*arrays)
    assert "looped, width=1, threads=256x1" in kernel.schedule
    wanted = function(*(a.astype(np.float64) for a in arrays))
    got = fused(*arrays).astype(np.float64)
    np.testing.assert_allclose(got, wanted, rtol=0.01, atol=0.01)


def _summed(x: Any) -> Any:
    return x.sum(axis=-1)


def test_one_kernel_adds_up_odd_rows_of_many_lengths() -> None:
    fused = nfuser.fuse(_summed, backend="interpret")
    lengths = [3, 17, 33, 65, 99, 129, 191, 257, 385, 513, 1025, 4097, 20_001]
    arrays = (np.empty((2000, n), np.float32) for n in lengths)
    assert len({k.source for x in arrays for k in fused.kernels(x)}) <= 2


def _turned(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    turned = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * cos + turned * sin


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
def test_packets_beside_which_elements_are_read_follow_each_other(
    order: tuple[int, ...],
) -> None:
    random = np.random.default_rng(4)

    def of(rows: int, length: int) -> tuple[Array, Array, Array]:
        shape = np.array((2, 16, rows, length))[list(order)]
        shapes = shape, (rows, length), (rows, length)
        made = [random.standard_normal(s).astype(ml_dtypes.bfloat16) for s in shapes]
        return made[0].transpose(order), made[1], made[2]

    fused = nfuser.fuse(backend="interpret")(_turned)
    (kernel,) = fused.kernels(*of(2048, 17))
    # In the second order cos and sin begin anew with each row: by elements as well.
    items = "" if order == (0, 1, 2, 3) else ", items=2"
    assert str(kernel.schedule) == f"pointwise(width=8, threads=256{items})"
    small = of(24, 9)
    expected = _turned(*(a.astype(np.float32) for a in small))
    found = fused(*small).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)
