# SPDX-License-Identifier: Apache-2.0
"""Rows that a cluster of blocks shares: which, by how many blocks, and if right."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import nfuser
from nfuser.compiler.ir.scalars.scalar import const
from nfuser.compiler.ir.scalars.symbols import knob, size
from nfuser.compiler.lower.kernel.kernel_ir import LaunchShape
from nfuser.compiler.schedule.facts.target import H200, gpu
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from nfuser.execution.runtime.planning.fit_clusters import fit_clusters
from tests.schedule import run_schedule
from tests.schedule.run_schedule import Call
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _columns(x: Any) -> Any:
    return x - x.mean(axis=0, keepdims=True)


def _centred(x: Any) -> Any:
    return x - x.mean(axis=-1, keepdims=True)


def _normal(x: Any) -> Any:
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return (x - x.mean(axis=-1, keepdims=True)) / spread


def _places(x: Any) -> Any:
    return x - x.min(axis=-1, keepdims=True), x.argmax(axis=-1), x.max(axis=-1)


def _chosen(function: Callable[..., Any], *shape: int) -> CudaReduction:
    heuristic = Call(function, np.empty(shape, np.float32), computes=False).heuristic()
    assert isinstance(heuristic, CudaReduction)
    return heuristic


@pytest.mark.parametrize(
    ("length", "blocks"), [(65_536, 2), (131_072, 4), (200_704, 8), (262_144, 8)]
)
def test_a_cluster_has_as_many_blocks_as_registers_ask_for(
    length: int, blocks: int
) -> None:
    heuristic = _chosen(_softmax, 4096, length)
    assert heuristic.cluster
    assert heuristic.known.splits == heuristic.geometry.splits == blocks
    assert "in clusters" in str(heuristic)


def test_longer_rows_and_columns_are_shared_through_memory() -> None:
    for function, shape in ((_softmax, (512, 400_000)), (_columns, (100_000, 256))):
        heuristic = _chosen(function, *shape)
        assert heuristic.is_shared
        assert not heuristic.cluster


def test_older_gpus_have_no_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpu((8, 0), 108, 163 << 10).most_cluster == 1
    monkeypatch.setattr(run_schedule, "CUDA", replace(H200, most_cluster=1))
    heuristic = _chosen(_softmax, 1024, 262_144)
    assert heuristic.is_shared
    assert not heuristic.cluster


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [_softmax, _centred, _normal, _places])
@pytest.mark.parametrize("shape", [(9, 9000), (70, 9001), (1, 9002)])
def test_clusters_take_row_after_row(
    monkeypatch: pytest.MonkeyPatch,
    function: Callable[..., Any],
    shape: tuple[int, int],
    dtype: Any,
) -> None:
    monkeypatch.setattr(reduction_cuda, "SHARE_THREADS", 64)
    monkeypatch.setattr(reduction_cuda, "STORED", ())
    use_smaller_gpu(monkeypatch, most_threads=64, cache_bytes=0, multiprocessors=16)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    fused = nfuser.fuse(function, backend="interpret")
    (kernel,) = fused.kernels(x)
    assert "in clusters" in kernel.schedule
    assert kernel.source.count("cluster_barrier()") == 1
    found, wanted = fused(x), function(x.astype(np.float64))
    pairs = [(found, wanted)]
    if isinstance(found, tuple):
        pairs = list(zip(found, cast("tuple[Any, ...]", wanted), strict=True))
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


class _Device:
    """A loaded kernel on a device that runs ``count`` clusters at once."""

    def __init__(self, count: int) -> None:
        self.count = count

    def clusters_at_once(self, size: int, threads: int, shared_bytes: int) -> int:
        assert (size, threads, shared_bytes) == (8, 512, 4096)
        return self.count


@pytest.mark.parametrize(
    ("at_once", "rounds"), [(16, 7), (15, 7), (13, 8), (200, 1), (0, None)]
)
def test_no_cluster_waits_for_another_to_end(at_once: int, rounds: int | None) -> None:
    rows, each = size(0, 0), knob("rounds")
    grid, block = ((rows - 1) // each + 1, const(8)), (const(512), const(1))
    launch = LaunchShape(grid, block, 512, 1, cluster=8, shared_bytes=4096)
    source = SimpleNamespace(form=SimpleNamespace(launch=launch))
    for device in (_Device(at_once), None):
        made = cast("Any", SimpleNamespace(source=source, executable=device))
        found = fit_clusters(made, {rows: 100, each: 50})
        assert found == ({each: rounds} if device and rounds else {})
