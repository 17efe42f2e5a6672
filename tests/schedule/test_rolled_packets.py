# SPDX-License-Identifier: Apache-2.0
"""What is rolled by whole packets goes in packets, as what is joined of two parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser

Array = np.ndarray[Any, Any]


def _doubled(x: Any, shift: int) -> Any:
    return np.roll(x, shift, axis=-1) * 2


def _stencil(x: Any, shift: int) -> Any:
    return np.roll(x, shift, axis=1) + np.roll(x, -shift, axis=1) - 2 * x


def _turned(x: Array, shift: int) -> Array:
    turned = np.roll(x, shift, axis=-1)
    return x + np.where(np.arange(128) < 64, -turned, turned)


def _largest(x: Any, shift: int) -> Any:
    row = x + np.roll(x, shift, axis=-1)
    return row - row.max(axis=-1, keepdims=True)


def _loads(function: Any, x: Array, shift: int) -> tuple[int, int]:
    """Compare with NumPy; return how many reads go in packets, and how many alone."""
    fused = nfuser.fuse(function, backend="interpret")
    np.testing.assert_array_equal(fused(x, shift), function(x, shift))
    (kernel,) = fused.kernels(x, shift)
    body = kernel.source.partition("def ")[2]
    return body.count("load_packet"), body.count("load(")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shift", [8, -16, 64, 128, 136, 0])
@pytest.mark.parametrize(
    ("function", "reads"), [(_doubled, 1), (_stencil, 3), (_turned, 2), (_largest, 2)]
)
def test_whole_packets_roll(function: Any, reads: int, shift: int, dtype: Any) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 128)).astype(dtype)
    packets, alone = _loads(function, x, shift)
    assert alone == 0
    assert packets >= reads


@pytest.mark.parametrize("shift", [1, 3, -5, 12, 127])
@pytest.mark.parametrize("columns", [128, 100, 33])
def test_other_shifts_go_by_elements(shift: int, columns: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, columns)).astype(np.float32)
    assert _loads(_doubled, x, shift) == (0, 1)
    fused = nfuser.fuse(_largest, backend="interpret")
    np.testing.assert_array_equal(fused(x, shift), _largest(x, shift))


def test_one_trace_serves_all_shifts() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 128)).astype(np.float32)
    fused = nfuser.fuse(_doubled, backend="interpret")
    for shift in (8, 3, 16, 5, 64, 60, 8):
        np.testing.assert_array_equal(fused(x, shift), _doubled(x, shift))
