# SPDX-License-Identifier: Apache-2.0
"""Sixty more functions of published kinds, in modules that call each other, fused.

They branch on values, loop over rows, pairs and computed bounds, and read tables. Those
in ``REFUSED`` say by name what they miss; all others give what NumPy gives, and write
what it writes. What takes a compiler long is marked as slow.
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
from tests.end_to_end.plain_programs import choices as c
from tests.end_to_end.plain_programs import motions as m
from tests.end_to_end.plain_programs import pictures as p

if TYPE_CHECKING:
    from collections.abc import Callable


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _picture(n: int = 6, k: int = 7) -> Any:
    return _rng().random((n, k))


def _graph(n: int, edges: int) -> Any:
    return *_rng().integers(0, n, (2, edges)), _rng(1).random(edges)


def _rows(n: int, most: int) -> Any:
    ends = np.concatenate([[0], _rng().integers(0, most + 1, n).cumsum()])
    return (
        _rng(1).random(ends[-1]),
        _rng(2).integers(0, n, ends[-1]),
        ends,
        _rng().random(n),
    )


def _square(n: int = 4) -> Any:
    a = _rng().random((n, n))
    return a @ a.T + n * np.eye(n)


def _chain(n: int = 3, kinds: int = 4, length: int = 6) -> Any:
    r = _rng()
    tables = [r.random(s) + 0.1 for s in ((1, n), (n, n), (n, kinds))]
    start, moves, shown = (x / x.sum(1, keepdims=True) for x in tables)
    return start[0], moves, shown, r.integers(0, kinds, length)


def _swarm() -> Any:
    return {"theta": _rng().random(4), "omega": np.zeros(4)}


GIVEN: dict[Any, Callable[[], tuple[Any, ...]]] = {
    p.sobel: lambda: (_picture(), 0.5),
    p.median3: lambda: (_picture(),),
    p.box_blur: lambda: (_rng().integers(0, 255, (9, 5)), 2),
    p.gaussian_blur: lambda: (_picture(8, 9), 1.0),
    p.opening: lambda: (_picture() > 0.3, 2),
    p.flood: lambda: (_picture() > 0.3, (3, 4)),
    p.equalize: lambda: (_rng().integers(0, 256, (8, 9)).astype(np.uint8),),
    p.otsu: lambda: (_picture(),),
    p.dither: lambda: (_picture(),),
    p.ising: lambda: (
        _rng().integers(0, 2, (6, 8)) * 2 - 1,
        _rng(1).random((5, 6, 8)),
        0.4,
    ),
    p.sandpile: lambda: (_rng().integers(0, 8, (6, 7)),),
    p.wolfram: lambda: (_rng().integers(0, 2, 20), 8),
    p.v_cycle: lambda: (np.zeros(17), _rng().random(17), 1 / 16),
    p.sor: lambda: (np.zeros((6, 7)), _picture()),
    p.crank_nicolson: lambda: (_rng().random(12), 0.5, 5),
    p.hsv_to_rgb: lambda: (_rng().random((4, 5, 3)),),
    p.denoise: lambda: (_picture(),),
    p.shock_tube: lambda: (_rng().random(9) + 1, np.zeros(9), np.ones(9), 0.01, 0.1, 5),
    m.van_der_pol: lambda: (np.array([1.0, 0.0]), 1.0, 0.05, 3),
    m.adaptive: lambda: (np.array([1.0, 2.0]), 1.0),
    m.Tracker.follow: lambda: (m.Tracker(0.1), _rng().random(8)),
    m.biquad: lambda: (
        _rng().random(20),
        np.array([0.2, 0.4, 0.2]),
        np.array([1, -0.3, 0.1]),
    ),
    m.fir: lambda: (_rng().random(20), _rng(1).random(4)),
    m.asian_option: lambda: (1.0, 0.2, _rng().standard_normal((10, 30))),
    m.american_put: lambda: (1.0, np.array([0.9, 1.0, 1.1]), 0.2, 0.03, 4),
    m.garch: lambda: (_rng().standard_normal(20), 0.1, 0.1, 0.8),
    m.running: lambda: (_rng().random(12),),
    m.moving_median: lambda: (_rng().integers(0, 99, 40), 5),
    m.autocorrelation: lambda: (_rng().random(12), 4),
    m.anneal: lambda: (
        _rng().random(3),
        _rng(1).random(20),
        _rng(2).standard_normal((20, 3)),
    ),
    m.metropolis: lambda: (0.0, _rng(2).standard_normal(90), _rng(1).random(90)),
    m.spline: lambda: (np.arange(8.0), _rng().random(8), _rng(1).random(12) * 7),
    m.pendulums: lambda: (_swarm(), 0.01, 3),
    m.springs: lambda: (
        _rng().random((5, 2)),
        np.zeros((5, 2)),
        np.arange(4),
        np.arange(1, 5),
        0.5,
        0.01,
        6,
    ),
    m.goertzel: lambda: (_rng().random(90), 3),
    m.longest_run: lambda: (_rng().random(90) > 0.3,),
    m.peaks: lambda: (_rng().random(20), 0.5),
    c.csr_times: lambda: _rows(6, 3),
    c.csr_rows: lambda: _rows(6, 3),
    c.pagerank: lambda: (*_graph(6, 14)[:2], 6),
    c.bellman_ford: lambda: (*_graph(6, 14), 6, 0),
    c.bfs: lambda: (_picture(7, 7) < 0.3, 0),
    c.dijkstra: lambda: (np.where(_picture(7, 7) < 0.5, _picture(7, 7), np.inf), 0),
    c.components: lambda: (*_graph(8, 5)[:2], 8),
    c.edit_distance: lambda: (_rng().integers(0, 4, 9), _rng(1).integers(0, 4, 7)),
    c.knapsack: lambda: (_rng().integers(1, 5, 6), _rng(1).random(6), 10),
    c.smith_waterman: lambda: (_rng().integers(0, 4, 9), _rng(1).integers(0, 4, 7)),
    c.viterbi: _chain,
    c.forward: lambda: _chain(length=90),
    c.jacobi_eigenvalues: lambda: (_square(3),),
    c.lu: lambda: (_rng().random((3, 3)),),
    c.householder: lambda: (_rng().random((4, 3)),),
    c.conjugate_gradient: lambda: (_square(), _rng().random(4)),
    c.coin_change: lambda: (np.array([1, 2, 5]), 12),
    c.prim: lambda: (_square(6),),
    c.sieve: lambda: (30,),
    c.sinkhorn: lambda: (np.full(4, 0.25), np.full(5, 0.2), _picture(4, 5)),
    c.mixture: lambda: (
        _rng().random(12),
        np.array([0.2, 0.8]),
        np.ones(2),
        np.ones(2) / 2,
    ),
    c.perceptron: lambda: (_picture(70, 2), np.where(_rng(1).random(70) < 0.5, -1, 1)),
    c.tour: lambda: (_picture(6, 2),),
    c.isolated: lambda: (_rng().random(6), _picture(6, 6) > 0.5, 0.2),
}

REFUSED: dict[str, str] = {
    "Tracker.follow": "follow changes self.x outside itself that it also reads",
    "csr_rows": "loop `for k in range\\(start, stop\\)` over single elements",
    "components": "use one name only for what its body assigns to",
    "prim": r"it calls list.append\(\)",
    "isolated": r"changes calls\['count'\] outside itself",
}

QUICK = {
    *("wolfram", "anneal", "metropolis", "csr_times", "csr_rows", "bellman_ford"),
    *("components", "edit_distance", "coin_change", "prim", "isolated", "forward"),
    *("perceptron", "goertzel", "Tracker.follow"),
}
"""What shows how loops, tables and refusals are told; others are of kinds that are
tested where they are compiled.
"""


def _marked(function: Any) -> Any:
    is_quick = function.__qualname__ in QUICK
    return pytest.param(function, marks=[] if is_quick else pytest.mark.slow)


def _parts(x: Any) -> list[Any]:
    if x is None:
        return []
    if isinstance(x, dict):
        return _parts(list(x.values()))
    if isinstance(x, (tuple, list)):
        return [y for one in x for y in _parts(one)]
    return _parts(list(vars(x).values())) if hasattr(x, "__dict__") else [x]


def _same(wanted: Any, found: Any) -> None:
    for one, other in zip(_parts(wanted), _parts(found), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12, equal_nan=True)
        assert np.asarray(one).dtype == np.asarray(other).dtype


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # NumPy's tables
@pytest.mark.filterwarnings("ignore:.*keeps a traced array:RuntimeWarning")
@pytest.mark.parametrize(
    "function", [_marked(f) for f in GIVEN], ids=lambda f: f.__qualname__
)
def test_as_it_is(function: Any) -> None:
    fused = nfuser.fuse(function)
    if function.__qualname__ in REFUSED:
        with pytest.raises(NfuserError, match=REFUSED[function.__qualname__]):
            fused(*GIVEN[function]())
        return
    for _ in range(3):
        given = GIVEN[function]()
        ours, theirs = copy.deepcopy(given), copy.deepcopy(given)
        wanted = function(*theirs)
        found = fused(*ours)
        _same((wanted, theirs), (found, ours))
