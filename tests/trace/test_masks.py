# SPDX-License-Identifier: Apache-2.0
"""What a mask chooses is computed with, folded, and assigned under the same mask."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import AxisError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(5)
X, Y = RNG.random((4, 5)) - 0.5, RNG.random((4, 5))


def power(x: Any, y: Any) -> None:
    x[x > 0] = x[x > 0] ** -1.5


def scale(x: Any, y: Any) -> None:
    x[x > 0] *= y[x > 0]


def swap(x: Any, y: Any) -> None:
    mask = y > 0.5
    x[mask], y[mask] = y[mask], x[mask]


def rows(x: Any, y: Any) -> Any:
    mask = y[:, 0] > 0.5
    x[mask] = 2 * y[mask] + x[0]
    return x[mask].sum(axis=0), x[mask].mean(0)


def columns(x: Any, y: Any) -> None:
    mask = y[0] > 0.5
    x[:, mask] = np.sqrt(y[:, mask]) + x[0, 0]
    x[1, mask] += 1
    x[..., mask] -= 0.25


def apart(x: Any, y: Any) -> None:
    z = np.stack([x, y, x + y])
    mask = y[0] > 0.5
    z[0, :, mask] = y.T[mask]
    x[...] = z[0]


def kept(x: Any, y: Any) -> Any:
    mask = y > 0.5
    chosen = x[mask]
    other = chosen
    other += 1
    x[mask] = 7
    return chosen.sum(), (chosen * chosen).std()


def folds(x: Any, y: Any) -> Any:
    chosen = x[y > 0.5]
    return (
        np.sum(chosen),
        np.mean(chosen),
        np.var(chosen, ddof=1),
        np.count_nonzero(chosen > 0.1),
        np.any(chosen > 0.3),
        chosen.sum() / chosen.size,
        np.max(chosen, initial=-3.0),
        np.where(chosen > 0, 1, chosen).sum(),
    )


def turns(x: Any, y: Any) -> None:
    for _ in range(100):
        mask = x < 0.3
        x[mask] = x[mask] * 1.5 + y[mask]


def branched(x: Any, y: Any) -> None:
    mask = x > y
    if mask.any():
        x[mask] = x[mask] - y[mask]


@pytest.mark.parametrize(
    "function",
    [power, scale, swap, rows, columns, apart, kept, folds, turns, branched],
)
def test_as_numpy(function: Callable[[Any, Any], Any]) -> None:
    fused = nfuser.fuse(function)
    for _ in range(3):
        ours, theirs = [X.copy(), Y.copy()], [X.copy(), Y.copy()]
        found, wanted = fused(*ours), function(*theirs)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        for one, other in zip(found or (), wanted or (), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
            assert np.asarray(one).dtype == np.asarray(other).dtype
    assert fused.cache_info().traces == 1


def test_a_mask_that_chooses_nothing_has_a_mean_of_nan() -> None:
    assert np.isnan(nfuser.fuse(lambda x: x[x > 9].mean())(X))


def test_the_number_of_elements_is_no_part_of_the_trace() -> None:
    fused = nfuser.fuse(lambda x: (x[x > 0] * 2).sum())
    for k in range(5):
        x = RNG.random(30) - k / 4
        np.testing.assert_allclose(fused(x), (x[x > 0] * 2).sum(), rtol=1e-12)
    assert fused.cache_info().traces == 1


def _other_mask(x: Any, y: Any) -> None:
    x[x > 0] = y[y > 0]


def _between(x: Any, y: Any) -> None:
    chosen = x[x > 0]
    x += 1
    x[x > 0] = chosen


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x[x > 0],
        lambda x, y: x[x > 0] + y,
        lambda x, y: x[x > 0][0],
        lambda x, y: np.sort(x[x > 0]),
        lambda x, y: x[x > 0].max(),
        _other_mask,
        _between,
    ],
)
def test_what_needs_the_number_of_elements_is_refused(
    function: Callable[[Any, Any], Any],
) -> None:
    x = X.copy()
    with pytest.raises(UnsupportedError, match="mask"):
        nfuser.fuse(function)(x, Y)
    assert (x == X).all()


def test_a_mask_of_another_shape_raises_as_numpy_does() -> None:
    def transposed(x: Any, y: Any) -> None:
        x[y.T > 0] = 1

    with pytest.raises(AxisError, match="did not match"):
        nfuser.fuse(transposed)(X.copy(), Y)
