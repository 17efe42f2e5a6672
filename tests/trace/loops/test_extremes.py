# SPDX-License-Identifier: Apache-2.0
"""Python's max and min choose among numbers of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError

A = np.array([2, 0, 1, 3, 3, 1, 0, 2])
B = np.array([1, 0, 3, 3, 1, 2])
X = np.array([0.5, np.nan, -0.0, 0.0, 7.0])


def aligned(a: Any, b: Any) -> Any:
    best = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = np.where(a[i - 1] == b[j - 1], 3, -3)
            beside = max(best[i - 1, j] - 2, best[i, j - 1] - 2)
            best[i, j] = max(best[i - 1, j - 1] + same, beside, 0)
    return best


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_tables_are_filled_by_what_is_chosen(backend: str) -> None:
    fused = nfuser.fuse(aligned, backend=backend)
    for a, b in ((A, B), (B, A)):
        np.testing.assert_array_equal(fused(a, b), aligned(a, b))


def test_the_first_of_equals_is_chosen_and_what_compares_with_nothing_stays() -> None:
    def chosen(x: Any) -> Any:
        return (
            *(max(x[0], x[1]), max(x[1], x[0]), min(x[1], x[4], 2)),
            *(max(x[2], x[3]), max(x[3], x[2]), min(x[2], 0.0), max(x[0], 0, 9)),
        )

    found, wanted = nfuser.fuse(chosen)(X), chosen(X)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_numbers_of_several_dtypes_are_refused() -> None:
    def mixed(a: Any, x: Any) -> Any:
        return max(a[0], x[0])

    with pytest.raises(TraceError, match=r"write np.maximum\(a, b\)"):
        nfuser.fuse(mixed)(A, X)
