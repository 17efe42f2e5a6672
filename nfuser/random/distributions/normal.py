# SPDX-License-Identifier: Apache-2.0
"""Normal numbers: the quantile of one word, without rejection.

A word read as a signed integer s is the point x = (s + 1/2) / 2^31 (or 2^63) of
(-1, 1). The distance of |x| from 1 comes from the integer too, so that tails keep their
digits: they reach 6.3 standard deviations in f32 and 9.2 in f64. With
w = -log((1 - x)(1 + x)) the normal number is x N(w) / D(w), for two polynomials whose
coefficients are positive. It is within 3 ulp in f32 and 5 in f64.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nfuser.compiler.ops.elementwise.random_numbers import DOUBLE, SINGLE
from nfuser.errors import OptionError
from nfuser.random.distributions.uniform import random
from nfuser.random.distributions.words import (
    Array,
    Words,
    at_least,
    bits_of,
    computed_in,
    float_dtype,
    is_number,
    log_positive,
    multiply_add,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Signed(NamedTuple):
    """A word as a point of (-1, 1): where it is, and how far its size is from 1."""

    x: Array
    rest: Array


def signed(words: Words, computed: np.dtype[Any], slot: int = 0) -> Signed:
    """Return one word as a point of (-1, 1)."""
    bits = bits_of(computed)
    whole, half = (np.int32, np.float32) if bits == 32 else (np.int64, np.float64)
    s = words(bits, slot).astype(whole)
    size = s ^ (s >> whole(bits - 1))
    rest = size ^ whole(2 ** (bits - 1) - 1)
    scale = half(2.0 ** (1 - bits))
    return Signed(
        *(multiply_add(x.astype(computed), scale, scale / half(2)) for x in (s, rest))
    )


def quantile(at: Signed, computed: np.dtype[Any]) -> Array:
    """Return the number within which a normal number lies, either side, so often."""
    kind = computed.type
    fit = DOUBLE if computed == np.float64 else SINGLE
    w = -log_positive(at.rest * (kind(2) - at.rest))
    over, under = (_polynomial(w, kind, part) for part in fit)
    return at.x * (over / under)


def _polynomial(w: Array, kind: Any, coefficients: Sequence[float]) -> Array:
    result = multiply_add(w, kind(coefficients[-1]), kind(coefficients[-2]))
    for coefficient in reversed(coefficients[:-2]):
        result = multiply_add(result, w, kind(coefficient))
    return result


def standard_normal(words: Words, dtype: Any = np.float64, slot: int = 0) -> Array:
    """Return normal numbers of mean 0 and variance 1, one word each."""
    kind = float_dtype("standard_normal", dtype)
    computed = computed_in(kind)
    return quantile(signed(words, computed, slot), computed).astype(kind)


def normal(
    words: Words, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return normal numbers of mean ``loc`` and standard deviation ``scale``."""
    at_least("scale", scale, 0)
    return loc + scale * standard_normal(words, dtype)


def lognormal(
    words: Words, mean: Any = 0.0, sigma: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return numbers whose logarithms are normal."""
    at_least("sigma", sigma, 0)
    return np.exp(normal(words, mean, sigma, dtype))


def truncated_normal(
    words: Words, low: float, high: float, dtype: Any = np.float64
) -> Array:
    """Return normal numbers between two numbers: the quantile between their CDFs."""
    if not (is_number(low) and is_number(high)):
        message = (
            "write the bounds of truncated_normal as numbers, and shift and scale what "
            "it returns: found an array"
        )
        raise OptionError(message)
    if not low < high:
        message = f"write low < high: found low={low}, high={high}"
        raise OptionError(message)
    if low > 0:  # the lower tail keeps more digits
        return -truncated_normal(words, -high, -low, dtype)
    kind = float_dtype("truncated_normal", dtype)
    first, last = (math.erfc(-x / math.sqrt(2)) for x in (low, high))
    # Twice the probability: below 1 it is the distance of a point of (-1, 1) from -1.
    twice = first + (last - first) * random(words, np.float64)
    rest = np.maximum(np.minimum(twice, 2.0 - twice), 2.0**-1000)
    at = Signed(twice - 1.0, rest)
    found = quantile(at, np.dtype(np.float64))
    return np.maximum(np.minimum(found, high), low).astype(kind)
