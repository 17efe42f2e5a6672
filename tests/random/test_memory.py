# SPDX-License-Identifier: Apache-2.0
"""Draws touch no memory but that of what is wanted."""

# What is drawn has no static type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.random import default_rng
from tests.random.philox import words_at


def test_a_bound_call_draws_into_its_output_without_a_copy() -> None:
    x, out = np.zeros((1 << 9, 1 << 10)), np.empty((1 << 9, 1 << 10))
    fused = nfuser.fuse(lambda x, rng: x + rng.normal(size=x.shape))
    rng, other = default_rng(7), default_rng(7)
    draw = fused.bind(x, rng, out=out)
    for _ in range(3):
        draw()
        np.testing.assert_array_equal(out, fused(x, other))
    tracemalloc.start()
    assert draw() is out
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < out.nbytes / 8
    # Where the output shares memory with what is read, it is written after all is.
    over = x[:8]
    over[...] = 1.0
    wanted = fused(over, default_rng(3))
    np.testing.assert_array_equal(fused.bind(over, default_rng(3), out=over)(), wanted)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_a_part_of_a_draw_is_all_that_is_drawn(backend: Any) -> None:
    fused = nfuser.fuse(lambda i, n, rng: rng.random(n)[i], backend=backend)
    part = nfuser.fuse(lambda n, rng: rng.random((n, 4))[n - 3 :, 1], backend=backend)
    for count in ((1 << 32) + 5, (1 << 36) + 9):
        at = np.array([0, 5, (1 << 32) - 1, 1 << 32, (1 << 32) + 4, count - 1])
        words = words_at(3, 0, 0, at.astype(np.uint64), 64)
        found = fused(at, count, default_rng(3))
        np.testing.assert_array_equal(found, (words >> np.uint64(11)) * 2.0**-53)
        rows = np.arange(count - 3, count, dtype=np.uint64)
        words = words_at(3, 0, 0, rows * np.uint64(4) + np.uint64(1), 64)
        found = part(count, default_rng(3))
        np.testing.assert_array_equal(found, (words >> np.uint64(11)) * 2.0**-53)
