# SPDX-License-Identifier: Apache-2.0
"""Random programs of a row, on all rows, and their derivatives."""

# Arrays of any library have no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.differentiate.numeric import gradients, meaning
from tests.differentiate.programs import random_program

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 3
MANY = range(5000, 5060)


def _mapped(seed: int) -> tuple[Callable[..., Any], list[Any], list[int | None]]:
    """Return a program, its arguments for some rows, and the axes of the rows."""
    program = random_program(seed, 3 + seed % 6)
    rng = np.random.default_rng(seed)
    xs = program.arguments()
    axes: list[int | None] = []
    for k, x in enumerate(xs):
        shared = k != seed % len(xs) and rng.random() < 0.4
        axis = int(rng.integers(x.ndim + 1))
        axes.append(None if shared else axis)
        if not shared:
            rows = [np.asarray(x + 0.05 * j * np.cos(x + j)) for j in range(ROWS)]
            xs[k] = np.stack(rows, axis=axis)
    return lambda *args: program.run(np, *args), xs, axes


def _row(xs: list[Any], axes: list[int | None], number: int) -> list[Any]:
    pairs = zip(xs, axes, strict=True)
    return [x if axis is None else np.take(x, number, axis) for x, axis in pairs]


def _close(found: Any, wanted: Any) -> None:
    scale = 1 + np.abs(wanted).max(initial=0)
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("seed", MANY)
def test_all_rows_are_as_each_by_itself(seed: int) -> None:
    function, xs, axes = _mapped(seed)
    found = meaning(nfuser.vmap(function, in_axes=axes), *xs)
    with np.errstate(all="ignore"):
        wanted = [function(*_row(xs, axes, k)) for k in range(ROWS)]
    _close(found, np.stack(wanted))


@pytest.mark.parametrize("seed", MANY[::2])
def test_gradients_of_rows_are_as_each_by_itself(seed: int) -> None:
    function, xs, axes = _mapped(seed)
    everywhere = tuple(range(len(xs)))
    slopes = nfuser.vmap(nfuser.grad(function, everywhere), in_axes=axes)
    found = meaning(slopes, *xs)
    wanted = [gradients(function, *_row(xs, axes, k)) for k in range(ROWS)]
    for one, others in zip(found, zip(*wanted, strict=True), strict=True):
        _close(one, np.stack(others))


@pytest.mark.parametrize("seed", MANY[::3])
def test_gradients_through_rows_are_sums_of_theirs(seed: int) -> None:
    function, xs, axes = _mapped(seed)
    weights = np.array([1.0, -0.5, 2.0])

    def total(*args: Any) -> Any:
        return (nfuser.vmap(function, in_axes=axes)(*args) * weights).sum()

    found = gradients(total, *xs)
    each = [gradients(function, *_row(xs, axes, k)) for k in range(ROWS)]
    for k, axis in enumerate(axes):
        parts = [w * np.asarray(e[k]) for w, e in zip(weights, each, strict=True)]
        _close(found[k], sum(parts) if axis is None else np.stack(parts, axis=axis))


@pytest.mark.parametrize("seed", MANY[::6])
def test_hessians_are_jacobians_of_gradients(seed: int) -> None:
    function, xs, axes = _mapped(seed)
    row = _row(xs, axes, 0)
    hessian = meaning(nfuser.hessian(function), *row)
    slope = nfuser.grad(function)
    by_rows = meaning(nfuser.jacrev(slope), *row)
    by_columns = meaning(nfuser.jacfwd(slope), *row)
    _close(hessian, by_rows)
    _close(hessian, by_columns)
    count = row[0].size
    square = hessian.reshape(count, count)
    _close(square, square.T)


@pytest.mark.parametrize("seed", MANY[:4])
def test_kernels_compute_what_it_means(seed: int) -> None:
    function, xs, axes = _mapped(seed)
    everywhere = tuple(range(len(xs)))
    slopes = nfuser.vmap(nfuser.value_and_grad(function, everywhere), in_axes=axes)
    found, wanted = slopes(*xs), meaning(slopes, *xs)
    _close(found[0], wanted[0])
    for one, other in zip(found[1], wanted[1], strict=True):
        _close(one, other)
