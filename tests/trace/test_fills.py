# SPDX-License-Identifier: Apache-2.0
"""Functions and methods that write into an array do so in fused functions, too."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import NfuserError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(7)
X, Y = RNG.random((4, 5)) - 0.5, RNG.random((4, 5))
Z = np.arange(27.0).reshape(3, 3, 3)
ORDER = np.argsort(Y, 1)


def _partition(x: Any, y: Any) -> None:
    x.partition(2)
    x[:, :2] = np.sort(x[:, :2])
    x[:, 3:] = np.sort(x[:, 3:])


def _inside(x: Any, y: Any) -> Any:
    z = np.zeros(x.shape)
    np.copyto(z, y, where=x > 0)
    z[1].fill(3)
    return z


CASES: list[Callable[[Any, Any], Any]] = [
    lambda x, y: np.copyto(x, y),
    lambda x, y: np.copyto(x[1:], y[0]),
    lambda x, y: np.copyto(x, 3, where=y > 0.5),
    lambda x, y: np.copyto(x, y[:1], where=[True, False, True, False, True]),
    lambda x, y: np.putmask(x, x > 0, y),
    lambda x, y: np.putmask(x, x > 0, -1),
    lambda x, y: np.place(x, y > 0.5, 7),
    lambda x, y: np.place(x, y > 0.5, x[y > 0.5] * 2),
    lambda x, y: np.put(x, [0, 3, -1], 5),
    lambda x, y: np.put(x, np.array([1, 7]), y[0, :2]),
    lambda x, y: np.put(x[0], [0, -1], [2, 3]),
    lambda x, y: np.put(x, [0, 40, -1, 3], y[0, :2].sum(), "clip"),
    lambda x, y: np.put(x, [[0, 41], [-19, 3]], [1, 2, 3, 4], mode="wrap"),
    lambda x, y: x[:, 0].put(np.array([7, -9, 1], np.int8), [5, 6, 7], mode="wrap"),
    lambda x, y: x[1].put([], [], mode="clip"),
    lambda x, y: np.fill_diagonal(x, 9),
    lambda x, y: np.fill_diagonal(x.T, y[0]),
    lambda x, y: np.fill_diagonal(x, y[0, :2]),
    lambda x, y: np.put_along_axis(x, ORDER, y, 1),
    lambda x, y: np.put_along_axis(x, np.argmax(x, 1, keepdims=True), 0, -1),
    lambda x, y: x.fill(2),
    lambda x, y: x[::2, 1].fill(2),
    lambda x, y: x.sort(),
    lambda x, y: x.sort(axis=0),
    lambda x, y: x[0].sort(),
    lambda x, y: x.put([1, 2], 4),
    _partition,
    _inside,
]


@pytest.mark.parametrize("function", CASES)
def test_as_numpy(function: Callable[[Any, Any], Any]) -> None:
    fused = nfuser.fuse(function)
    for _ in range(2):
        ours, theirs = [X.copy(), Y.copy()], [X.copy(), Y.copy()]
        found, wanted = fused(*ours), function(*theirs)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert (found is None) == (wanted is None)
        if wanted is not None:
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_diagonals_of_more_axes() -> None:
    def diagonal(z: Any) -> None:
        np.fill_diagonal(z, -1)

    ours, theirs = Z.copy(), Z.copy()
    diagonal(theirs)
    nfuser.fuse(diagonal)(ours)
    assert (ours == theirs).all()
    with pytest.raises(ValueError, match="equal length"):
        nfuser.fuse(diagonal)(np.zeros((2, 2, 3)))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "?", "c8"])
def test_of_a_complex_number_the_real_part_fills_other_arrays(dtype: str) -> None:
    def both(x: Any, full: Any) -> Any:
        return np.full_like(x, 3 + 2j), full(x.shape, np.complex64(2 + 1j), x.dtype)

    given = np.ones(3, dtype)
    found = nfuser.fuse(lambda x: both(x, nfuser.numpy.full))(given)
    for one, other in zip(found, both(given, np.full), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (lambda x, y: np.putmask(x, x > 0, y[0]), UnsupportedError, "repeated"),
        (lambda x, y: np.place(x, x > 0, y[0]), UnsupportedError, "repeated"),
        (lambda x, y: np.copyto(x, y[:2]), ValueError, "broadcast"),
        (lambda x, y: np.copyto(x, y * 1j), TypeError, "same_kind"),
        (lambda x, y: np.put(x, [20], 1), IndexError, "out of bounds"),
        (lambda x, y: np.fill_diagonal(x, 1, wrap=True), NfuserError, "wrap"),
    ],
)
def test_it_is_refused(
    function: Callable[[Any, Any], Any], error: type[Exception], said: str
) -> None:
    x = X.copy()
    with pytest.raises(error, match=said):
        nfuser.fuse(function)(x, Y)
    assert (x == X).all()


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("value", [True, 3, 0.5, 1j])
@pytest.mark.parametrize("where", [True, [True, False, True]])
def test_copyto_casts_numbers_of_python_as_numpy_does(
    dtype: str, value: complex, where: Any
) -> None:
    def work(x: Any) -> None:
        np.copyto(x, value, where=where)

    x, y = np.zeros(3, dtype), np.zeros(3, dtype)
    try:
        work(x)
    except TypeError:
        with pytest.raises(TypeError):
            nfuser.fuse(work, backend="interpret")(y)
    else:
        nfuser.fuse(work, backend="interpret")(y)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("dtype", ["f8", "u8"])
def test_put_takes_no_indices_that_numpy_would_have_to_cut(
    mode: str, dtype: str
) -> None:
    def work(x: Any, i: Any) -> None:
        np.put(x, i, 7, mode=mode)  # pyright: ignore[reportArgumentType]

    index = np.array([1, 2], dtype)
    for function in (work, nfuser.fuse(work, backend="interpret")):
        with pytest.raises(TypeError, match="Cannot cast"):
            function(np.arange(5), index)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "c8"])
@pytest.mark.parametrize(
    "value",
    [
        *(1.5, 2, True, np.float64(1.5), np.int64(3), [1.5, 2.5, 3.5]),
        *(np.array([1.5, 2.5, 3.5]), np.array([1, 2, 3]), np.array([1, 2, 3], "f4")),
    ],
)
def test_putmask_takes_arrays_that_are_cast_safely(dtype: str, value: Any) -> None:
    def work(x: Any, mask: Any, values: Any) -> None:
        np.putmask(x, mask, values)

    fused = nfuser.fuse(work, backend="interpret")
    mask = np.array([True, False, True])
    x, y = np.zeros(3, dtype), np.zeros(3, dtype)
    try:
        work(x, mask, value)
    except TypeError:
        with pytest.raises(TypeError, match="safe"):
            fused(y, mask, value)
    else:
        fused(y, mask, value)
    np.testing.assert_array_equal(x, y)
