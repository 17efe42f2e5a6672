# SPDX-License-Identifier: Apache-2.0
"""Functions of very many arrays, any of which may stretch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import ShapeError
from tests.hand_built import settled

_COUNT = 12


def _total(*arrays: Any) -> Any:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def _calls(count: int) -> int:
    """Return how many functions tracing and concretizing call."""
    arrays = [np.ones(5, np.float32)] * count
    calls = [0]

    def seen(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    def counted(*given: Any) -> Any:
        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            return _total(*given)
        finally:
            sys.setprofile(before)

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        settled(counted, *arrays)
    finally:
        sys.setprofile(before)
    return calls[0]


def test_four_times_the_arrays_are_four_times_the_work() -> None:
    _calls(160)  # the source of a loop of so many turns is read once
    assert _calls(160) < 6 * _calls(40)


@pytest.mark.parametrize("long", range(0, _COUNT, 3))
def test_the_one_that_is_not_1_gives_the_size(long: int) -> None:
    fused = nfuser.fuse(_total, backend="interpret")
    arrays = [np.full(1, k, np.float32) for k in range(_COUNT)]
    arrays[long] = np.arange(7, dtype=np.float32)
    np.testing.assert_array_equal(fused(*arrays), _total(*arrays))


def test_two_that_differ_are_refused_whichever_they_are() -> None:
    arrays = [np.ones(1, np.float32)] * _COUNT
    arrays[2], arrays[10] = np.ones(3, np.float32), np.ones(4, np.float32)
    with pytest.raises(ShapeError, match=r"3.*4"):
        nfuser.fuse(_total)(*arrays)
