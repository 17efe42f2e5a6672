# SPDX-License-Identifier: Apache-2.0
"""Rows that several blocks keep, on a real device: right, and the same each time."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _residual(x: Any, y: Any) -> Any:
    total = x + y
    scale = np.sqrt((total * total).mean(axis=-1, keepdims=True) + 1e-6)
    return total / scale, total


def _channels(x: Any) -> Any:
    mean, spread = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    scale = np.sqrt(spread[None, :, None] + 1e-5)
    return (x - mean[None, :, None]) / scale, mean, spread


def _columns(x: Any) -> Any:
    return x - x.mean(axis=0, keepdims=True)


def _places(x: Any) -> Any:
    return x - x.min(axis=-1, keepdims=True), x.argmax(axis=-1), x.max(axis=-1)


def _normal(x: Any) -> Any:
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return (x - x.mean(axis=-1, keepdims=True)) / spread


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "softmax": (_softmax, ((33, 9000),)),
    "softmax of odd rows": (_softmax, ((300, 9001),)),
    "residual": (_residual, ((70, 8192), (70, 8192))),
    "channels": (_channels, ((12, 29, 1200),)),
    "columns": (_columns, ((9000, 200),)),
    "places": (_places, ((17, 12000),)),
}


@pytest.fixture(params=[8, 1], ids=["in clusters", "in memory"])
def small_blocks(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Let blocks keep little, so that short rows are shared by many."""
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 64)
    most: int = request.param
    use_smaller_gpu(monkeypatch, most_threads=64, cache_bytes=0, most_cluster=most)
    monkeypatch.setattr(reduction_cuda, "STORED", ())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_shared_rows(name: str, dtype: Any) -> None:
    _check(*CASES[name], dtype)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("shape", [(33, 9000), (300, 9001), (5, 70000)])
def test_a_mean_and_the_squares_about_it(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A thread of these blocks has the sums of one block at most.
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 256)
    monkeypatch.setattr(reduction_cuda, "SHARE_KEPT", 8)
    _check(_normal, (shape,), np.float32)


def _check(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], dtype: Any
) -> None:
    cupy: Any = pytest.importorskip("cupy")
    random = np.random.default_rng(1)
    arrays = [random.standard_normal(shape).astype(dtype) for shape in shapes]
    fused = nfuser.fuse(function)
    given = [cupy.asarray(a) for a in arrays]
    (kernel,) = fused.kernels(*given)
    assert "receive" in kernel.source
    expected: Any = function(*(a.astype(np.float64) for a in arrays))
    results = [_listed(fused(*given)) for _ in range(20)]
    for got, want in zip(results[0], _listed(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def _listed(found: Any) -> list[Any]:
    several = found if isinstance(found, tuple) else (found,)
    return [x.get() if hasattr(x, "get") else x for x in several]


@pytest.mark.parametrize(
    ("length", "blocks"), [(65_537, 2), (131_072, 4), (262_144, 8)]
)
def test_all_clusters_of_long_rows_run_at_once(length: int, blocks: int) -> None:
    cupy: Any = pytest.importorskip("cupy")
    x = cupy.random.default_rng(0).standard_normal((200, length), dtype=np.float32)
    fused = nfuser.fuse(_softmax)
    found = fused(x)
    (kernel,) = fused.kernels(x)
    assert f"in clusters, splits={blocks}" in kernel.schedule
    assert kernel.grid is not None
    assert kernel.grid[0] * blocks <= 132
    wanted = _softmax(x.astype(np.float64))
    cupy.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-9)
    cupy.testing.assert_array_equal(found, fused(x))
