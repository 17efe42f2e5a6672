# SPDX-License-Identifier: Apache-2.0
"""Rows that a block keeps: what steps beyond their end hold, and what is copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
from nfuser.codegen.numba.compile_cuda import compile_cuda
from nfuser.compiler.lower.lowering import lower
from tests.schedule.run_schedule import CUDA, Call

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _late(x: Array, y: Array) -> Array:
    """Read ``y`` in the second pass first, and fold what is made of it without care."""
    above = (y - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
    return x - y * (y + above).max(axis=1, keepdims=True)


def _apart(x: Array, y: Array) -> Array:
    both = x.sum(axis=1, keepdims=True) + y.sum(axis=1, keepdims=True)
    return x - y * (y - both).max(axis=1, keepdims=True)


def _truth(x: Array, y: Array) -> Array:
    both = x.sum(axis=1, keepdims=True) + y.sum(axis=1, keepdims=True)
    return x - y * (y - both > 3).any(axis=1, keepdims=True)


@pytest.mark.parametrize("function", [_late, _apart, _truth])
@pytest.mark.parametrize("length", [36, 64, 7, 1000])
@pytest.mark.parametrize("is_strided", [False, True])
def test_steps_beyond_the_end_fold_what_was_loaded(
    function: Callable[[Array, Array], Array], length: int, *, is_strided: bool
) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((3, length), np.float32) - 9
    y = random.standard_normal((3, length + is_strided), np.float32)[:, :length] - 9
    fused = nfuser.fuse(function, backend="interpret")
    np.testing.assert_allclose(fused(x, y), function(x, y), rtol=2e-4, atol=2e-4)


def _padded(x: Array, y: Array) -> tuple[Array, Array]:
    wide = np.pad(y, ((0, 0), (8, 8)))
    return x + wide, _softmax(x) * wide


def test_what_has_a_guard_is_not_copied_without_it() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 16384), np.float32)
    y = random.standard_normal((2, 16368), np.float32)
    fused = nfuser.fuse(_padded, backend="interpret")
    for found, wanted in zip(fused(x, y), _padded(x, y), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def _mixed(x: Array, y: Array) -> Array:
    return _softmax(x + y) * x


def _weighted(x: Array, w: Array, b: Array) -> Array:
    return _softmax(x * w + b) * w + b


WIDE = np.empty((4096, 40960), ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("function", "arrays"),
    [
        (
            _mixed,
            [
                np.empty((4096, 16384), ml_dtypes.bfloat16),
                np.empty((4096, 16384), np.float32),
            ],
        ),
        (_weighted, [WIDE, *np.empty((2, 40960), np.float32)]),
        (_weighted, [WIDE, WIDE[0], WIDE[1]]),
    ],
    ids=["two widths", "f32 weights", "bf16 weights"],
)
def test_shared_memory_has_room_for_what_is_copied(
    function: Callable[..., Any], arrays: list[Array]
) -> None:
    call = Call(function, *arrays, computes=False)
    launch = lower(call.apply(call.heuristic())).launch
    assert launch.shared_bytes <= CUDA.shared_bytes
    (kernel,) = nfuser.fuse(function, backend="interpret").kernels(*arrays)
    assert compile_cuda(kernel.source, kernel.name, kernel.signature).cubin


def _both_kinds(x: Array) -> tuple[Array, Array]:
    total = (x * x).sum(axis=1, keepdims=True) + x.dtype.type(1)
    return x / total, x.astype(np.float32) / total.astype(np.float32)


def _other_kind_first(x: Array) -> tuple[Array, Array]:
    narrow, wide = _both_kinds(x)
    return wide, narrow


@pytest.mark.parametrize("function", [_both_kinds, _other_kind_first])
def test_quotients_to_16_and_to_32_bits_have_inverses_of_their_own(
    function: Callable[[Array], tuple[Array, Array]],
) -> None:
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(ml_dtypes.bfloat16)
    found = nfuser.fuse(function, backend="interpret")(x)
    for made in found:
        exact = x.astype(np.float64)
        exact /= (exact * exact).sum(axis=1, keepdims=True) + 1
        rtol = 1e-2 if made.dtype != np.float32 else 1e-5
        np.testing.assert_allclose(made.astype(np.float64), exact, rtol=rtol)
