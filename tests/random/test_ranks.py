# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.compiler.segment import REPLICATED, Sharding
from nfuser.nn import dropout
from nfuser.random import of
from tests.host.spread_fusions import FusedCase

if TYPE_CHECKING:
    from nfuser.compiler.segment.sharding import Layout

ROWS, COLUMNS = Sharding(axis=0), Sharding(axis=1)
X = np.linspace(0.5, 1, 144, dtype=np.float32).reshape(12, 12)
SPREAD: tuple[tuple[tuple[int, ...], Layout], ...] = (
    ((4,), (ROWS,)),
    ((4,), (COLUMNS,)),
    ((2, 2), (ROWS, COLUMNS)),
    ((2, 3), (COLUMNS, ROWS)),
    ((3, 1, 2), (ROWS, REPLICATED, COLUMNS)),
)


def _drawn(x: Any) -> Any:
    u = of(7).random(x.shape, np.float32)
    return x + u, u * dropout(x, 0.5, rng=of(3)), of(5).integers(0, 99, x.shape)


def _folded(x: Any) -> Any:
    """Draw, and read what is drawn along both axes: it is computed in two kernels."""
    u = of(7).random(x.shape, np.float32)
    return (u * x).sum(axis=0), (u - u.sum(axis=1, keepdims=True)).sum(axis=1)


@pytest.mark.parametrize(("mesh", "layout"), SPREAD)
def test_a_rank_draws_the_numbers_of_its_part(
    mesh: tuple[int, ...], layout: Layout
) -> None:
    FusedCase(_drawn, [X], {0: layout}, mesh=mesh).check(tolerance=0)
    FusedCase(_folded, [X], {0: layout}, mesh=mesh).check(tolerance=2e-6)
