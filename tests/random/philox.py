# SPDX-License-Identifier: Apache-2.0
"""Philox4x32-10 and the words of stream 1, in plain NumPy.

Written from the specification in docs/random.md alone: what it gives is what every
backend has to give.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from nfuser.random.distributions.words import Words

Array = np.ndarray[Any, np.dtype[Any]]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
_BLOCK_BITS = 56


def philox4x32(counter: Array, key: tuple[int, int], rounds: int = 10) -> Array:
    """Return the blocks, as uint32 (..., 4), of counters (..., 4) under one key."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    for _ in range(rounds):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (right >> _HIGH) ^ c1 ^ np.uint64(k0),
            right & _LOW,
            (left >> _HIGH) ^ c3 ^ np.uint64(k1),
            left & _LOW,
        )
        k0 = (k0 + _KEY_STEPS[0]) & 0xFFFFFFFF
        k1 = (k1 + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def words_at(
    key: int, call: int, slot: int, index: Array, bits: Literal[16, 32, 64]
) -> Array:
    """Return the words that the elements at these C-order indices take."""
    index = np.asarray(index, np.uint64)
    a_block = 128 // bits
    block = index // np.uint64(a_block) | np.uint64(slot << _BLOCK_BITS)
    high = np.full_like(block, call)
    counter = np.stack(
        [block & _LOW, block >> _HIGH, high & _LOW, high >> _HIGH], axis=-1
    )
    found = philox4x32(counter, (key & 0xFFFFFFFF, key >> 32))
    place = (index % np.uint64(a_block)).astype(np.int64)[..., None]
    if bits == 16:
        whole = np.take_along_axis(found, place // 2, -1)[..., 0]
        shift = (16 * (place[..., 0] % 2)).astype(np.uint32)
        return (whole >> shift).astype(np.uint16)
    if bits == 32:
        return np.take_along_axis(found, place, -1)[..., 0]
    low = np.take_along_axis(found, 2 * place, -1)[..., 0].astype(np.uint64)
    high = np.take_along_axis(found, 2 * place + 1, -1)[..., 0].astype(np.uint64)
    return low | high << _HIGH


def words(
    key: int,
    call: int,
    slot: int,
    shape: tuple[int, ...],
    bits: Literal[16, 32, 64],
) -> Array:
    """Return the words of one slot of one draw call of this shape."""
    index = np.arange(prod(shape), dtype=np.uint64)
    return words_at(key, call, slot, index, bits).reshape(shape)


def words_of(key: int, call: int, shape: tuple[int, ...]) -> Words:
    """Return what a distribution asks for its words: ``f(bits, slot)``."""

    def ask(bits: Literal[16, 32, 64], slot: int = 0) -> Array:
        return words(key, call, slot, shape, bits)

    return ask
