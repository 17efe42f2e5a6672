# SPDX-License-Identifier: Apache-2.0
"""Functions of another module, with loops of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


def relaxed(p: Any, b: Any, count: Any) -> Any:
    """Return a few steps towards the solution."""
    for _ in range(count):
        old = p.copy()
        p[1:-1] = (old[2:] + old[:-2]) * 0.5 - b[1:-1]
        p[0] = 0
    return p


def grown(x: Any, count: Any) -> Any:
    """Return more."""
    for i in range(count):
        x = x + 0.5 * i
    return x


def noted(x: Any, kept: Any, i: Any) -> Any:
    """Return more, and keep the number."""
    kept.append(i)
    return x + 1


def asserted(x: Any) -> Any:
    """Return roots of what is said to be positive; pytest writes no assertion anew."""
    assert x.min() >= 0
    return np.sqrt(x)


class Model:
    """Has a factor."""

    def __init__(self, factor: float) -> None:
        self.__factor = factor

    def run(self, x: Any, count: Any) -> Any:
        """Return what is left."""
        while count > 0:
            x = x * self.__factor
            count = count - 1
        return x
