# SPDX-License-Identifier: Apache-2.0
"""Gradients through reductions, scans, products and moved elements."""

# Functions of arrays have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from nfuser.errors import UnsupportedError
from tests.differentiate.numeric import agree, gradients, meaning, numbers

if TYPE_CHECKING:
    from collections.abc import Callable

X, Y, ROW = numbers(3, 4), numbers(3, 4, seed=1), numbers(4, seed=2)
COLUMN = numbers(3, seed=3)


def _softmax(x: Any) -> Any:
    grown = np.exp(x - x.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


_FOLDS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(axis=0) ** 2,
    "mean": lambda x: x.mean(axis=1) ** 2,
    "prod": lambda x: x.prod(axis=1) ** 2,
    "prod of all": lambda x: x.prod(),
    "max": lambda x: x.max(axis=1) * COLUMN_SLOPE,
    "min": lambda x: x.min(axis=0) ** 2,
    "nanmax": lambda x: np.nanmax(x, axis=0) ** 2,
    "var": lambda x: x.var(axis=1) ** 2,
    "std": lambda x: x.std(axis=0, ddof=1) ** 2,
    "cumsum": lambda x: x.cumsum(axis=1) ** 2,
    "cumprod": lambda x: x.cumprod(axis=0) ** 2,
    "ptp": lambda x: np.ptp(x, axis=1) ** 2,
    "norm": np.linalg.norm,
    "sort": lambda x: np.sort(x, axis=1) ** 3 * np.arange(4.0),
    "partition": lambda x: np.partition(x, 1, axis=1) ** 3 * np.arange(4.0),
    "two parts": lambda x: np.partition(x, (0, 2), axis=0) ** 3 * np.arange(4.0),
    "median": np.median,
    "quantile": lambda x: np.quantile(x, 0.3),
    "softmax by hand": lambda x: _softmax(x) * np.arange(4.0),
    "softmax": lambda x: xp.softmax(x) ** 2,
    "log_softmax": lambda x: xp.log_softmax(x) * np.arange(4.0),
    "trace": np.trace,
    "average": lambda x: np.average(x, weights=np.arange(12.0).reshape(3, 4)),
    "nansum": lambda x: np.nansum(x, axis=1) ** 2,
}
COLUMN_SLOPE = 2.5


@pytest.mark.parametrize("name", _FOLDS)
def test_gradients_of_folds_are_those_of_differences(name: str) -> None:
    agree(lambda x: _FOLDS[name](x).sum(), X)


def _padded(mode: Any, x: Any) -> Any:
    return np.pad(x, ((2, 1), (5, 9)), mode) ** 2


_MOVES: dict[str, Callable[..., Any]] = {
    "transpose": lambda x: x.T**2 * np.arange(3.0),
    "reshape": lambda x: x.reshape(2, -1) ** 2 * np.arange(6.0),
    "steps": lambda x: x[1:, ::2] ** 2,
    "backwards": lambda x: x[::-1, ::-2] * np.arange(2.0),
    "a few backwards": lambda x: x[:, 3:0:-2] ** 2,
    "one": lambda x: x[1] * np.arange(4.0),
    "nothing": lambda x: x[2:1] ** 2 + x.sum(),
    "pad": lambda x: np.pad(x, ((1, 2), (0, 1))) ** 2,
    "pad with a number": lambda x: np.pad(x, 1, constant_values=2.0) ** 2,
    "pad with an element": lambda x: np.pad(x[1:], 1, constant_values=x[0, 2]) ** 2,
    "concatenate": lambda x: np.concatenate([x, x * 2, x[:1]]) ** 2,
    "stack": lambda x: np.stack([x, x**2], axis=1) ** 2,
    "broadcast_to": lambda x: np.broadcast_to(x[:, None], (3, 5, 4)) ** 2,
    "flip": lambda x: np.flip(x, 0) ** 2 * np.arange(4.0),
    "roll": lambda x: np.roll(x, 1, axis=1) ** 2 * np.arange(4.0),
    "roll of all": lambda x: np.roll(x, -5) * np.arange(4.0),
    "repeat": lambda x: np.repeat(x, 2, axis=1) ** 2 * np.arange(8.0),
    "tile": lambda x: np.tile(x, (2, 3)) ** 2 * np.arange(12.0),
    **{
        f"pad as {mode}": partial(_padded, mode)
        for mode in ("edge", "wrap", "symmetric", "reflect")
    },
    "tril": lambda x: np.tril(x) ** 2,
    "diagonal": lambda x: np.diagonal(x) ** 2,
    "outer": lambda x: np.outer(x, x * x),
    "diff": lambda x: np.diff(x, axis=1) ** 2,
    "gradient": lambda x: np.gradient(x, axis=0) ** 2,
    "convolve": lambda x: np.convolve(x[0], x[1, :2]) ** 2,
    "kron": lambda x: np.kron(x, x[:1, :2]) ** 2,
}


@pytest.mark.parametrize("name", _MOVES)
def test_gradients_of_moved_elements_are_those_of_differences(name: str) -> None:
    agree(lambda x: _MOVES[name](x).sum(), X)


def _assigned(x: Any) -> Any:
    u, z = x[0].copy(), np.zeros_like(x)
    u[1:-1] = u[:-2] * x[1, 1:-1] + u[2:]
    u[::2] *= 2
    u[-1] = x[2, 0] ** 2
    z[::-1, ::2] = u[2:] * x[:, 2:]
    return (z + u) ** 2


def test_gradients_of_assignments_are_those_of_differences() -> None:
    agree(lambda x: _assigned(x).sum(), X)
    agree(lambda x: np.sin(nfuser.grad(lambda x: _assigned(x).sum())(x)).sum(), X)


def _slope_of_assigned(x: Any) -> Any:
    return nfuser.grad(lambda x: (_assigned(x) * np.arange(4.0)).sum())(x)


def test_an_array_that_numpy_makes_beside_a_gradient_is_a_table() -> None:
    found = nfuser.fuse(lambda x: _slope_of_assigned(x) + np.arange(4.0))(X)
    np.testing.assert_allclose(found, _slope_of_assigned(X) + np.arange(4.0))


_PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "stacks": (np.matmul, (numbers(2, 3, 4), numbers(4, 5))),
    "stacks that stretch": (np.matmul, (numbers(2, 1, 3, 4), numbers(5, 4, 2))),
    "a column": (np.matmul, (numbers(2, 3, 4), ROW)),
    "a row": (np.matmul, (COLUMN, numbers(2, 3, 4))),
    "two vectors": (np.matmul, (ROW, numbers(4))),
    "dot": (np.dot, (X, numbers(4, 2))),
    "einsum": (
        lambda a, c: np.einsum("bij,jk->bki", a, c),
        (numbers(2, 3, 4), numbers(4, 5)),
    ),
}


@pytest.mark.parametrize("name", _PRODUCTS)
def test_gradients_of_products_are_those_of_differences(name: str) -> None:
    function, operands = _PRODUCTS[name]
    agree(lambda x, y: (function(x, y) ** 2).sum(), *operands)


@pytest.mark.parametrize("name", _PRODUCTS)
def test_tangents_of_products_pair_with_their_gradients(name: str) -> None:
    function, xs = _PRODUCTS[name]
    tangents = tuple(np.cos(3 * x + 1) for x in xs)

    def value(*xs: Any) -> Any:
        return np.sin(function(*xs)).sum()

    def pushed(xs: Any, tangents: Any) -> Any:
        return nfuser.jvp(value, xs, tangents)[1]

    forward = meaning(nfuser.fuse(pushed), xs, tangents)
    pairs = zip(gradients(value, *xs), tangents, strict=True)
    backward = sum(float((g * t).sum()) for g, t in pairs)
    np.testing.assert_allclose(forward, backward, rtol=1e-9)


@pytest.mark.parametrize("zeros", [[(0, 1)], [(0, 1), (0, 3)], [(2, 0), (1, 0)]])
def test_products_with_zeros_have_their_gradients(zeros: list[tuple[int, int]]) -> None:
    x = X.copy()
    for at in zeros:
        x[at] = 0
    agree(lambda x: (x.prod(axis=1) * np.arange(3.0)).sum(), x)
    agree(lambda x: (x.cumprod(axis=1) * np.arange(4.0)).sum(), x)


def test_equal_extrema_share_a_gradient() -> None:
    (found,) = gradients(lambda x: x.max(), np.array([1.0, 3.0, 3.0]))
    np.testing.assert_array_equal(found, [0.0, 0.5, 0.5])


def test_one_element_of_each_row_gets_its_gradient() -> None:
    x, labels = X, np.array([1, 0, -1])

    def loss(x: Any, labels: Any) -> Any:
        taken = np.take_along_axis(xp.log_softmax(x), labels[:, None], axis=1)
        return -taken.mean()

    found = nfuser.grad(loss)(x, labels)
    wanted = (_softmax(x) - np.eye(4)[labels]) / 3
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


def test_empty_axes_have_empty_gradients() -> None:
    (found,) = gradients(lambda x: (x * 2).sum() + 3.0, np.ones((0, 3)))
    assert found.shape == (0, 3)


def _greatest(x: Any) -> Any:
    made = x + 1
    np.maximum.at(made, np.array([0, 0]), x[:2])
    return made


@pytest.mark.parametrize(
    "function",
    [lambda x: np.maximum.accumulate(x).sum(), lambda x: _greatest(x).sum()],
)
def test_what_has_no_derivative_yet_is_refused_by_its_line(
    function: Callable[..., Any],
) -> None:
    with pytest.raises(UnsupportedError, match=r"(?s)write .*test_folds\.py"):
        nfuser.grad(function)(ROW)
