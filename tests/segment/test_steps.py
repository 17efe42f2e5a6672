# SPDX-License-Identifier: Apache-2.0
"""Steps of a loop that say the same are cut so that they are the same kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

import nfuser
from nfuser.execution.runtime.caches.shared_cache import forget_all

U = np.random.default_rng(0).random((24, 32))


def _sweeps(u: Any, k: float) -> Any:
    for _ in range(9):
        for axis in (0, 1):
            u = u + k * (np.roll(u, 1, axis) - 2 * u + np.roll(u, -1, axis))
    return u


def test_steps_of_two_sweeps_are_two_kernels() -> None:
    forget_all()
    fused = nfuser.fuse(_sweeps)
    np.testing.assert_allclose(fused(U, 0.1), _sweeps(U, 0.1), rtol=1e-12)
    info = fused.cache_info()
    assert (info.compiled, info.reused > 2) == (2, True)


def test_pieces_leave_no_more_than_the_state_from_which_the_next_begins() -> None:
    fused = nfuser.fuse(_sweeps)
    described = str(fused.explain(U, 0.1))
    assert "T23, T24" not in described
    kernels = fused.lower(U, 0.1).as_text().split("def ")[1:]
    # Two arrays: the state that is read, and the one that is left.
    heads = [text.partition(":")[0] for text in kernels]
    assert all(head.count("T") == 2 for head in heads), heads
