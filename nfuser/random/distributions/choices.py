# SPDX-License-Identifier: Apache-2.0
"""Choices among numbered things, and orders of them."""

# NumPy's functions of values of any type have no known types.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from nfuser.errors import OptionError, ShapeError
from nfuser.random.distributions.uniform import integers, random

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.random.distributions.words import Array, Words

_TOLERANCE = 1e-8  # NumPy's, of the sum of probabilities


def categorical(words: Words, p: Array) -> Array:
    """Return indices drawn with the weights of the last axis of ``p``.

    The axes before it are drawn along. Weights need not sum to 1; those that sum to 0,
    or to NaN, give the last index.
    """
    total = np.cumsum(p, axis=-1, dtype=np.float64)
    if p.ndim == 0 or p.shape[-1] == 0:
        message = "write one weight at least for each choice: found none"
        raise ShapeError(message)
    at = random(words)[..., None] * total[..., -1:]
    passed = np.sum((total <= at).astype(np.int64), axis=-1)
    return np.minimum(passed, p.shape[-1] - 1)


def categorical_logits(words: Words, logits: Array) -> Array:
    """Return indices drawn with the weights ``exp(logits)`` of the last axis."""
    wide = logits.astype(np.float64)
    return categorical(words, np.exp(wide - np.max(wide, axis=-1, keepdims=True)))


def choice(words: Words, count: int, p: Sequence[float] | Array | None = None) -> Array:
    """Return indices below ``count``, each as likely as ``p`` says, or all alike."""
    if count <= 0:
        message = f"write something to choose from: found {count} things"
        raise OptionError(message)
    if p is None:
        return integers(words, 0, count)
    weights: Array = probabilities(p) if isinstance(p, list | tuple | np.ndarray) else p
    if weights.shape != (count,):
        message = (
            f"write one probability for each of {count} things: found {weights.shape}"
        )
        raise ShapeError(message)
    return categorical(words, weights)


def probabilities(p: Sequence[float] | Array) -> Array:
    """Return known probabilities as an array; refuse negative ones and other sums."""
    found = np.asarray(p, np.float64)
    if not (found >= 0).all():
        message = "write probabilities that are not negative: found others"
        raise OptionError(message)
    total = math.fsum(found.reshape(-1))
    if abs(total - 1) > _TOLERANCE:
        message = f"write p / p.sum(): probabilities sum to 1, and these to {total:g}"
        raise OptionError(message)
    return found


def order(words: Words, axis: int = -1) -> Array:
    """Return a random order along an axis of the drawn shape: the order of its words.

    Two of n words of 64 bits are equal with a probability below n^2 / 2^65; they keep
    their order.
    """
    return np.argsort(words(64), axis=axis, kind="stable")


def permuted(words: Words, x: Array, axis: int = -1) -> Array:
    """Return ``x``, of the drawn shape, each row along ``axis`` in its own order."""
    return np.take_along_axis(x, order(words, axis), axis=axis)


def permutation(words: Words, x: Array, axis: int = 0) -> Array:
    """Return ``x`` with its parts along ``axis`` in random order; one word for each."""
    return np.take(x, order(words), axis=axis)
