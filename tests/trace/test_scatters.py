# SPDX-License-Identifier: Apache-2.0
"""Arrays of integers choose what is read and what is assigned, as NumPy has it."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.lax
from nfuser.config import override
from nfuser.errors import NfuserError, ShapeError, UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.random((5, 6, 4))
AT, J = RNG.integers(-4, 4, (7,)), RNG.integers(-4, 4, (7,))
COLUMN = RNG.integers(-4, 4, (3, 1))
ROWS = RNG.random((7, 6, 4))
BACKENDS = ("cpu", "interpret")


def agree(function: Any, *arrays: Any, backend: str = "cpu") -> None:
    """Hold a function against NumPy bit for bit, its arguments included."""
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(2):
        theirs, mine = [x.copy("K") for x in arrays], [x.copy("K") for x in arrays]
        with np.errstate(all="ignore"):
            wanted, found = function(*theirs), fused(*mine)
        for one, other in zip((wanted, *theirs), (found, *mine), strict=True):
            if one is not None:
                np.testing.assert_array_equal(other, one)


KEYS: dict[str, Any] = {
    "one": lambda i, j, c: i,
    "rows of it": lambda i, j, c: (c, i),
    "two": lambda i, j, c: (i, j),
    "a slice between": lambda i, j, c: (i, slice(None), j),
    "a slice before": lambda i, j, c: (slice(1, None), i, j),
    "a number beside": lambda i, j, c: (0, i),
    "a number apart": lambda i, j, c: (1, slice(None), i),
    "the last axis": lambda i, j, c: (..., i),
    "a new axis": lambda i, j, c: (None, i, 2),
    "an open mesh": lambda i, j, c: np.ix_(np.array([0, 2]), np.array([1, 0, -1])),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_keys_with_index_arrays_read_and_write(key: Any, backend: str) -> None:
    def work(x: Any, i: Any, j: Any, c: Any) -> Any:
        found = x[key(i, j, c)] * 2
        x[key(i, j, c)] = found + 1
        x[key(i, j, c)] += 3
        np.add.at(x, key(i, j, c), found)
        return found

    agree(work, X, AT, J, COLUMN, backend=backend)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "u8"])
def test_at_takes_every_value_in_order(name: str, dtype: str) -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        getattr(np, name).at(x, i, v)

    index = RNG.integers(-50, 50, 4000)
    values = (RNG.random(4000) * 50).astype(dtype)
    agree(work, np.ones(50, dtype), index, values)
    agree(work, np.ones(50, dtype), np.sort(index), values)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("key", [slice(1, 3), 0, (slice(None), -1), ...])
def test_at_takes_keys_without_arrays(name: str, key: Any) -> None:
    def work(x: Any) -> None:
        getattr(np, name).at(x, key, 3)

    agree(work, np.arange(12.0).reshape(3, 4))
    agree(work, np.arange(12).reshape(3, 4))


@pytest.mark.parametrize("narrow", ["?", "u1", "i1", "u2"])
@pytest.mark.parametrize("dtype", ["f8", "i4", "u2"])
@pytest.mark.parametrize("key", [np.array([0, 0, 2]), slice(1, 4)])
def test_what_is_subtracted_may_be_narrower(narrow: str, dtype: str, key: Any) -> None:
    def work(x: Any, v: Any) -> None:
        np.subtract.at(x, key, v)
        np.subtract.at(x, key, 1)

    values = np.array([1, 0, 255], "u1" if narrow == "?" else "i8").astype(narrow)
    if np.can_cast(narrow, dtype, "same_kind"):
        agree(work, np.arange(5).astype(dtype), values)


def test_not_a_number_is_the_greatest_and_the_least() -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        np.maximum.at(x, i, v)
        np.minimum.at(x, i, v[::-1])

    agree(work, np.array([np.nan, 1, 2]), np.array([0, 1, 1]), np.array([1, np.nan, 3]))


def test_the_last_value_stays() -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        x[i] = v

    agree(work, np.zeros(4), RNG.integers(0, 4, 999), RNG.random(999))


def test_truth_values_and_halves_are_scattered() -> None:
    def work(x: Any, h: Any, i: Any) -> None:
        x[i] = False
        h[i] = 2.5

    agree(work, np.ones(9, bool), np.zeros(9, np.float16), AT)


def test_arrays_that_are_not_in_one_piece_are_written() -> None:
    def work(x: Any, y: Any, i: Any) -> None:
        x[i] += 1
        np.add.at(y, (i, i), 2.0)

    x, y = np.zeros((10, 6))[::2], np.asfortranarray(np.zeros((5, 5)))
    plain = np.zeros((5, 6)), np.zeros((5, 5))
    nfuser.fuse(work)(x, y, AT)
    work(*plain, AT)
    np.testing.assert_array_equal(x, plain[0])
    np.testing.assert_array_equal(y, plain[1])


def test_values_of_the_same_array_are_read_before() -> None:
    def work(x: Any, i: Any) -> Any:
        x[i] = x[: len(i)]
        np.add.at(x, i, x[1 : 1 + len(i)])
        return x * 2

    agree(work, np.arange(12.0), RNG.integers(0, 12, 8))


def test_rows_are_added_by_any_number_of_threads_alike() -> None:
    def work(x: Any, i: Any, rows: Any) -> None:
        np.add.at(x, i, rows)

    index, rows = RNG.integers(0, 9, 3000), RNG.random((3000, 400))
    wanted = np.zeros((9, 400))
    np.add.at(wanted, index, rows)
    for threads in (1, 2, 3):
        found = np.zeros((9, 400))
        with override(num_threads=threads):
            nfuser.fuse(work)(found, index, rows)
        np.testing.assert_array_equal(found, wanted)


def test_arrays_made_inside_are_scattered_into() -> None:
    def work(i: Any, v: Any) -> Any:
        bins = np.zeros(8)
        np.add.at(bins, i, v)
        return bins / bins.sum()

    agree(work, RNG.integers(0, 8, 100), np.ones(100))


def test_nothing_is_written_where_an_index_is_out_of_range() -> None:
    def work(x: Any, i: Any) -> None:
        x += 1
        x[i] = 5

    x = np.zeros(4)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0") as told:
        nfuser.fuse(work)(x, np.array([0, 9]))
    assert isinstance(told.value, NfuserError)
    assert len(set(x)) == 1  # as after a whole statement
    assert 5 not in x


def test_an_index_beside_another_may_not_leave_its_own_axis() -> None:
    def work(x: Any, i: Any, j: Any) -> None:
        x[i, j] = 5

    x = np.zeros((4, 4))
    with pytest.raises(IndexError, match="out of bounds"):
        nfuser.fuse(work)(x, np.array([0, 1]), np.array([0, 4]))
    assert not x.any()


def test_values_that_do_not_fit_are_refused_before() -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        x[i] = v

    with pytest.raises(ShapeError, match="could not broadcast"):
        nfuser.fuse(work)(np.zeros(4), AT[:3] % 4, np.ones(2))


def test_empty_indices_and_arrays_change_nothing() -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        x[i] = v

    agree(work, np.ones((3, 2)), np.zeros(0, int), np.zeros((0, 2)))
    agree(work, np.ones((3, 0)), np.array([1]), np.zeros((1, 0)))


def test_a_loop_writes_at_its_counter() -> None:
    def work(x: Any) -> Any:
        def turn(i: Any, made: Any) -> Any:
            made = made.copy()
            made[i] = x[i] * i
            return made

        return nfuser.lax.fori_loop(0, x.shape[0], turn, x * 0)

    x = RNG.random(40)
    np.testing.assert_array_equal(nfuser.fuse(work)(x), x * np.arange(40))


@pytest.mark.parametrize(
    ("name", "held", "given"),
    [
        ("add", "i8", "f8"),
        ("add", "?", "i8"),
        ("multiply", "u1", "f4"),
        ("maximum", "u1", "i8"),
        ("minimum", "?", "f8"),
    ],
)
def test_at_refuses_values_that_are_cast_after_each(
    name: str, held: str, given: str
) -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        getattr(np, name).at(x, i, v)

    x, values = np.ones(3, held), np.array([0.75, -1, 2.5]).astype(given)
    with pytest.raises(UnsupportedError, match="after each value"):
        nfuser.fuse(work)(x, np.array([0, 0, 1]), values)
    assert x.all()


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_at_cuts_wider_integers(name: str) -> None:
    def work(x: Any, i: Any, v: Any) -> None:
        getattr(np, name).at(x, i, v)

    agree(work, np.arange(3, dtype="i2"), np.array([1, 1, 2]), np.array([70000, -3, 9]))
