# SPDX-License-Identifier: Apache-2.0
"""What the form of a scalar says of its values holds for whatever sizes there are."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

import nfuser.compiler.ir.scalars.functions as scalar_functions
import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.interval import LARGEST_SIZE, interval

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar

N, M = scalar_symbols.size(0, 0), scalar_symbols.size(0, 1)

FORMS: dict[str, Scalar] = {
    "size": N,
    "sum": N + M - 3,
    "difference": 2 * N - 3 * M + 1,
    "product": N * M - N,
    "half": N // 2,
    "half of what may be negative": (N - 5) // 2,
    "share": (N - 7) // (M + 1),
    "rest": (N - 7) % (M + 1),
    "smaller": scalar_functions.minimum(N - 3, 2 * M),
    "larger": scalar_functions.maximum(N - 3, 1 - M),
}


@pytest.mark.parametrize("name", FORMS)
def test_no_value_lies_outside(name: str) -> None:
    between = interval(FORMS[name])
    assert between is not None
    ends = (0, 1, 2, 7, 2**31, LARGEST_SIZE)
    for n, m in product(ends, repeat=2):
        found = scalar_walk.evaluate(FORMS[name], {N: n, M: m})
        assert between[0] <= found <= between[1]


def test_ends_that_the_form_shows() -> None:
    assert interval(sc.const(-4)) == (-4, -4)
    assert interval(N // 2) == (0, LARGEST_SIZE // 2)
    assert interval(N - 5) == (-5, LARGEST_SIZE - 5)
    assert interval(N % 8) == (0, 7)


def test_what_the_caller_passes_may_be_any_integer() -> None:
    passed = scalar_symbols.scalar_input(0)
    assert interval(passed) is None
    assert interval(passed // 2) is None
    assert interval(N + passed) is None
