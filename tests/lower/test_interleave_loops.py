# SPDX-License-Identifier: Apache-2.0
"""Loops that go through several places at once, and stores past the cache."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.pointwise import interleave as streams

LENGTHS = (1, 127, 128, 1000, 1023, 1024, 2048, 4095, 5000, 8191, 8193, 20000)


def _assert_equal(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance)


@pytest.fixture
def always_bypasses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "BYPASS_BYTES", 1)


@pytest.mark.usefixtures("always_bypasses")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "f2"])
def test_lines_hold_what_plain_stores_would(dtype: str) -> None:
    f = nfuser.fuse(lambda x, y: x + y)
    for length in LENGTHS:
        x = (np.arange(length) % 50).astype(dtype)
        np.testing.assert_array_equal(f(x, x), x + x)


@pytest.mark.usefixtures("always_bypasses")
def test_rows_may_begin_anywhere_in_a_line() -> None:
    f = nfuser.fuse(lambda x: x[:, 1:-1] * 2)
    assert "store_line" in f.kernels(np.ones((3, 1500), "f4"))[0].source
    for columns in (515, 1500, 4094, 8200):
        x = np.random.default_rng(0).random((3, columns)).astype("f4")
        np.testing.assert_array_equal(f(x), x[:, 1:-1] * 2)


@pytest.mark.usefixtures("always_bypasses")
def test_an_output_may_be_its_own_input_and_lie_anywhere() -> None:
    f = nfuser.fuse(lambda x: x + 1)
    memory = np.zeros(9001, "f4")
    for offset in range(17):
        memory[:] = np.arange(9001)
        x = memory[offset : offset + 6000]
        f.bind(x, out=x)()
        expected = np.arange(9001, dtype="f4")
        expected[offset : offset + 6000] += 1
        np.testing.assert_array_equal(memory, expected)


@pytest.mark.usefixtures("always_bypasses")
def test_normalized_rows_go_past_the_cache() -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    f = nfuser.fuse(softmax)
    x = np.random.default_rng(0).normal(size=(5, 3000)).astype("f4")
    assert "store_line" in f.kernels(x)[0].source
    _assert_equal(f(x), softmax(x), 1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax"])
def test_pieces_of_a_row_come_together(name: str) -> None:
    rng = np.random.default_rng(0)
    f = nfuser.fuse(lambda x: getattr(x, name)(axis=-1))
    for length in LENGTHS:
        x = rng.uniform(0.999, 1.001, (2, length)).astype("f4")
        if name in ("any", "all"):
            x = x > 0.9992
        _assert_equal(f(x), getattr(x, name)(axis=-1), 1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("rows", [1, 3, 4, 7, 64, 101])
def test_several_rows_of_columns_are_folded_at_once(dtype: str, rows: int) -> None:
    f = nfuser.fuse(lambda x: (x.sum(axis=0), x.max(axis=0)))
    x = (np.random.default_rng(0).random((rows, 700)) * 100).astype(dtype)
    total, most = f(x)
    _assert_equal(total, x.sum(axis=0))
    np.testing.assert_array_equal(most, x.max(axis=0))


def test_the_same_kernel_serves_short_and_long_rows() -> None:
    f = nfuser.fuse(lambda x: x.sum(axis=-1))
    for columns in (3, 5000):
        f(np.ones((100, columns), "f4"))
    assert f.cache_info().runtimes == 1


def test_heavy_work_stays_in_one_place() -> None:
    def heavy(x: Any) -> Any:
        return np.sin(np.exp(x)) * np.cos(np.tanh(x))

    assert "streams" not in nfuser.fuse(heavy).kernels(np.ones(10))[0].schedule


def test_a_gather_stays_in_one_place() -> None:
    f = nfuser.fuse(lambda x, k: np.take(x, k))
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    k = np.arange(5000) % 12
    np.testing.assert_array_equal(f(x, k), np.take(x, k))


def _log_sum_exp(x: Any) -> Any:
    return np.log(np.exp(x).sum(axis=-1))


def test_dear_work_on_32_bits_fills_vectors_of_what_is_summed_in_64() -> None:
    f = nfuser.fuse(_log_sum_exp)
    assert "lanes_of_32" in f.kernels(np.ones((2, 9), "f4"))[0].source
    for length in LENGTHS:
        x = np.random.default_rng(0).normal(size=(2, length)).astype("f4")
        _assert_equal(f(x), _log_sum_exp(x.astype("f8")), 1e-6)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(_log_sum_exp, "f8"), (lambda x: (x * x).sum(axis=-1), "f4")],
)
def test_other_sums_take_the_lanes_that_llvm_gives(function: Any, dtype: str) -> None:
    (kernel,) = nfuser.fuse(function).kernels(np.ones((2, 9), dtype))
    assert "lanes_of_32" not in kernel.source


def test_what_waits_for_itself_goes_by_several_vectors() -> None:
    x = np.ones((2, 9), "f4")
    bodies = {
        "interleave(4)": (lambda x: x / (1 + abs(x)), lambda x: np.exp(x) / x),
        "interleave(2)": (lambda x: np.exp(x) * np.log(x),),
    }
    for word, functions in bodies.items():
        for function in functions:
            (kernel,) = nfuser.fuse(function).kernels(x)
            assert word in kernel.source
    (light,) = nfuser.fuse(lambda x: x * x + 1).kernels(x)
    assert "interleave(" not in light.source


def test_angles_of_any_size_are_enough_to_do_for_one_vector() -> None:
    f = nfuser.fuse(lambda x: np.sin(x) * np.cos(x) * np.tan(x))
    (kernel,) = f.kernels(np.ones((2, 9)))
    _, small, any_size = kernel.source.split("    if ")
    assert "sin_bounded" in small
    assert "interleave(2)" in small
    assert "interleave(" not in any_size
