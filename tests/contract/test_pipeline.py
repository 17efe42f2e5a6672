# SPDX-License-Identifier: Apache-2.0
"""The compiler, written as one column, gives the kernels that ``fuse`` runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

import nfuser
from nfuser.compiler.schedule.facts.target import CPU, H200
from nfuser.frontend.pipeline import kernels
from tests.fusions import CASES

if TYPE_CHECKING:
    from nfuser.compiler.schedule.facts.target import Target

PLAIN = ["gelu_bias", "swiglu_f16", "softmax", "batch_norm", "softmax_of_columns"]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("backend", "target"), [("cpu", CPU), ("interpret", H200)])
def test_the_column_gives_what_fuse_gives(
    name: str, backend: str, target: Target
) -> None:
    case = CASES[name]
    aligned = [_aligned(array) for array in case.arguments()]
    found = kernels(case.function, *aligned, target=target)
    lowered = nfuser.fuse(case.function, backend=backend).lower(*aligned)
    assert [source.code for source in found] == [s.code for s in lowered.sources]


def test_a_smaller_chip_is_another_value() -> None:
    case = CASES["softmax"]
    arrays = [_aligned(array) for array in case.arguments()]
    few = replace(H200, multiprocessors=1, registers=1 << 10)
    whole, less = (kernels(case.function, *arrays, target=t) for t in (H200, few))
    assert [s.code for s in whole] != [s.code for s in less]


def _aligned(array: np.ndarray) -> np.ndarray:
    """Return a copy that begins at a multiple of 64 bytes."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made
