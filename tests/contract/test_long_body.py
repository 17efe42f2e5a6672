# SPDX-License-Identifier: Apache-2.0
"""A step of an ocean model: 600 operations, 40 assignments to parts, few kernels."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import nfuser

sys.path.append(str(Path(__file__).parents[2]))  # after what is installed

from asv_bench.programs.program import LONG_BODY, copied, listed

_MOST_KERNELS = 40  # fewer than 20 are the aim


@pytest.mark.slow
def test_a_step_of_an_ocean_model_is_numpys() -> None:
    given = LONG_BODY.given((12, 9, 6))
    theirs = copied(given)
    wanted = listed(LONG_BODY.plain(*theirs))
    fused = nfuser.fuse(LONG_BODY.plain)
    for _ in range(3):  # the third call takes another way than the first
        ours = copied(given)
        found = listed(fused(*ours))
        pairs = zip((*wanted, *theirs), (*found, *ours), strict=True)
        for one, other in pairs:
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)
    assert fused.cache_info().traces == 1


def test_its_operations_share_kernels() -> None:
    shown = nfuser.fuse(LONG_BODY.plain).explain(*LONG_BODY.given((200, 100, 30)))
    assert shown.kernels <= _MOST_KERNELS
