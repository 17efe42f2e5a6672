# SPDX-License-Identifier: Apache-2.0
"""Gamma numbers by Marsaglia and Tsang's method, and what is made of them.

A round proposes a number from a normal and an exponential one, and takes it with a
probability of 0.95 at least. Each element has six rounds, whichever it needs: all of
them are refused with a probability below 2e-8, and then the number is the method's
middle, ``a - 1/3``.
"""

# NumPy's functions of values of any type have no known types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from nfuser.random.distributions.exponential import standard_exponential
from nfuser.random.distributions.normal import standard_normal
from nfuser.random.distributions.words import (
    Array,
    Words,
    as_float,
    at_least,
    computed_in,
    float_dtype,
    from_slot,
    is_number,
)

ROUNDS = 6
SLOTS = 1 + 2 * ROUNDS
"""Words that one gamma number takes."""


def standard_gamma(words: Words, shape: Any, dtype: Any = np.float64) -> Array:
    """Return gamma numbers of scale 1: Marsaglia and Tsang's, in six rounds."""
    at_least("shape", shape, 0)
    kind = float_dtype("standard_gamma", dtype)
    computed = computed_in(kind)
    shape = computed.type(shape) if is_number(shape) else shape.astype(computed)
    one, zero = computed.type(1), computed.type(0)
    is_small = shape < one
    # Below 1, a number of shape + 1 times a power of a uniform one.
    found = _of_one_at_least(words, np.where(is_small, shape + one, shape), computed)
    safe = np.where(shape > zero, shape, one)
    power = np.exp(-standard_exponential(words, computed) / safe)
    found = found * np.where(is_small, power, one)
    return np.where(shape == zero, zero, found).astype(kind)


def _of_one_at_least(words: Words, shape: Array, computed: np.dtype[Any]) -> Array:
    kind = computed.type
    middle = shape - kind(1 / 3)
    spread = kind(1) / np.sqrt(kind(9) * middle)
    found = middle
    for number in reversed(range(ROUNDS)):
        x = standard_normal(words, computed, 2 * number + 1)
        limit = standard_exponential(words, computed, 2 * number + 2)
        root = np.maximum(kind(1) + spread * x, kind(2.0**-30))
        cube = root * root * root
        slack = kind(0.5) * x * x + middle * (kind(1) - cube + np.log(cube))
        found = np.where(-limit < slack, middle * cube, found)
    return found


def _log_gamma(words: Words, shape: Any, computed: np.dtype[Any]) -> Array:
    """Return logarithms of gamma numbers: those of tiny shapes are no floats.

    A shape of zero gives a logarithm that is below all others, and finite.
    """
    kind = computed.type
    shape = as_float(shape, computed)
    tiny = kind(np.sqrt(np.finfo(computed).tiny))
    shape = np.maximum(shape, tiny)
    is_small = shape < kind(1)
    found = _of_one_at_least(
        words, np.where(is_small, shape + kind(1), shape), computed
    )
    less = standard_exponential(words, computed) / shape
    return np.log(found) - np.where(is_small, less, kind(0))


def gamma(words: Words, shape: Any, scale: Any = 1.0, dtype: Any = np.float64) -> Array:
    """Return gamma numbers of the shape and scale."""
    at_least("scale", scale, 0)
    return scale * standard_gamma(words, shape, dtype)


def chisquare(words: Words, df: Any, dtype: Any = np.float64) -> Array:
    """Return sums of ``df`` squares of normal numbers."""
    at_least("df", df, 0, or_equal=False)
    return 2 * standard_gamma(words, df / 2, dtype)


def beta(words: Words, a: Any, b: Any, dtype: Any = np.float64) -> Array:
    """Return beta numbers: a gamma number's part of its sum with another."""
    at_least("a", a, 0, or_equal=False)
    at_least("b", b, 0, or_equal=False)
    kind = float_dtype("beta", dtype)
    computed = computed_in(kind)
    apart = _log_gamma(words, a, computed)
    apart = apart - _log_gamma(from_slot(words, SLOTS), b, computed)
    one = computed.type(1)
    odds = np.exp(-np.abs(apart))
    return (np.where(apart < 0, odds, one) / (one + odds)).astype(kind)


def f(words: Words, dfnum: Any, dfden: Any, dtype: Any = np.float64) -> Array:
    """Return quotients of two means of squares of normal numbers."""
    above = chisquare(words, dfnum, dtype) / dfnum
    return above / (chisquare(from_slot(words, SLOTS), dfden, dtype) / dfden)


def standard_t(words: Words, df: Any, dtype: Any = np.float64) -> Array:
    """Return Student's numbers: normal ones over roots of a mean of squares."""
    spread = np.sqrt(chisquare(from_slot(words, 1), df, dtype) / df)
    return standard_normal(words, dtype) / spread


def dirichlet(words: Words, alpha: Array, dtype: Any = np.float64) -> Array:
    """Return parts of 1, as many as the last axis of the drawn shape has."""
    kind = float_dtype("dirichlet", dtype)
    logs = _log_gamma(words, alpha, computed_in(kind))
    parts = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return (parts / np.sum(parts, axis=-1, keepdims=True)).astype(kind)
