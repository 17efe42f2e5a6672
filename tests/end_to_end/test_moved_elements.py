# SPDX-License-Identifier: Apache-2.0
"""Movements that random programs once got wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]


def _to_literal_sizes(x: Array) -> Array:
    return np.reshape(x, (1, 2)) + 1


def _to_quotients(x: Array) -> Array:
    return x.reshape(x.shape[0], x.shape[1] // 3, 3, 9) * 2


def _repeated_then_inferred(x: Array) -> Array:
    return np.repeat(x, 2, axis=0).reshape(-1, 1, x.shape[1])


def _halves_of_a_slice(x: Array) -> Array:
    t = x[1:5, x.shape[1] // 2 : 3]
    half = t.shape[0] // 2
    return t * t + np.concatenate((-t[half:], t[:half]), axis=0) * t


def _parts_at_places_of_their_own(x: Array) -> Array:
    t = np.concatenate([x, x])
    return np.take(t, t.astype(np.int64) % t.shape[0])


def _one_part_alone(x: Array) -> Array:
    return np.concatenate([x, x, x], axis=0)[-x.shape[0]]


def _rows_of_every_second(x: Array) -> Array:
    return np.concatenate([x[::2, :, : x.shape[2] - 13]] * 3, axis=-1)


def _complex_parts(x: Array) -> Array:
    return np.pad(np.concatenate([x, np.conj(x)]), ((1, 2),), constant_values=0.5)


def _fold_of_nothing(x: Array) -> Array:
    return np.sum(x.reshape(x.shape[1], x.shape[0], 1))


def _each_lane_at_its_own_place(x: Array) -> Array:
    n = x.shape[0]
    return np.take_along_axis(x, (x % n) - n, axis=0)


def _fold_over_parts_of_one(x: Array) -> Array:
    return np.concatenate([-x, x], axis=-1).prod(axis=1)


def _fold_over_turned_parts_of_one(x: Array) -> Array:
    turned = x[2::-1]
    return np.concatenate([turned, turned, turned], axis=0).sum(axis=(0, -1))


def _more_than_eight_loops(x: Array) -> Array:
    parts = np.concatenate([x, x, x], axis=2).reshape(x.shape[0], 96, 1, -1, 8)
    return parts / parts.max() - parts.sum(dtype=np.float64)


def _halves_of_a_turned_matrix(x: Array) -> Array:
    flat = np.reshape(x[::-1], -1)
    third = flat.shape[0] // 3
    return flat * 0.5 + np.concatenate([-flat[third:], flat[:third]]) * 2


def _where_sums_so_far_point(x: Array) -> Array:
    return np.take(x, np.cumsum(x) % x.shape[0])


CASES: list[tuple[Callable[[Array], Array], Array]] = [
    (_to_literal_sizes, np.arange(2.0)),
    (_to_quotients, np.arange(27.0).reshape(1, 3, 9)),
    (_repeated_then_inferred, np.arange(2.0).reshape(1, 2)),
    (_halves_of_a_slice, np.arange(36.0).reshape(9, 4)),
    (_parts_at_places_of_their_own, np.array([3, 1, 2])),
    (_one_part_alone, np.ones((2, 1))),
    (_rows_of_every_second, np.arange(256.0).reshape(4, 4, 16)),
    (_complex_parts, np.arange(3) * (1 - 2j)),
    (_each_lane_at_its_own_place, np.arange(6).reshape(3, 2) * 5),
    (_fold_of_nothing, np.ones((0, 2))),
    (_fold_over_parts_of_one, np.array([[3.0], [-2.0]])),
    (_fold_over_turned_parts_of_one, np.array([[[1.5], [-4.0]]])),
    (
        _more_than_eight_loops,
        np.arange(1, 513, dtype="i1").reshape(16, 2, 2, 1, 8).transpose(2, 1, 0, 3, 4),
    ),
    (_halves_of_a_turned_matrix, np.arange(32.0).reshape(16, 2)),
    (_where_sums_so_far_point, np.array([2, 1, 4, 0, 3])),
]


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize(("function", "x"), CASES)
def test_elements_are_where_numpy_has_them(
    function: Callable[[Array], Array], x: Array, backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(2):
        found, expected = fused(x), function(x)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_what_is_left_of_a_kernel_may_be_cut_again(backend: str) -> None:
    """The last kernel computes the product again, and the roll runs over other axes."""

    def program(x: Array, y: Array, n: int) -> tuple[Array, ...]:
        taken = np.take(x, (y.astype(np.int64) % x.shape[0]) - x.shape[0])
        rolled = np.roll(y, n)
        return taken, (rolled * y)[:, -2], rolled

    x, y = np.arange(4.0), np.arange(8, dtype=np.uint64).reshape(4, 2)
    fused = nfuser.fuse(program, backend=backend)
    for found, expected in zip(fused(x, y, 2), program(x, y, 2), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
def test_repeats_of_nothing_leave_no_loop(backend: str) -> None:
    def program(x: Array, y: Array) -> tuple[Array, Array]:
        return np.repeat(x, 3, axis=1), np.tile(y, (x.shape[1], 1))

    x = np.ones((1, 0), np.float16)
    fused = nfuser.fuse(program, backend=backend)
    for found, expected in zip(fused(x, x), program(x, x), strict=True):
        assert found.shape == expected.shape
