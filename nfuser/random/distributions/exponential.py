# SPDX-License-Identifier: Apache-2.0
"""Numbers that are a logarithm of one word, or a power of one."""

# NumPy's functions of values of any type have no known types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nfuser.errors import OptionError
from nfuser.random.distributions.normal import signed
from nfuser.random.distributions.uniform import random
from nfuser.random.distributions.words import (
    Array,
    Words,
    at_least,
    bits_of,
    computed_in,
    finite,
    float_dtype,
    is_number,
    log_positive,
    multiply_add,
    probability,
)


def standard_exponential(words: Words, dtype: Any = np.float64, slot: int = 0) -> Array:
    """Return exponential numbers of mean 1, one word each.

    The first bit says which half of (0, 1) is meant, the others how far its end is: the
    smallest numbers and the largest keep all their digits.
    """
    kind = float_dtype("standard_exponential", dtype)
    computed = computed_in(kind)
    bits = bits_of(computed)
    word = words(bits, slot)
    whole = (np.int32 if bits == 32 else np.int64)(2 ** (bits - 1) - 1)
    s = word.astype(whole.dtype)  # integers with a sign are cheaper to convert
    rest = (s & whole).astype(computed)
    scale = computed.type(2.0**-bits)
    part = multiply_add(rest, scale, scale / computed.type(2))
    return _minus_log(part, s < 0, computed).astype(kind)


def _minus_log(part: Array, is_small: Array, computed: np.dtype[Any]) -> Array:
    """Return -log(1 - part) where it is small, else -log(part), of parts up to 1/2.

    One logarithm is taken. What rounding loses of 1 - part is added to it, and so
    small numbers keep their digits.
    """
    kind = computed.type
    far = kind(1) - part
    lost = part - (kind(1) - far)
    more = np.where(is_small, lost + lost * part, kind(0))
    return more - log_positive(np.where(is_small, far, part))


def exponential(words: Words, scale: Any = 1.0, dtype: Any = np.float64) -> Array:
    """Return exponential numbers of mean ``scale``."""
    at_least("scale", scale, 0)
    return scale * standard_exponential(words, dtype)


def laplace(
    words: Words, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return numbers that are exponential on either side of ``loc``."""
    at_least("scale", scale, 0)
    kind = float_dtype("laplace", dtype)
    computed = computed_in(kind)
    x, rest = signed(words, computed)
    found = np.copysign(_log_rest(x, rest, computed), x)
    return loc + scale * found.astype(kind)


def logistic(
    words: Words, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return logistic numbers: the logarithm of the odds of a uniform one."""
    at_least("scale", scale, 0)
    kind = float_dtype("logistic", dtype)
    computed = computed_in(kind)
    x, rest = signed(words, computed)
    found = np.log1p(np.abs(x)) + _log_rest(x, rest, computed)
    return loc + scale * np.copysign(found, x).astype(kind)


def _log_rest(x: Array, rest: Array, computed: np.dtype[Any]) -> Array:
    """Return -log(1 - |x|), of whichever is known better."""
    size = np.abs(x)
    is_near = size < computed.type(0.5)
    return _minus_log(np.where(is_near, size, rest), is_near, computed)


def standard_cauchy(words: Words, dtype: Any = np.float64) -> Array:
    """Return numbers of Cauchy's distribution, the tangents of uniform angles."""
    kind = float_dtype("standard_cauchy", dtype)
    computed = computed_in(kind)
    x, rest = signed(words, computed)
    right = computed.type(math.pi / 2)
    is_near = np.abs(x) < computed.type(0.5)
    tangent = np.tan(right * np.where(is_near, np.abs(x), rest))
    found = np.where(is_near, tangent, computed.type(1) / tangent)
    return np.copysign(found, x).astype(kind)


def gumbel(
    words: Words, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return numbers of Gumbel's distribution, as the largest of many have."""
    at_least("scale", scale, 0)
    return loc - scale * np.log(standard_exponential(words, dtype))


def rayleigh(words: Words, scale: Any = 1.0, dtype: Any = np.float64) -> Array:
    """Return lengths of pairs of normal numbers."""
    at_least("scale", scale, 0)
    found = standard_exponential(words, dtype)
    return scale * np.sqrt(found + found)


def weibull(words: Words, a: Any, dtype: Any = np.float64) -> Array:
    """Return numbers of Weibull's distribution of shape ``a``."""
    at_least("a", a, 0, or_equal=False)
    return standard_exponential(words, dtype) ** (1 / a)


def pareto(words: Words, a: Any, dtype: Any = np.float64) -> Array:
    """Return numbers of Pareto's second distribution, from 0 on."""
    at_least("a", a, 0, or_equal=False)
    return np.expm1(standard_exponential(words, dtype) / a)


def power(words: Words, a: Any, dtype: Any = np.float64) -> Array:
    """Return numbers of [0, 1] with density ``a x^(a - 1)``."""
    at_least("a", a, 0, or_equal=False)
    return np.exp(-standard_exponential(words, dtype) / a)


def triangular(
    words: Words, left: Any, mode: Any, right: Any, dtype: Any = np.float64
) -> Array:
    """Return numbers of [left, right] whose density rises to ``mode`` and falls."""
    for name, bound in (("left", left), ("mode", mode), ("right", right)):
        finite(name, bound)
    known = all(is_number(bound) for bound in (left, mode, right))
    if known and not (left <= mode <= right and left < right):
        message = (
            f"write left <= mode <= right and left < right: found left={left}, "
            f"mode={mode}, right={right}"
        )
        raise OptionError(message)
    u = random(words, dtype)
    width, rise, fall = right - left, mode - left, right - mode
    rising = left + np.sqrt(u * width * rise)
    return np.where(u * width < rise, rising, right - np.sqrt((1 - u) * width * fall))


def geometric(words: Words, p: Any) -> Array:
    """Return how many trials it takes until one of probability ``p`` succeeds."""
    probability("p", p)
    at_least("p", p, 0, or_equal=False)
    if is_number(p):
        rate = -math.log1p(-float(p)) if p < 1 else math.inf
    else:
        rate = -np.log1p(-p)
    trials = np.floor(standard_exponential(words) / rate) + 1.0
    return np.minimum(trials, 2.0**63 - 1024).astype(np.int64)
