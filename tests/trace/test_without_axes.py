# SPDX-License-Identifier: Apache-2.0
"""Arrays without axes come back as arrays, numbers as NumPy's scalars."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

POINT, TABLE = np.array(3.0), np.ones((3, 4))
OF_A_POINT: dict[str, Callable[[Any], Any]] = {
    "itself and its copies": lambda x: (x, x.copy(), np.copy(x), x.astype("f4")),
    "its views": lambda x: (x.T, x.squeeze(), x.reshape(()), x[...], np.transpose(x)),
    "its parts": lambda x: (x.real, x.imag, x.conj()),
    "what is like it": lambda x: (np.zeros_like(x), np.full_like(x, 2)),
    "choices": lambda x: (np.where(x > 0, x, 1), np.select([x > 0], [x], 0)),
    "stretched": lambda x: (np.broadcast_to(x, ()), *np.broadcast_arrays(x, x)),
    "functions": lambda x: (x + 1, -x, np.exp(x), x[()], np.clip(x, 0, 1), x**2),
    "folds": lambda x: (x.sum(), np.max(x), x.mean(), x.ravel()[0], np.stack([x])[0]),
    "what is made of others": lambda x: (np.nan_to_num(x), np.sinc(x), np.angle(x)),
}
OF_A_TABLE: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: (x[0, 0], x[0, 0, ...], x[0][1], x[:1, :1].squeeze()),
    "numbers": lambda x: (x.sum(), x.sum().copy(), x.sum().T, x.sum().reshape(())),
    "folds": lambda x: (x.sum(keepdims=True).squeeze(), np.nanmax(x), np.median(x)),
    "shapes": lambda x: (x[:1, :1].reshape(()), np.reshape(x[0, :1], ())),
    "choices": lambda x: (np.where(x.sum() > 0, 1.0, 2.0), np.copy(x[0, 0])),
    "products": lambda x: (x[0] @ x[1], np.vdot(x, x), np.linalg.norm(x), np.trace(x)),
}


def _kinds(found: Any) -> list[tuple[type, Any]]:
    return [(type(x), x.dtype) for x in found]


@pytest.mark.parametrize("name", OF_A_POINT)
def test_results_of_a_point_are_what_numpy_gives(name: str) -> None:
    function = OF_A_POINT[name]
    fused = nfuser.fuse(function)
    for _ in range(3):  # the first call, and those that are native
        assert _kinds(fused(POINT)) == _kinds(function(POINT))


@pytest.mark.parametrize("name", OF_A_TABLE)
def test_results_of_a_table_are_what_numpy_gives(name: str) -> None:
    function = OF_A_TABLE[name]
    fused = nfuser.fuse(function)
    for _ in range(3):
        assert _kinds(fused(TABLE)) == _kinds(function(TABLE))


def test_one_result_alone_and_native_is_an_array_too() -> None:
    fused = nfuser.fuse(lambda x: x.T)
    kinds = {type(fused(POINT)) for _ in range(4)}
    assert kinds == {np.ndarray}


def test_an_array_without_axes_is_written_through_every_name() -> None:
    def function(x: Any) -> Any:
        y = x.copy()
        z, w = y, x.sum()
        v = w
        y += 1
        w += 1
        return z, v, y, w

    for fused in (function, nfuser.fuse(function)):
        assert [float(x) for x in fused(POINT)] == [4.0, 3.0, 4.0, 4.0]


def test_numbers_given_to_asarray_are_arrays() -> None:
    xp = nfuser.numpy

    def function(x: Any, n: Any) -> Any:
        made = xp.asarray(5), xp.asarray(n), xp.asarray(True), np.asarray(x.sum())
        assert all(y.shape == () for y in made)
        return *made, xp.asarray(2) + x.astype(np.int8)

    found = nfuser.fuse(function)(TABLE, 7)
    assert _kinds(found) == _kinds(function(TABLE, 7))
    assert [int(x) for x in found[:4]] == [5, 7, 1, 12]
