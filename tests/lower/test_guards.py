# SPDX-License-Identifier: Apache-2.0
"""Reads that exclude each other are one read; what a packet shares is asked once."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _rope(x: Array, cos: Array, sin: Array) -> Array:
    h = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., h:], x[..., :h]], axis=-1) * sin


def _rope_by_halves(x: Array, cos: Array, sin: Array) -> Array:
    h = x.shape[-1] // 2
    a, b = x[..., :h], x[..., h:]
    left = a * cos[..., :h] - b * sin[..., :h]
    return np.concatenate([left, b * cos[..., h:] + a * sin[..., h:]], axis=-1)


def _rope_by_where(x: Any, cos: Array, sin: Array) -> Any:
    h = x.shape[-1] // 2
    turned: Any = np.roll(x, h, axis=-1)
    return x * cos + np.where(np.arange(x.shape[-1]) < h, -turned, turned) * sin


def _in_thirds(x: Array) -> Array:
    return np.concatenate([x[:, 6:], x[:, 3:6], x[:, :3]], axis=-1)


def _of_two(x: Array, y: Array) -> Array:
    return np.concatenate([x[:, 4:], y[:, :4]], axis=-1)


def _source(function: Callable[..., Any], *arrays: Array) -> str:
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(*arrays)
    np.testing.assert_allclose(fused(*arrays), function(*arrays), rtol=1e-6)
    return kernel.source


def test_the_source_of_rotated_halves(golden: Callable[[str], None]) -> None:
    x, row = np.ones((2, 3, 5, 16), "f4"), np.ones((5, 16), "f4")
    golden(_source(_rope, x, row, row))


@pytest.mark.parametrize("size", [16, 10, 7, 2])
def test_both_halves_are_read_at_once(size: int) -> None:
    x = np.random.default_rng(0).random((3, 4, size), np.float32)
    row = np.random.default_rng(1).random((4, size), np.float32)
    source = _source(_rope, x, row, row)
    reads = source.count(", T0, ") + source.count("load(T0, ")
    assert reads == 2
    # The one condition left keeps threads in bounds.
    assert source.count("if ") == 1


@pytest.mark.parametrize("size", [16, 10, 2])
@pytest.mark.filterwarnings("ignore:an array that plain NumPy makes")
def test_rotated_halves_in_other_words_read_no_more(size: int) -> None:
    x = np.random.default_rng(0).random((3, 4, size), np.float32)
    row = np.random.default_rng(1).random((4, size), np.float32)
    for function in _rope_by_halves, _rope_by_where:
        source = _source(function, x, row, row)
        reads = source.count(", T0, ") + source.count("load(T0, ")
        assert reads == 2
        assert source.count("if ") == 1


def test_half_a_size_beside_places_is_an_index() -> None:
    def left(x: Any) -> Any:
        return np.where(xp.arange(x.shape[1]) < x.shape[1] // 2, x, 0)

    source = _source(left, np.ones((4, 16), np.float32))
    assert "< int64(e" in source  # a number that the host would give has no such cast
    assert "to_bool" not in source  # nor can the size be more than an int64 holds


def test_a_quotient_that_no_index_holds_is_a_number_of_the_host() -> None:
    def raised(x: Any) -> Any:
        return xp.arange(4) + (x.shape[0] * 10**9) // 3

    fused = nfuser.fuse(raised, backend="interpret")
    for length in 4, 9:
        wanted = np.arange(4) + length * 10**9 // 3
        np.testing.assert_array_equal(fused(np.ones(length)), wanted)


def test_reads_that_do_not_make_a_whole_stay_apart() -> None:
    x = np.arange(36, dtype=np.float32).reshape(4, 9)
    assert _source(_in_thirds, x).count("load(T0, ") == 3
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    source = _source(_of_two, x, x + 1)
    assert "T0, " in source
    assert "T1, " in source
