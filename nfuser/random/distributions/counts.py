# SPDX-License-Identifier: Apache-2.0
"""Numbers of events, by Hörmann's transformed rejection in a fixed number of rounds.

A round proposes an integer from two uniform numbers, and takes it with a probability of
0.73 at least. Each element has twelve rounds, whichever it needs: all of them are
refused with a probability below 1.4e-7, and then the number is the middle. Where the
mean is below 16 the number is the quantile of one word instead, looked for among 60
integers.
"""

# NumPy's functions of values of any type have no known types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.random.distributions.gamma import SLOTS as GAMMA_SLOTS
from nfuser.random.distributions.gamma import standard_gamma
from nfuser.random.distributions.uniform import random
from nfuser.random.distributions.words import (
    Array,
    Words,
    at_least,
    from_slot,
    is_number,
    probability,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 12
SLOTS = 2 * ROUNDS
"""Words that one number takes: one is enough where the mean is known to be small."""

_FEW = 16.0
_QUANTILES = 60  # a Poisson number of mean 16 is larger with a probability of 1e-16
_NOTHING = 1e-18  # a probability that no word can tell from 0
_HALF_LOG_PI = 0.5723649429247001
_MOST = 2.0**63 - 1024


class _Hat(NamedTuple):
    """What is proposed: the widths of its tails and middle, its centre, its height."""

    tails: Array
    middle: Array
    centre: Array
    height: Array


def poisson(words: Words, lam: Any = 1.0) -> Array:
    """Return numbers of events where ``lam`` are expected."""
    at_least("lam", lam, 0)
    return _poisson(words, _float(lam)).astype(np.int64)


def _poisson(words: Words, mean: Array) -> Array:
    few, many = np.minimum(mean, _FEW), np.maximum(mean, _FEW)

    def by_quantile() -> Array:
        return _quantile(words, np.exp(-few), lambda k: few / k)

    def by_rounds() -> Array:
        width = 0.931 + 2.53 * np.sqrt(many)
        height = 1.1239 + 1.1328 / (width - 3.4)
        hat = _Hat(0.02483 * width - 0.059, width, many + 0.43, height)
        return _rounds(
            words, hat, np.floor(many), _MOST, lambda k: -_far(k, many) - _root(k)
        )

    return _either(mean, by_quantile, by_rounds)


def binomial(words: Words, n: Any, p: Any) -> Array:
    """Return how many of ``n`` trials succeed, each with probability ``p``."""
    at_least("n", n, 0)
    probability("p", p)
    trials, p = _float(n), _float(p)
    rare = np.minimum(p, 1.0 - p)
    found = _binomial(words, trials, rare)
    return np.where(p > 0.5, trials - found, found).astype(np.int64)


def _binomial(words: Words, n: Array, p: Array) -> Array:
    """Return successes of a probability of at most 1/2."""
    mean = n * p
    # Each method is given parameters of its own kind, also where the other is taken.
    few_p = np.where(mean < _FEW, p, 0.0)

    def by_quantile() -> Array:
        odds = few_p / (1.0 - few_p)
        none = np.exp(n * np.log1p(-few_p))
        return _quantile(words, none, lambda k: np.maximum(n + 1.0 - k, 0.0) / k * odds)

    def by_rounds() -> Array:
        trials = np.where(mean < _FEW, 2 * _FEW, n)
        chance = np.where(mean < _FEW, 0.5, p)
        hits, misses = trials * chance, trials * (1.0 - chance)
        spread = np.sqrt(misses * chance)
        width = 1.15 + 2.53 * spread
        tails = 0.0248 * width - 0.0873 + 0.01 * chance
        hat = _Hat(tails, width, hits + 0.5, (2.83 + 5.1 / width) * spread)

        def weight(k: Array) -> Array:
            rest = trials - k
            return -_far(k, hits) - _root(k) - _far(rest, misses) - _root(rest)

        mode = np.floor(hits + chance)
        top = weight(mode)
        return _rounds(words, hat, mode, trials, lambda k: weight(k) - top)

    return _either(mean, by_quantile, by_rounds)


def negative_binomial(words: Words, n: Any, p: Any) -> Array:
    """Return failures before ``n`` successes: a Poisson number of a gamma mean."""
    at_least("n", n, 0, or_equal=False)
    probability("p", p)
    at_least("p", p, 0, or_equal=False)
    p = _float(p)
    mean = standard_gamma(words, n) * ((1.0 - p) / p)
    return _poisson(from_slot(words, GAMMA_SLOTS), mean).astype(np.int64)


def _float(x: Any) -> Array:
    return np.float64(x) if is_number(x) else x.astype(np.float64)


def _either(
    mean: Array, by_quantile: Callable[[], Array], by_rounds: Callable[[], Array]
) -> Array:
    """Return the numbers of one method or the other, as the mean says."""
    if is_number(mean):
        return by_quantile() if mean < _FEW else by_rounds()
    return np.where(mean < _FEW, by_quantile(), by_rounds())


def _quantile(words: Words, none: Array, ratio: Callable[[int], Array]) -> Array:
    """Return quantiles: 0 has a share of all, the next that times a ratio."""
    u = random(words)
    share = total = none
    found = np.zeros_like(u)
    for k in range(1, _QUANTILES + 1):
        share = share * ratio(k)
        found = found + ((u >= total) & (share > _NOTHING)).astype(np.float64)
        total = total + share
    return found


def _rounds(
    words: Words,
    hat: _Hat,
    middle: Array,
    most: Any,
    log_weight: Callable[[Array], Array],
) -> Array:
    found = middle
    for number in reversed(range(ROUNDS)):
        u = random(from_slot(words, 2 * number)) - 0.5
        v = random(from_slot(words, 2 * number + 1)) + 2.0**-54
        edge = np.maximum(0.5 - np.abs(u), 2.0**-54)
        k = np.floor((2.0 * hat.tails / edge + hat.middle) * u + hat.centre)
        inside = np.minimum(np.maximum(k, 0.0), most)
        height = v * hat.height / (hat.tails / (edge * edge) + hat.middle)
        is_taken = (k == inside) & (np.log(height) <= log_weight(inside))
        found = np.where(is_taken, inside, found)
    return found


def _far(k: Array, mean: Array) -> Array:
    """Return ``k log(k / mean) + mean - k``, of nearly equal numbers as well."""
    off = (k - mean) / mean
    return mean * ((1.0 + off) * np.log1p(np.maximum(off, 2.0**-53 - 1.0)) - off)


def _root(k: Array) -> Array:
    """Return log(k!) less k log(k) - k, by Ramanujan's approximation.

    It is off by 1e-3 / k^4, and in a mean of 16 or more by 1e-7 altogether.
    """
    return np.log(((8.0 * k + 4.0) * k + 1.0) * k + 1 / 30) / 6.0 + _HALF_LOG_PI
