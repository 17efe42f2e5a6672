# SPDX-License-Identifier: Apache-2.0
"""Few rows that no block keeps: blocks share them, in a launch for each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.facts.target import H200
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.compiler.schedule.reduction.cuda import choose as reduction_cuda
from tests.schedule.run_schedule import Call
from tests.smaller_gpu import use_smaller_gpu

if TYPE_CHECKING:
    from collections.abc import Callable


def _standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5), x.max(axis=0)


def _normalised(x: Any) -> Any:
    centred = x - x.mean()
    return centred / np.sqrt((centred * centred).mean()), x.argmax()


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum(), e.sum()


def _batch_norm(x: Any, weight: Any, bias: Any, cotangent: Any) -> Any:
    def forward(x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=0)
        variance = (centred * centred).mean(axis=0)
        return centred / np.sqrt(variance + 1e-5) * weight + bias

    value, pull = nfuser.vjp(forward, x, weight, bias)
    return value, *pull(cotangent)


SMALL = {
    _standardised: ((1500, 37),),
    _normalised: ((80_001,),),
    _softmax: ((32_768,),),
    _batch_norm: ((1500, 40), (40,), (40,), (1500, 40)),
}


def _never(*_: object) -> bool:
    return False


@pytest.fixture
def keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave no form but those that read rows anew, on a GPU of a few processors."""
    monkeypatch.setattr(reduction_cuda, "SHARE_KEPT", 0)
    monkeypatch.setattr(reduction_cuda, "STORED", ())
    monkeypatch.setattr(reduction_cuda, "_is_read_again", _never)
    use_smaller_gpu(monkeypatch, multiprocessors=6, registers=4096)


@pytest.mark.usefixtures("keeps_nothing")
@pytest.mark.parametrize("function", SMALL)
def test_passes_over_parts_are_launches(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) + 3 for shape in SMALL[function]
    ]
    fused = nfuser.fuse(function, backend="interpret")
    found = fused(*arrays)
    (kernel,) = fused.kernels(*arrays)
    assert "in phases" in str(kernel.schedule)
    # What the last pass reads first is what the pass before read last.
    assert " >= 0:" in str(kernel)
    wanted = nfuser.fuse(function)(*(a.astype(np.float64) for a in arrays))
    for one, other in zip(found, wanted, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * scale)


def _chosen(
    function: Callable[..., Any], *shapes: Any, dtype: Any = np.float32
) -> CudaReduction:
    arrays = (np.empty(shape, dtype) for shape in shapes)
    heuristic = Call(function, *arrays, computes=False).heuristic()
    assert isinstance(heuristic, CudaReduction)
    return heuristic


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (_normalised, ((1 << 27,),)),
        (_standardised, ((1 << 20, 64),)),
    ],
)
def test_one_row_that_no_device_keeps_has_all_multiprocessors(
    function: Callable[..., Any], shapes: Any
) -> None:
    heuristic = _chosen(function, *shapes)
    assert heuristic.phases
    tiles = 1 if len(shapes[0]) == 1 else 64 // (heuristic.geometry.keep * 4)
    assert tiles * heuristic.geometry.splits >= 2 * H200.multiprocessors


def _way_back(x: Any, cotangent: Any, mean: Any, weight: Any) -> Any:
    def forward(x: Any, weight: Any, bias: Any) -> Any:
        return (x - mean) * weight + bias

    slopes = nfuser.vjp(forward, x, weight, mean)[1](cotangent)
    return slopes[0] - slopes[1] * x - slopes[2], slopes[1]


def test_narrow_packets_of_columns_are_whole_lines_side_by_side() -> None:
    shapes = (16384, 4096), (16384, 4096), (4096,), (4096,)
    heuristic = _chosen(_way_back, *shapes, dtype=ml_dtypes.bfloat16)
    assert heuristic.phases
    assert (heuristic.width, heuristic.geometry.keep) == (4, 32)


def test_rows_that_blocks_keep_are_read_once() -> None:
    assert _chosen(_standardised, (16384, 4096)).is_shared
    assert not _chosen(_softmax, (8192,)).phases


def _scaled(x: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=0))


def test_columns_side_by_side_are_divided_by_products() -> None:
    x = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    x[:, 3] = 0
    fused = nfuser.fuse(_scaled, backend="interpret")
    with np.errstate(all="ignore"):
        wanted = _scaled(x.astype(np.float64))
        np.testing.assert_allclose(fused(x)[:, 4:], wanted[:, 4:], rtol=1e-6)
        assert np.isnan(fused(x)[:, 3]).all()
    (kernel,) = fused.kernels(x)
    assert kernel.source.count("divide(float64(1.0)") == 1
    assert "divide(t0" not in kernel.source
