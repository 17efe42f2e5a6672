# SPDX-License-Identifier: Apache-2.0
"""Derivatives of loops and choices that stay what they are."""

# Arrays of any library have no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import lax
from nfuser.errors import UnsupportedError
from tests.differentiate.numeric import differences

if TYPE_CHECKING:
    from collections.abc import Callable

X, W = np.array([0.3, -0.8, 1.1, 0.6]), np.array([0.7, 0.2, -0.5, 0.9])


def _fori_loop(x: Any, w: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, s: np.sin(s) * w + x * i, x).sum()


def _counted(x: Any, w: Any) -> Any:
    def step(i: Any, carried: Any) -> Any:
        count, s = carried
        return count + 1, s * w + count

    return (lax.fori_loop(0, 3, step, (0, x))[1] * x).sum()


def _scan(x: Any, w: Any) -> Any:
    carry, ys = lax.scan(lambda c, r: (c * np.cos(r) + r, c * c), 1.0, x)
    return carry + (ys * w).sum()


def _reversed(x: Any, w: Any) -> Any:
    carry, ys = lax.scan(lambda c, r: (c * r + r, c * c), 1.0, x, reverse=True)
    return carry + (ys * w).sum()


def _map(x: Any, w: Any) -> Any:
    return (lax.map(lambda r: np.tanh(r) * r, x) * w).sum()


def _matrix(x: Any, w: Any) -> Any:
    a = np.outer(w, w)
    return lax.fori_loop(0, 4, lambda _, s: np.tanh(a @ s), x).sum()


def _complex(x: Any, w: Any) -> Any:
    z = lax.fori_loop(0, 3, lambda _, z: z * z * w + 1j * x, x + 0.5j * w)
    return np.abs(z).sum()


def _inner(x: Any, w: Any) -> Any:
    def outer(_: Any, s: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, t: np.sin(t) * w + i, s)

    return lax.fori_loop(0, 3, outer, x).sum()


def _cond(x: Any, w: Any) -> Any:
    return lax.cond(x[0] > 0, lambda x: np.cumsum(x) * w, lambda x: x * x, x).sum()


def _branch(x: Any, w: Any) -> Any:
    total = (x * w).sum()
    if x.sum() > 0:
        total = total + np.sin(x).sum()
    return total


def _plain(x: Any, w: Any) -> Any:
    total = np.zeros(4)
    for k in range(30 * x.shape[0]):
        total = total * 0.5 + np.sin(x) * k * w
    return total.sum()


FUNCTIONS = (
    *(_fori_loop, _counted, _scan, _reversed, _map, _matrix, _complex, _inner, _cond),
    *(_branch, _plain),
)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_both_modes_are_what_differences_say(
    function: Callable[..., Any], sign: float
) -> None:
    xs = sign * X, W
    wanted = differences(function, *xs)
    found = nfuser.grad(function, (0, 1))(*xs)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            one, other, rtol=0, atol=1e-6 * (1 + abs(other).max())
        )
    tangents = W * W, X
    pushed = nfuser.jvp(function, xs, tangents)[1]
    paired = sum((g * t).sum() for g, t in zip(found, tangents, strict=True))
    np.testing.assert_allclose(pushed, paired, rtol=1e-10)


@pytest.mark.parametrize("function", [_fori_loop, _scan, _cond])
def test_hessians_of_loops_are_symmetric(function: Callable[..., Any]) -> None:
    found = nfuser.hessian(function)(X, W)
    np.testing.assert_allclose(found, found.T, atol=1e-13)
    slope = nfuser.grad(function)
    step = 1e-6 * W
    wanted = (slope(X + step, W) - slope(X - step, W)) / 2e-6
    np.testing.assert_allclose(found @ W, wanted, atol=1e-7)


def test_gradients_of_rows_of_loops() -> None:
    rows = np.stack([X, -X, 2 * X])
    found = nfuser.vmap(nfuser.grad(_scan), (0, None))(rows, W)
    wanted = [nfuser.grad(_scan)(row, W) for row in rows]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_sum_of_turns_and_a_number_of_turns_that_calls_bring() -> None:
    def power(x: Any, n: int) -> Any:
        return lax.fori_loop(0, n, lambda _, s: s * x, np.ones(4)).sum()

    slope = nfuser.grad(power)
    for n in (3, 4, 1, 0):
        np.testing.assert_allclose(slope(X, n), n * X ** max(n - 1, 0), atol=1e-15)


def test_a_loop_whose_end_is_known_at_its_end_goes_forwards_only() -> None:
    def grown(x: Any) -> Any:
        return lax.while_loop(lambda s: s.sum() < 100, lambda s: s * s + 1, x).sum()

    with pytest.raises(UnsupportedError, match="fori_loop with a bound"):
        nfuser.grad(grown)(X)
    _, found = nfuser.jvp(grown, (X,), (W,))
    (slope,) = differences(grown, X)
    np.testing.assert_allclose(found, (slope * W).sum(), rtol=1e-6)


def test_a_constant_in_a_loop_is_one() -> None:
    def loss(x: Any) -> Any:
        step = lambda _, s: s * x + nfuser.stop_gradient(x * x)  # noqa: E731
        return lax.fori_loop(0, 1, step, np.zeros(4)).sum()

    np.testing.assert_array_equal(nfuser.grad(loss)(X), np.zeros(4))


def test_a_way_back_of_its_own_in_a_loop_is_refused() -> None:
    twice = nfuser.custom_vjp(lambda x: 2 * x)
    twice.defvjp(lambda x: (2 * x, None), lambda _, t: (100 * t,))

    def loss(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, s: twice(s), x).sum()

    with pytest.raises(UnsupportedError, match="custom_vjp out of the loop"):
        nfuser.grad(loss)(X)
