# SPDX-License-Identifier: Apache-2.0
"""A loop ends early once no turn changes anything any more, and only then."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(11)
X = RNG.random((7, 37)) * 3 - 1


def escaped(x: Any, n: int) -> Any:
    z, count = np.zeros_like(x), np.zeros_like(x, np.int64)
    for i in range(n):
        inside = np.abs(z) < 2
        count[inside] = i
        z[inside] = z[inside] ** 2 + x[inside]
    return z, count


def of_roots(x: Any, n: int) -> Any:
    y = np.abs(x) + 1
    for _ in range(n):
        new = 0.5 * (y + np.abs(x) / y)
        y = np.where(np.abs(new - y) <= 1e-12, y, new)
    return y


def two_masks(x: Any, n: int) -> Any:
    y, z = x.copy(), np.abs(x)
    for _ in range(n):
        low = y < 1
        high = z > 2
        y[low] = y[low] + 0.25
        z[high] = z[high] - 0.5
        z[~low] = 0
        z[low] = z[low] * 1.0
    return y, z


def nested(x: Any, n: int) -> Any:
    y = x.copy()
    for _ in range(n):
        y = np.where(y < 0, y + 0.3, np.where(y > 1, y - 0.4, y))
    return y


def of_the_turn(x: Any, n: int) -> Any:
    """Begins to change after turns in which nothing does."""
    y = x.copy()
    for i in range(n):
        y = np.where(i > n - 3, y + 1, y)
    return y


def of_a_row(x: Any, n: int) -> Any:
    """Each turn reads a row of its own: nothing at rest stays at rest."""
    y = x[0].copy()
    for i in range(x.shape[0]):
        y = np.where(x[i] > 0, y * 0.5 + x[i], y)
    return y


def stored(x: Any, n: int) -> Any:
    """Stores a row in each turn, changed or not."""
    y = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        y[i] = np.where(y[i - 1] < 1, y[i - 1] + 1, y[i - 1])
    return y


def one_unchosen(x: Any, n: int) -> Any:
    y, k = x.copy(), np.zeros_like(x)
    for _ in range(n):
        y = np.where(y < 1, y + 0.5, y)
        k = k + 1
    return y, k


def unasked(x: Any, n: int) -> Any:
    y, limit = x.copy(), np.zeros_like(x)
    for _ in range(n):
        y = np.where(y < limit, y + 0.5, y)
        limit = limit + 0.1
    return y


ENDING = [escaped, of_roots, two_masks, nested]
RUNNING = [of_the_turn, of_a_row, stored, one_unchosen, unasked]


def _listed(found: Any) -> Any:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", [*ENDING, *RUNNING])
def test_all_turns_count(function: Callable[..., Any], backend: str) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for x in (X, X[:, :1].copy(), X[:, ::2], np.full((3, 64), np.nan)):
        for n in (0, 1, 90):
            found, wanted = fused(x, n), function(x, n)
            for one, other in zip(_listed(found), _listed(wanted), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("function", [*ENDING, *RUNNING])
def test_kernels_look_whether_a_turn_changed_anything(
    function: Callable[..., Any],
) -> None:
    kernels = nfuser.fuse(function).kernels(X, 90)
    ends = any("break" in kernel.source for kernel in kernels)
    assert ends == (function in ENDING)
