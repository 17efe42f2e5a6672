# SPDX-License-Identifier: Apache-2.0
"""What calls cost whose numbers, indices and sizes keep changing.

Each is a ratio to ``x * s`` with a float on a hundred elements, in rounds of both one
after the other; the middle round counts.
"""

# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from itertools import cycle
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROUNDS = 15
CALLS = 300

X = np.random.default_rng(0).standard_normal(100)
COLUMNS = np.random.default_rng(1).standard_normal((100, 1000))
LONG = np.random.default_rng(2).standard_normal(3000)
SIX = {name: X + k for k, name in enumerate("abcdef")}


def _product(x: Any, s: Any) -> Any:
    return x * s


def _doubled(x: Any) -> Any:
    return x * 2


def _numbers(kind: Any) -> Iterator[tuple[Any, ...]]:
    return cycle([(X, kind(1.5 + k / 7), kind(2.5 + k / 3)) for k in range(50)])


def _lengths() -> Iterator[tuple[Any, ...]]:
    # Not in their order: each comes to lie with others of all kernels.
    return cycle([(LONG[: 1 + 7 * k % 3000],) for k in range(3000)])


CASES: dict[str, tuple[Callable[..., Any], Callable[[], Iterator[tuple[Any, ...]]]]] = {
    "quotient of floats": (lambda x, s, t: x * (s / t), lambda: _numbers(float)),
    "square of a float": (lambda x, s, t: x * s**2, lambda: _numbers(float)),
    "inverse of floats": (
        lambda x, s, t: x * (1.0 / (2 * s * t)),
        lambda: _numbers(float),
    ),
    "quotient of float64": (lambda x, s, t: x * (s / t), lambda: _numbers(np.float64)),
    "square of a float64": (lambda x, s, t: x * s**2, lambda: _numbers(np.float64)),
    "inverse of float64": (
        lambda x, s, t: x * (1.0 / (2 * s * t)),
        lambda: _numbers(np.float64),
    ),
    "one of 1,000 columns": (
        lambda x, k: x[:, k],
        lambda: cycle([(COLUMNS, k) for k in range(1000)]),
    ),
    "one of 3,000 lengths": (_doubled, _lengths),
    "a dict of six arrays": (
        lambda d: d["a"] * d["b"] + d["c"] * d["d"] + d["e"] * d["f"],
        lambda: cycle([(SIX,)]),
    ),
}


def _seconds(fused: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> float:
    """Return the seconds of each call, ``CALLS`` of them."""
    given = [args for args, _ in zip(calls, range(CALLS), strict=False)]
    start = perf_counter()
    for args in given:
        fused(*args)
    return (perf_counter() - start) / CALLS


class ChangingCalls:
    """Functions that have been called with all that changes once."""

    params = tuple(CASES)
    param_names = ("case",)

    def setup(self, case: str) -> None:
        function, self.calls = CASES[case]
        self.base = nfuser.fuse(_product)
        self.fused = nfuser.fuse(function)
        self.numbers = cycle([(X, 1.5 + k) for k in range(50)])
        self.given = self.calls()
        for _ in range(10):
            _seconds(self.base, self.numbers)
            _seconds(self.fused, self.given)

    def track_times_a_product(self, case: str) -> float:
        rounds = [
            (_seconds(self.fused, self.given), _seconds(self.base, self.numbers))
            for _ in range(ROUNDS)
        ]
        return median(mine / other for mine, other in rounds)

    def track_share_of_native_calls(self, case: str) -> float:
        before = self.fused.native_calls
        _seconds(self.fused, self.given)
        return (self.fused.native_calls - before) / CALLS


class FirstSight:
    """Lengths that a function has not been called with."""

    def setup(self) -> None:
        self.base = nfuser.fuse(_product)
        self.numbers = cycle([(X, 1.5 + k) for k in range(50)])
        _seconds(self.base, self.numbers)

    def track_times_a_product(self) -> float:
        return median(mine / other for mine, other in self._rounds())

    def track_times_a_product_on_average(self) -> float:
        """Plans that are made on the way weigh in full here."""
        rounds = self._rounds()
        return sum(mine for mine, _ in rounds) / sum(other for _, other in rounds)

    def _rounds(self) -> list[tuple[float, float]]:
        fused, given = nfuser.fuse(_doubled), _lengths()
        _seconds(fused, cycle([(LONG,)]))  # the kernel is known
        return [
            (_seconds(fused, given), _seconds(self.base, self.numbers))
            for _ in range(3000 // CALLS)
        ]
