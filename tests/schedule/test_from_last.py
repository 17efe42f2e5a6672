# SPDX-License-Identifier: Apache-2.0
"""Ways back begin with the last rows, and compute what they would from the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import config
from nfuser.execution.device.describe.descriptor import CPU, Library
from nfuser.execution.runtime.place import find_place

if TYPE_CHECKING:
    from collections.abc import Callable


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _columns(x: Any) -> Any:
    return x - x.mean(axis=0, keepdims=True)


def _turned(x: Any) -> Any:
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * 2.0


def _tanh(x: Any) -> Any:
    return np.tanh(x) * 2


def _sums(x: Any) -> Any:
    return x.sum(axis=1)


@pytest.mark.parametrize("function", [_softmax, _columns, _turned, _tanh, _sums])
@pytest.mark.parametrize("shape", [(37, 100), (1, 8), (5, 3), (300, 64)])
def test_all_elements_are_met(
    function: Callable[..., Any], shape: tuple[int, int]
) -> None:
    x = np.random.default_rng(0).random(shape, "float32")
    fused = nfuser.fuse(function, backend="interpret")
    fused.goes_back = True
    np.testing.assert_allclose(fused(x), function(x), rtol=2e-6, atol=1e-6)
    schedules = [str(k.schedule) for k in fused.kernels(x)]
    assert all("from the last" in text for text in schedules), schedules


def test_the_way_back_goes_from_the_last_row(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).random((37, 100), "float32")
    with config.override(dump=frozenset({"source"})):
        _, pull = nfuser.vjp(nfuser.fuse(_softmax, backend="interpret"), x)
        there = capfd.readouterr().err
        pull(x)
        back = capfd.readouterr().err
    assert "splits=1" in there
    assert "from the last" not in there
    assert "from the last" in back


def test_threads_of_a_cpu_have_their_own_way() -> None:
    places = [
        find_place(Library.NUMPY, CPU, backend, has_arrays=True)
        for backend in ("cpu", "interpret")
    ]
    assert [place.from_last is place for place in places] == [True, False]
    assert [place.from_last.target.from_last for place in places] == [False, True]


def test_blocks_that_share_a_row_begin_with_the_first() -> None:
    x = np.empty((2, 1 << 19), np.float32)
    fused = nfuser.fuse(_softmax, backend="interpret")
    fused.goes_back = True
    (kernel,) = fused.kernels(x)
    assert "splits=any" in str(kernel.schedule)
    assert "from the last" not in str(kernel.schedule)
