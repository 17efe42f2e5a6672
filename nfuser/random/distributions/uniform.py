# SPDX-License-Identifier: Apache-2.0
"""Uniform numbers, and integers of a range. Their bits never change within a stream."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nfuser.errors import DTypeError, OptionError, RangeError
from nfuser.random.distributions.words import (
    BFLOAT16,
    Array,
    Words,
    bits_of,
    computed_in,
    finite,
    float_dtype,
    is_number,
    probability,
)

_KEPT = {
    np.dtype(np.float16): 11,
    BFLOAT16: 8,
    np.dtype(np.float32): 24,
    np.dtype(np.float64): 53,
}
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_LAST = np.uint32(2**32 - 1)
_LAST_HALF = np.uint16(2**16 - 1)


def random(words: Words, dtype: Any = np.float64) -> Array:
    """Return numbers of [0, 1): multiples of 2^-53, 2^-24 (f32), 2^-11, 2^-8 (bf16)."""
    kind = float_dtype("random", dtype)
    bits, kept, computed = bits_of(kind), _KEPT[kind], computed_in(kind)
    word = np.uint32 if bits == 32 else np.uint64
    top = (words(bits) >> word(bits - kept)).astype(computed)
    return (top * computed.type(2.0**-kept)).astype(kind)


def uniform(
    words: Words, low: Any = 0.0, high: Any = 1.0, dtype: Any = np.float64
) -> Array:
    """Return ``low + (high - low) * u``, which rounding may take to ``high``."""
    finite("low", low)
    finite("high", high)
    if is_number(low) and is_number(high):
        try:
            finite("high - low", float(high) - float(low))
        except OptionError as error:
            message = "write bounds whose difference is a float: high - low overflows"
            raise RangeError(message) from error
    return low + (high - low) * random(words, dtype)


def bernoulli(words: Words, p: Any = 0.5) -> Array:
    """Return True with probability ``p``, to a multiple of 2^-24.

    A uniform number m 2^-24 is below p where the integer m is below p 2^24.
    """
    probability("p", p)
    if not is_number(p):
        return random(words, np.float32) < p
    known = np.float32(p) if type(p) is float else p
    often = math.ceil(float(known) * 2**24)
    if often == 2**24:
        return words(32) <= _LAST
    return words(32) < np.uint32(often << 8)


def dropped(words: Words, p: Any = 0.5) -> Array:
    """Return True with probability ``p``, to the nearest multiple of 2^-16.

    It takes half of a word of 32 bits: eight elements share a block.
    """
    probability("p", p)
    if not is_number(p):
        word = words(16).astype(np.float32) + np.float32(0.5)
        return word * np.float32(2.0**-16) < p
    often = round(float(p) * 2**16)
    if often == 2**16:
        return words(16) <= _LAST_HALF
    return words(16) < np.uint16(often)


def integers(
    words: Words,
    low: Any,
    high: Any = None,
    dtype: Any = np.int64,
    *,
    endpoint: bool = False,
) -> Array:
    """Return integers from ``low`` up to ``high``, which ``endpoint`` counts in.

    They are ``low`` plus the high half of a word of 64 bits times the size of the
    range: no integer is likelier than another by more than its size over 2^64.
    """
    kind = np.dtype(dtype)
    if kind.kind not in "iub":
        message = f"write an integer dtype, such as np.int64: integers found {kind}"
        raise DTypeError(message)
    low, high = (0, low) if high is None else (low, high)
    if is_number(low) and is_number(high):
        first, size = _range(int(low), int(high), kind, endpoint=endpoint)
        return _shifted(words(64), first, size).astype(kind)
    start = _as_words(low)
    size = _as_words(high) - start
    size = size + np.uint64(1) if endpoint else size
    return (start + _high_half(words(64), size)).astype(kind)


def _range(
    low: int, high: int, kind: np.dtype[Any], *, endpoint: bool
) -> tuple[int, int]:
    last = high if endpoint else high - 1
    least, most = (0, 1) if kind.kind == "b" else _limits(kind)
    if low > last:
        relation = "<=" if endpoint else "<"
        message = f"write low {relation} high: found low={low}, high={high}"
        raise OptionError(message)
    if low < least or last > most:
        message = (
            f"write bounds that {kind} holds, {least} to {most}: found integers from "
            f"{low} to {last}"
        )
        raise RangeError(message)
    return low, last - low + 1


def _limits(kind: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(kind)
    return int(limits.min), int(limits.max)


def _shifted(word: Array, first: int, size: int) -> Array:
    start = np.uint64(first % 2**64)
    if size == 2**64:
        return word + start
    if size <= 2**32:
        low = (word & _LOW) * np.uint64(size) >> _HALF
        return ((word >> _HALF) * np.uint64(size) + low >> _HALF) + start
    return _high_half(word, np.uint64(size)) + start


def _high_half(word: Array, size: Array) -> Array:
    """Return the high half of the product of two words of 64 bits."""
    high, low = word >> _HALF, word & _LOW
    size_high, size_low = size >> _HALF, size & _LOW
    middle = high * size_low + (low * size_low >> _HALF)
    other = low * size_high + (middle & _LOW)
    return high * size_high + (middle >> _HALF) + (other >> _HALF)


def _as_words(bound: Any) -> Array:
    if is_number(bound):
        return np.uint64(int(bound) % 2**64)
    return bound.astype(np.int64 if bound.dtype.kind != "u" else np.uint64).astype(
        np.uint64
    )
