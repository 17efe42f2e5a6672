# SPDX-License-Identifier: Apache-2.0
"""Fifty functions of published kinds, in modules that call each other, fused.

Those in ``REFUSED`` say by name what they miss; all others give what NumPy gives, and
write what it writes.
"""

# Programs are given, and give, what has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import NfuserError
from tests.end_to_end.plain_programs import grids, series, tables

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(11)


def _plane() -> Any:
    return RNG.random((6, 7))


def _line(n: int = 12) -> Any:
    return RNG.random(n) + 0.5


def _square(n: int = 5) -> Any:
    a = RNG.random((n, n))
    return a @ a.T + n * np.eye(n)


def _with_gaps() -> Any:
    x = _line()
    x[3] = x[7] = np.nan
    return x


GIVEN: dict[Any, Callable[[], tuple[Any, ...]]] = {
    grids.laplacian: lambda: (_plane(),),
    grids.reflect: lambda: (_plane(),),
    grids.diffuse: lambda: (_plane(), 5, 0.1),
    grids.gray_scott: lambda: (_plane(), _plane(), 4),
    grids.wave_1d: lambda: (_line(), _line(), 0.5, 6),
    grids.upwind: lambda: (_line(), 1.0, 0.01, 0.1, 7),
    grids.lax_wendroff: lambda: (_line(), 0.4),
    grids.burgers: lambda: (_line(), 0.001, 0.1, 0.07, 5),
    grids.laplace_to: lambda: (_plane(), 1e-2),
    grids.red_black: lambda: (_plane(), _plane(), 3),
    grids.life: lambda: (RNG.integers(0, 2, (8, 9)), 4),
    grids.shallow_water: lambda: (_plane(), _plane(), _plane(), 0.1, 3),
    grids.smooth_then_normalize: lambda: (_plane(), 3),
    grids.keep_state: lambda: (_plane(),),
    grids.sponge: lambda: (_plane(), 2),
    grids.bilinear: lambda: (_plane(), RNG.random(9) * 5, RNG.random(9) * 4),
    grids.filtered_columns: lambda: (_plane(),),
    series.Kalman.update: lambda: (series.Kalman(12), _line(), 0.1, 0.2),
    series.exponential: lambda: (_line(), 0.3),
    series.thomas: lambda: (_line(), _line() + 3, _line(), _line()),
    series.euler: lambda: (_line(3), 0.5, 0.1, 8),
    series.runge_kutta: lambda: (_line(2), 0.1, 5),
    series.lorenz: lambda: (_line(3), 10),
    series.moving_sum: lambda: (_line(), 3),
    series.clip_outliers: lambda: (_line(40), 1.0),
    series.fill_missing: lambda: (_with_gaps(),),
    series.log_returns: lambda: (_line(),),
    series.drawdown: lambda: (_line(),),
    series.logistic_map: lambda: (_line() / 2, 3.2, 9),
    series.alternate: lambda: (_line(),),
    series.bubble_pass: lambda: (_line(),),
    series.newton: lambda: (_line(), 1e-9),
    series.horner: lambda: (_line(4), _line()),
    series.collatz: lambda: (RNG.integers(1, 30, 12),),
    series.trend: lambda: (_line(),),
    series.damped: lambda: (_plane(), 4),
    tables.standardize: lambda: (_plane(),),
    tables.row_norms: lambda: (_plane(),),
    tables.distances: lambda: (RNG.random((6, 3)),),
    tables.jacobi_solve: lambda: (_square(), _line(5), 10),
    tables.power_iteration: lambda: (_square(), 10),
    tables.gram_schmidt: lambda: (_square(),),
    tables.cholesky_by_hand: lambda: (_square(),),
    tables.k_means: lambda: (RNG.random((20, 2)), RNG.random((3, 2)), 3),
    tables.one_hot: lambda: (RNG.integers(0, 4, 9), 4),
    tables.relu_layer: lambda: (_plane() - 0.5, RNG.random((7, 3)) - 0.5, _line(3)),
    tables.batch_norm: lambda: (_plane(), _line(7), _line(7), RNG.random((2, 7))),
    tables.sgd: lambda: (_line(7), _plane(), _line(6), 0.01, 6),
    tables.max_pool: lambda: (_plane(),),
    tables.convolve: lambda: (_plane(), RNG.random((3, 3))),
    tables.threshold_image: lambda: (_plane(), 0.3, 0.7),
    tables.note: lambda: (_plane(),),
    tables.upper_mean: lambda: (_square(),),
    tables.sorted_rows: lambda: (_plane(),),
    tables.blend: lambda: (_plane(), _plane(), _line(5)),
}

REFUSED: dict[str, str] = {}


def _outside() -> list[Any]:
    return [grids.state, *tables.counts.values()]


def _parts(x: Any) -> list[Any]:
    if x is None:
        return []
    if isinstance(x, (tuple, list)):
        return [y for one in x for y in _parts(one)]
    return list(vars(x).values()) if hasattr(x, "__dict__") else [x]


def _same(wanted: Any, found: Any) -> None:
    for one, other in zip(_parts(wanted), _parts(found), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, equal_nan=True)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # arange's
@pytest.mark.parametrize("function", GIVEN, ids=lambda f: f.__qualname__)
def test_as_it_is(function: Any) -> None:
    assert len(GIVEN) >= 50
    fused = nfuser.fuse(function)
    if function.__qualname__ in REFUSED:
        with pytest.raises(NfuserError, match=REFUSED[function.__qualname__]):
            fused(*GIVEN[function]())
        return
    for _ in range(3):
        given = GIVEN[function]()
        ours, theirs = copy.deepcopy(given), copy.deepcopy(given)
        before = [x.copy() for x in _outside()]
        wanted = function(*theirs)
        after = [x.copy() for x in _outside()]
        for x, was in zip(_outside(), before, strict=True):
            x[...] = was
        found = fused(*ours)
        _same((wanted, theirs), (found, ours))
        _same(after, _outside())
