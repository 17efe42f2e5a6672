# SPDX-License-Identifier: Apache-2.0
"""What is kept for torch, which may be imported later or never."""

# pyright: reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import numpy as np

import nfuser
from nfuser.frontend.fuse import dynamo


def test_functions_made_in_one_place_wait_for_torch_once() -> None:
    waiting: list[int] = []
    for _ in range(20):
        nfuser.fuse(lambda x: x + 1)(np.ones(3))
        waiting.append(len(dynamo._waiting))
    assert waiting[1] == waiting[-1]
