# SPDX-License-Identifier: Apache-2.0
"""Angles about a direction, and normal vectors.

Angles are drawn by Best and Fisher's method: a round proposes one from two uniform
numbers and takes it with a probability of 0.65 at least. Each element has sixteen
rounds: all of them are refused with a probability below 6e-8, and then the angle is
the middle.
"""

# NumPy's functions of values of any type have no known types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nfuser.errors import ShapeError
from nfuser.random.distributions.normal import standard_normal
from nfuser.random.distributions.uniform import random
from nfuser.random.distributions.words import (
    Array,
    Words,
    at_least,
    from_slot,
    is_number,
)

ROUNDS = 16
_NEAR_UNIFORM = 1e-4


def vonmises(words: Words, mu: Any, kappa: Any) -> Array:
    """Return angles of [-pi, pi] about ``mu``, the nearer the larger ``kappa`` is."""
    at_least("kappa", kappa, 0)
    kappa = np.float64(kappa) if is_number(kappa) else kappa.astype(np.float64)
    kappa = np.maximum(kappa, 1e-100)
    some = np.maximum(kappa, _NEAR_UNIFORM)
    root = 1.0 + np.sqrt(1.0 + 4.0 * some * some)
    # A wrapped Cauchy number of this rho is proposed.
    near = (root - np.sqrt(2.0 * root)) / (2.0 * some)
    rho = np.where(kappa < _NEAR_UNIFORM, 0.5 * kappa, near)
    narrow = (1.0 - rho) / (1.0 + rho)
    size = kappa / (2.0 * rho) * (1.0 - rho * rho) ** 2
    found = np.zeros_like(rho)
    for number in reversed(range(ROUNDS)):
        u = random(from_slot(words, 2 * number)) - 0.5
        v = random(from_slot(words, 2 * number + 1)) + 2.0**-54
        angle = 2.0 * np.arctan(narrow * np.tan(math.pi * u))
        y = size / (1.0 + rho * rho + 2.0 * rho * np.cos(2.0 * math.pi * u))
        found = np.where(np.log(y / v) + 1.0 >= y, angle, found)
    turned = found + mu
    turns = np.floor((turned + math.pi) / (2.0 * math.pi))
    return turned - turns * (2.0 * math.pi)


def multivariate_normal(
    words: Words, mean: Array, cov: Array, dtype: Any = np.float64
) -> Array:
    """Return normal vectors along the last axis of the drawn shape.

    The covariance is an array that is known now, positive definite: vectors are its
    Cholesky factor times vectors of standard normal numbers.
    """
    turn = turning(mean, cov).astype(dtype)
    found = np.matmul(standard_normal(words, dtype), turn)
    return found + np.asarray(mean).astype(dtype)


def turning(mean: Any, cov: Any) -> Array:
    """Return what turns standard normal vectors into those of a covariance."""
    size = np.shape(mean)[-1] if np.ndim(mean) else 0
    if not size or np.shape(cov) != (size, size):
        message = (
            "write a mean of n numbers and a covariance of shape (n, n): found shapes "
            f"{np.shape(mean)} and {np.shape(cov)}"
        )
        raise ShapeError(message)
    return np.linalg.cholesky(cov).T
