# SPDX-License-Identifier: Apache-2.0
"""Random numbers without a state: functions of a key, as words of 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.trace.standins.array import TracedArray
from nfuser.errors import ArgumentError
from nfuser.random.draw import Source, draw
from nfuser.random.generator import FOLD, SPLIT, key_of
from nfuser.random.methods import Distributions

if TYPE_CHECKING:
    from nfuser.random.distributions.words import Array, Words


class Keyed(Distributions):
    """The distributions of one key: the same call gives the same numbers again."""

    def __init__(self, key: Any) -> None:
        self._key = key

    @property
    def _source(self) -> Source:
        return self._key, np.uint64(0)

    def __repr__(self) -> str:
        return f"of({self._key!r})"


def key(seed: Any) -> Any:
    """Return the key that a seed stands for.

    >>> import nfuser.random as random
    >>> random.of(random.key(7)).random(2)
    array([0.75015222, 0.08565787])
    """
    return np.uint64(key_of(seed))


def of(key: Any) -> Keyed:
    """Return the distributions of a key; take another key for other numbers."""
    return Keyed(_as_word("key", key))


def split(key: Any, count: Any = 2) -> Array:
    """Return as many new keys, whose numbers are independent of this one's."""
    return draw((_as_word("key", key), np.uint64(0)), _split, (), count)


def fold_in(key: Any, data: Any) -> Any:
    """Return a new key that depends on an integer, too, such as a step's number."""
    return draw((_as_word("key", key), _as_word("data", data)), _fold, (), ())


def _split(words: Words) -> Array:
    return words(64, SPLIT)


def _fold(words: Words) -> Array:
    return words(64, FOLD)


def _as_word(name: str, x: Any) -> Any:
    if isinstance(x, TracedArray) and isinstance(x, int):  # how often a loop has run
        return x.astype(np.uint64)
    if not isinstance(x, int):
        return x
    if not 0 <= x < 1 << 64:
        message = f"write {name} from 0 to 2**64 - 1: found {x}"
        raise ArgumentError(message)
    return np.uint64(x)
