# SPDX-License-Identifier: Apache-2.0
"""Dtypes, shapes and signs of zeros that NumPy decides in a way of its own."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportCallIssue=false, reportArgumentType=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import nfuser

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGERS = np.array([3, 0, -2], np.int16)
NATURALS = np.array([1, 7, 0], np.uint16)
FLOATS = np.array([-0.5, 2.0, 4.0], np.float32)
WIDE = np.array([2**63 - 1, -(2**63), 3, 9], np.int64)
TABLE = np.arange(12.0).reshape(3, 4)


def _same(found: Any, expected: Any) -> None:
    """Check values, dtypes, shapes and the signs of zeros."""
    if isinstance(expected, tuple):
        for one, other in zip(found, cast("tuple[Any, ...]", expected), strict=True):
            _same(one, other)
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-15)
    if expected.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(
            np.signbit(found[zero]), np.signbit(expected[zero])
        )


def _as_numpy(function: Callable[..., Any], *arrays: Any) -> None:
    _same(nfuser.fuse(function)(*arrays), function(*arrays))


def _joined(i: Any, u: Any, f: Any) -> Any:
    return (
        np.concatenate([i, u, f]),
        np.stack([u, i, f]),
        np.hstack([i, u, f]),
        np.block([i, u, f]),
        np.select([i > 0, u > 0], [i, u], f),
        np.clip(f, i, u),
        np.clip(i, u, f),
    )


@pytest.mark.parametrize("kinds", [("i2", "u2", "f4"), ("i1", "u1", "f2")])
def test_three_dtypes_meet_all_at_once(kinds: tuple[str, str, str]) -> None:
    arrays = (INTEGERS, NATURALS, FLOATS)
    _as_numpy(_joined, *(x.astype(k) for x, k in zip(arrays, kinds, strict=True)))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "f4"])
def test_angles_and_sinc_have_the_dtypes_of_numpy(dtype: str) -> None:
    _as_numpy(lambda x: (np.angle(x), np.sinc(x)), INTEGERS.astype(dtype))


def test_sinc_takes_complex_numbers() -> None:
    _as_numpy(np.sinc, np.array([0, 0.3 + 0.1j, 1j, -2.5]))


def test_the_method_conj_leaves_bool_alone() -> None:
    _as_numpy(lambda x: (x.conj(), x.conjugate(), np.conj(x)), INTEGERS > 0)


def test_the_square_of_one_bool_is_int64_and_of_an_array_of_them_int8() -> None:
    _as_numpy(lambda x: ((x.sum() > 0) ** 2, (x > 0) ** 2, (x > 0)[1] ** 2), INTEGERS)


def test_numbers_join_arrays_of_any_dtype() -> None:
    def joined(x: Any) -> Any:
        return np.concatenate([x, 2], axis=None), np.concatenate([7, x, 3], axis=None)

    _as_numpy(joined, INTEGERS.astype(np.uint32))


def test_vecdot_takes_an_axis() -> None:
    def products(x: Any) -> Any:
        kept = np.vecdot(x, x + 1, axis=-2, keepdims=True)
        return np.vecdot(x, 1j * x, axis=0), kept, np.vecdot(1j * x, x[:, 0], axis=0)

    _as_numpy(products, TABLE)


def test_a_vector_has_triangles() -> None:
    _as_numpy(lambda x: (np.tril(x), np.triu(x, 1)), FLOATS)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3)])
def test_take_looks_at_no_index_where_nothing_is_read(shape: tuple[int, int]) -> None:
    _as_numpy(lambda x: (np.take(x, 0, axis=-1), np.take(x, [4], 1)), np.ones(shape))


def test_what_take_may_read_is_asked_again_when_there_is_something() -> None:
    fused = nfuser.fuse(lambda x: np.take(x, 4, axis=1))
    assert fused(np.ones((0, 3))).shape == (0,)
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        fused(np.ones((2, 3)))


def test_the_mean_of_large_integers_loses_no_small_one() -> None:
    fused = nfuser.fuse(lambda x: (x.mean(), x.mean(axis=0), x.T.mean(axis=0)))
    whole, down, across = fused(np.stack([WIDE, WIDE], axis=1))
    assert (whole, [*down], [*across]) == (
        2.75,
        [2.75] * 2,
        WIDE.astype(float).tolist(),
    )
    unsigned = np.array([2**64 - 1, 5, 2**64 - 1], np.uint64)
    exact = float(sum(map(int, unsigned)) / 3)
    assert nfuser.fuse(np.mean)(unsigned) == pytest.approx(exact, rel=3e-16)


@pytest.mark.parametrize("order", [1, 2])
def test_flat_slopes_are_the_zeros_of_numpy(order: int) -> None:
    def slopes(x: Any, places: Any) -> Any:
        at_once = np.gradient(x, edge_order=order)
        return at_once, np.gradient(x, 0.3, edge_order=order), np.gradient(x, places)

    steps = np.array([1.0, 1, 1, 2, 2, 2]), np.array([0.0, 1, 3, 4, 5, 9])
    _as_numpy(slopes, *steps)


def test_einsum_adds_to_zeros() -> None:
    def products(x: Any, y: Any) -> Any:
        several = np.einsum("bi,bj->bij", x, y), np.einsum("ij,ij->ij", x, y)
        return *several, np.einsum("ij->i", x), np.einsum("ij->ji", x)

    _as_numpy(products, np.array([[-0.0, -0.0]]), np.array([[0.0, 1.0]]))


def test_half_a_float_power_is_no_square_root() -> None:
    x = np.array([-np.inf, -0.0, 4.0, np.inf])
    want = np.float_power(x, 0.5)
    for found in (
        nfuser.fuse(lambda x: np.float_power(x, 0.5))(x),
        nfuser.fuse(np.float_power)(x, 0.5),
    ):
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
