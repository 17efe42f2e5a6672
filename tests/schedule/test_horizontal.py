# SPDX-License-Identifier: Apache-2.0
"""Computations alike share a launch, each on blocks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from asv_bench.compare.workloads.rope import rope_pair
from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.compiler.lower import join
from nfuser.compiler.schedule.pointwise import cuda as pointwise_cuda

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
BACKENDS = ("interpret", "cpu")


def _scaled(x: Array, y: Array, scale: Array) -> tuple[Array, Array]:
    return x * scale, y * scale


def _turned(x: Array, y: Array, scale: Array) -> tuple[Array, Array]:
    return x.swapaxes(1, 2) + scale, y.swapaxes(1, 2) + scale


def _by_number(x: Array, y: Array, number: float) -> tuple[Array, Array]:
    return x * number, y * number


def _alone(x: Array) -> Array:
    return x * 2.5


def _random(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).random(shape, np.float32)


def _assert_one_kernel(
    function: Callable[..., Any], backend: str, *given: Any, kernels: int = 1
) -> str:
    fused = nfuser.fuse(function, backend=backend)
    for found, wanted in zip(fused(*given), function(*given), strict=True):
        np.testing.assert_array_equal(found, wanted)
    made = fused.kernels(*given)
    assert len(made) == kernels
    return made[0].schedule


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("heads", [(4, 2), (2, 4), (3, 2), (1, 5)])
def test_arrays_of_different_extents(backend: str, heads: tuple[int, int]) -> None:
    x, y = _random(2, heads[0], 300, 32), _random(1, heads[1], 300, 32)
    schedule = _assert_one_kernel(_scaled, backend, x, y, _random(300, 32))
    assert schedule.startswith("horizontal(")


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_part_lies_in_memory_its_own_way(backend: str) -> None:
    x, y = _random(2, 64, 96), _random(3, 64, 96)
    turned = y.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    for pair in ((x, y), (x, turned), (turned, x)):
        _assert_one_kernel(_turned, backend, *pair, _random(96, 64))


@pytest.mark.parametrize("near", [1, 4, 64])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((4, 520), (2, 520)),
        ((2, 2, 520), (2, 4, 520)),
        ((4, 520), (1, 520)),  # without turns: blocks in even shares
        ((3, 520), (2, 520)),
        ((2, 2, 3), (2, 4, 3)),  # short: no part takes turns
    ],
)
def test_parts_take_turns_over_the_same_stretches(
    first: tuple[int, ...],
    second: tuple[int, ...],
    near: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pointwise_cuda, "NEAR_BLOCKS", near)
    given = _random(*first, 64), _random(*second, 64), _random(first[-1], 64)
    fused = nfuser.fuse(_scaled, backend="interpret")
    for found, wanted in zip(fused(*given), _scaled(*given), strict=True):
        np.testing.assert_array_equal(found, wanted)
    (kernel,) = fused.kernels(*given)
    along = -(-given[2].size // (256 * 4))
    assert kernel.grid is not None
    columns, rows = kernel.grid
    assert rows == (-(-along // near) if along > 8 else 1)
    # Packets of all parts, and of what is left over no more than a block in each row.
    packets = sum(x.size // 4 // (1 if x.shape[-3] % 2 else 2) for x in given[:2])
    if along > 8:
        assert columns * rows * 256 >= packets
        assert columns <= packets // 256 // rows + 2 * len(given) * near


def test_a_tiled_part_lies_beside_one_that_takes_turns() -> None:
    x, y, scale = _random(4, 520, 64), _random(3, 64, 520), _random(520, 64)
    fused = nfuser.fuse(_scaled, backend="interpret")
    turned = y.swapaxes(1, 2)
    for pair in ((x, turned), (turned, x)):
        for found, wanted in zip(
            fused(*pair, scale), _scaled(*pair, scale), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)
        (kernel,) = fused.kernels(*pair, scale)
        assert "in turn" in kernel.schedule
        assert "transpose" in kernel.schedule


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_share_a_number_of_the_call(backend: str) -> None:
    _assert_one_kernel(_by_number, backend, _random(5, 40), _random(7, 40), 2.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_kernel_serves_all_extents(backend: str) -> None:
    fused = nfuser.fuse(_scaled, backend=backend)
    for rows, others in ((3, 5), (70, 2), (8, 8), (2, 3000)):
        x, y, scale = _random(rows, 8, 64), _random(others, 8, 64), _random(8, 64)
        for found, wanted in zip(fused(x, y, scale), _scaled(x, y, scale), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert fused.cache_info().runtimes <= 2  # an odd number of rows has one of its own


def _added(x: Array, y: Array, scale: Array) -> tuple[Array, Array]:
    return x * scale, y + scale


def _scaled_twice(x: Array, y: Array, scale: Array) -> tuple[Array, Array]:
    return x * scale, y * scale * scale


def _summed(x: Array, y: Array, scale: Array) -> tuple[Array, Array]:
    return x * scale, (y * scale).sum(0)


@pytest.mark.parametrize("function", [_added, _scaled_twice, _summed])
def test_what_is_not_alike_stays_apart(function: Callable[..., Any]) -> None:
    fused = nfuser.fuse(function, backend="interpret")
    given = _random(3, 40), _random(5, 40), _random(40)
    for found, wanted in zip(fused(*given), function(*given), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert len(fused.kernels(*given)) == 2


def test_queries_and_keys_are_turned_in_one_launch_without_spills() -> None:
    q, k, table = (
        np.empty(shape, ml_dtypes.bfloat16)
        for shape in ((1, 32, 2048, 128), (1, 8, 2048, 128), (2048, 128))
    )
    fused = nfuser.fuse(rope_pair, backend="interpret")
    (kernel,) = fused.kernels(q, k, table, table)
    made = compile_cuda(kernel.source, kernel.name, kernel.signature)
    assert (made.spills, made.local_bytes) == (0, 0)
    assert made.registers <= 64


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_numbers_that_no_part_reads_are_passed_all_the_same(backend: str) -> None:
    def shifted(x: Array, y: Array, n: float) -> tuple[Array, Array]:
        return x + 2, y + 2

    fused = nfuser.fuse(shifted, backend=backend)
    x, y = np.array([1 + 2j, 3j], np.complex64), np.array([1, 5j, 7], np.complex64)
    assert "horizontal" in fused.kernels(x, y, 0.5)[0].schedule
    for found, given in zip(fused(x, y, 0.5), (x, y), strict=True):
        np.testing.assert_array_equal(found, given + 2)


@pytest.mark.parametrize(
    ("first", "second"),
    [((5, 9000), (13, 9000)), ((7, 40), (300, 40)), ((9, 1), (9, 3))],
)
def test_parts_take_turns_on_a_cpu(
    first: tuple[int, ...], second: tuple[int, ...]
) -> None:
    """Each stretch of the range has the share of every part: threads are as busy."""
    x, y = _random(*first), _random(*second)
    fused = nfuser.fuse(_by_number, backend="cpu")
    for found, wanted in zip(fused(x, y, 2.5), _by_number(x, y, 2.5), strict=True):
        np.testing.assert_array_equal(found, wanted)
    (kernel,) = fused.kernels(x, y, 2.5)
    scaled = nfuser.fuse(_alone, backend="cpu")
    alone = [scaled.kernels(a)[0].grid for a in (x, y)]
    assert kernel.grid == max(grid for grid in alone if grid)


def _by_column(x: Array, y: Array) -> tuple[Array, Array]:
    return x * x[:, :1], y * y[:, :1]


def test_short_rows_are_found_by_stretches_of_them() -> None:
    """To find the part of a stretch divides: more work than a short row has."""
    x, y = _random(9001, 2), _random(6000, 3)
    fused = nfuser.fuse(_by_column, backend="cpu")
    for pair in ((x, y), (y, x), (x[:5], y), (x[:0], y)):
        for found, wanted in zip(fused(*pair), _by_column(*pair), strict=True):
            np.testing.assert_array_equal(found, wanted)
    (kernel,) = fused.kernels(x, y)
    assert kernel.grid is not None
    assert kernel.grid[0] == join.MOST_STRETCHES
