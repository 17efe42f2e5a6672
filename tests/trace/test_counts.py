# SPDX-License-Identifier: Apache-2.0
"""Counts, histograms and folds of segments are NumPy's, and the same in each run."""

# What a traced function is given, and gives, has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.execution.host.call.library.scatters as scatters
import nfuser.nn
import nfuser.numpy as xp
from nfuser.config import override
from nfuser.errors import (
    DTypeError,
    NfuserError,
    OptionError,
    ShapeError,
    UnsupportedError,
)

RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(0, 50, 1000)
WEIGHTS = RNG.random(1000)
EDGES = np.array([0, 10, 20, 50, 51, 90.0])


def agree(function: Any, *arrays: Any, backend: str = "cpu") -> None:
    """Hold results against NumPy's: kinds, shapes, integers exactly."""
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
    found = nfuser.fuse(function, backend=backend)(*arrays)
    for one, other in zip(_flat(found), _flat(wanted), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        rtol = {"f4": 1e-6}.get(one.dtype.str[1:], 1e-13)
        np.testing.assert_allclose(one, other, rtol, 0 if rtol else 1e-30)


def _flat(found: Any) -> list[Any]:
    if isinstance(found, (tuple, list)):
        return [x for item in found for x in _flat(item)]
    return [found]


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "?"])
def test_bincount_counts(dtype: str, backend: str) -> None:
    numbers = NUMBERS.astype(dtype)
    agree(lambda x: np.bincount(x, minlength=60), numbers, backend=backend)
    agree(lambda x, w: np.bincount(x, w, 60), numbers, WEIGHTS, backend=backend)
    agree(lambda x: np.bincount(x, minlength=4), numbers[:0], backend=backend)


def test_bincount_counts_in_a_length_that_is_passed() -> None:
    fused = nfuser.fuse(lambda x, n: np.bincount(x, minlength=n))
    for n in (50, 60, 70):
        np.testing.assert_array_equal(
            fused(NUMBERS, n), np.bincount(NUMBERS, minlength=n)
        )
    assert fused.cache_info().traces == 1


@pytest.mark.parametrize("length", [10, 49])
@pytest.mark.parametrize("sign", [1, -1])
def test_bincount_says_what_is_no_place(length: int, sign: int) -> None:
    with pytest.raises(ValueError, match="minlength above the greatest") as told:
        nfuser.fuse(lambda x: np.bincount(x, minlength=length))(NUMBERS * sign)
    assert isinstance(told.value, NfuserError)


def test_bincount_is_refused_where_its_length_depends_on_values() -> None:
    with pytest.raises(UnsupportedError, match=r"write np.bincount\(x, minlength=n\)"):
        nfuser.fuse(np.bincount)(NUMBERS)
    with pytest.raises(OptionError, match="must not be negative"):
        nfuser.fuse(lambda x: np.bincount(x, minlength=-1))(NUMBERS)
    with pytest.raises(DTypeError, match="according to the rule 'safe'"):
        nfuser.fuse(lambda x: np.bincount(x, minlength=9))(WEIGHTS)
    with pytest.raises(ShapeError, match="one dimension"):
        nfuser.fuse(lambda x: np.bincount(x, minlength=9))(NUMBERS.reshape(10, 100))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
@pytest.mark.parametrize("ends", [None, (0, 60), (10.5, 44.5), (7, 7)])
def test_histograms_of_even_bins(dtype: str, ends: Any) -> None:
    values = (RNG.normal(size=1000) * 20 + 100).astype(dtype)

    def work(x: Any, w: Any) -> Any:
        return (
            np.histogram(x, 10, ends),
            np.histogram(x, 7, ends, density=True),
            np.histogram(x, 10, ends, weights=w),
            np.histogram2d(x, w, [3, 4], None if ends is None else (ends, (0, 1))),
        )

    agree(work, values, WEIGHTS)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_histograms_between_edges(dtype: str) -> None:
    values = (RNG.normal(size=1000) * 20 + 50).astype(dtype)
    values[:5] = EDGES[:5]

    def work(x: Any, w: Any, edges: Any) -> Any:
        return (
            np.histogram(x, edges),
            np.histogram(x, [1, 5, 9], weights=w, density=True),
            np.histogramdd((x, w), (edges, 3), density=True),
        )

    agree(work, values, WEIGHTS, EDGES)


def test_histograms_on_the_interpreter() -> None:
    agree(lambda x: np.histogram(x, 5, (0.2, 0.8)), WEIGHTS[:99], backend="interpret")


def test_histograms_of_columns_and_of_nothing() -> None:
    agree(lambda x: np.histogramdd(x, 4), RNG.random((50, 3)))
    agree(lambda x: np.histogram(x, 4), np.zeros(0))
    agree(lambda x: np.histogram(x, 4), np.ones(7))


def test_values_that_are_no_numbers_belong_nowhere() -> None:
    odd = np.array([0.5, np.nan, np.inf, -np.inf, 0.7])
    agree(lambda x: np.histogram(x, 4, (0, 1)), odd)
    agree(lambda x: np.histogram(x, [0, 0.6, 1]), odd)
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="ends are finite"):
            nfuser.fuse(lambda x: np.histogram(x, 4))(np.array([1, value]))


def test_bins_are_refused_that_are_none() -> None:
    with pytest.raises(ValueError, match="must increase monotonically"):
        nfuser.fuse(lambda x, e: np.histogram(x, e))(WEIGHTS, np.array([1, 3, 2.0]))
    with pytest.raises(OptionError, match="max must be larger"):
        nfuser.fuse(lambda x: np.histogram(x, 3, (2, 1)))(WEIGHTS)
    with pytest.raises(OptionError, match="must be positive"):
        nfuser.fuse(lambda x: np.histogram(x, 0))(WEIGHTS)
    with pytest.raises(UnsupportedError, match="depends on values"):
        nfuser.fuse(lambda x: np.histogram(x, "auto"))(WEIGHTS)
    with pytest.raises(UnsupportedError, match=r"np\.sort"):
        nfuser.fuse(lambda x: np.unique(x))(WEIGHTS)


def test_names_are_in_the_namespace_too() -> None:
    np.testing.assert_array_equal(
        nfuser.fuse(lambda x: xp.bincount(x, minlength=50))(NUMBERS),
        xp.bincount(NUMBERS, minlength=50),
    )


def _at(name: str, x: Any, index: Any, values: Any) -> None:
    getattr(np, name).at(x, index, values)


def _ordered(rows: int, order: str) -> Any:
    """Return many places, of which those from the end are negative, if they are."""
    index = RNG.integers(-rows if order == "negative" else 0, rows, 600_000)
    if order in ("sorted", "nearly", "wide"):
        index.sort()
    if order == "nearly":  # but for one
        index[[400_000, 100]] = index[[100, 400_000]]
    if order == "wide":  # with more than a byte between two
        index[index < rows // 2] = 0
    return np.repeat(index[::20], 20) if order == "runs" else index


@pytest.mark.parametrize("rows", [5, 1000, 100_000])
@pytest.mark.parametrize(
    "order", ["random", "sorted", "negative", "nearly", "wide", "runs"]
)
def test_many_values_have_the_same_bits_for_any_threads(rows: int, order: str) -> None:
    index = _ordered(rows, order)
    values = RNG.random(index.size) * 2
    for name in ("add", "multiply", "maximum"):
        wanted = np.ones(rows)
        with np.errstate(all="ignore"):
            getattr(np, name).at(wanted, index, values)
        found: list[Any] = []
        for threads in (1, 2, 3):
            made = np.ones(rows)
            with override(num_threads=threads):
                nfuser.fuse(partial(_at, name))(made, index, values)
            found.append(made)
        assert all(np.array_equal(x, found[0], equal_nan=True) for x in found)
        np.testing.assert_allclose(found[0], wanted, 1e-10)
        if rows == 100_000:  # few to each place: one after another
            np.testing.assert_array_equal(found[0], wanted)


@pytest.mark.parametrize("dtype", ["f4", "f2", "i8", "i4", "u1", "?"])
def test_what_is_added_where_threads_look_for_their_own_changes_no_other(
    dtype: str,
) -> None:
    index = _ordered(100_000, "random")
    values = RNG.integers(0, 2, index.size).astype(dtype)
    for name in ("add", "multiply"):
        wanted = RNG.integers(0, 2, 100_000).astype(dtype)
        if dtype[0] == "f":
            wanted = -wanted  # zeros with a sign among them
        found = wanted.copy()
        getattr(np, name).at(wanted, index, values)
        with override(num_threads=2):
            nfuser.fuse(partial(_at, name))(found, index, values)
        assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("wrong", [-6, 5, -(2**62), 2**62])
@pytest.mark.parametrize("has_runs", [False, True])
@pytest.mark.parametrize("at", [0, 345_678, -1])
def test_nothing_is_written_where_one_of_many_is_nowhere(
    wrong: int, has_runs: bool, at: int
) -> None:
    index = RNG.integers(-5, 5, 600_000)
    if has_runs:
        index.sort()
    index[at] = wrong
    made = np.ones(5)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds"):
        nfuser.fuse(partial(_at, "add"))(made, index, 0.0)
    np.testing.assert_array_equal(made, np.ones(5))
    index[at] = 4
    nfuser.fuse(partial(_at, "add"))(made, index, 1.0)
    np.testing.assert_array_equal(made, 1 + np.bincount(index % 5))


def test_an_index_in_order_whose_differences_overflow_is_nowhere() -> None:
    index = np.sort(RNG.integers(1, 1000, 600_000))
    index[-1] = -(2**63)  # 2^63 less the one before it, in 64 bits
    made = np.ones(1000)
    with pytest.raises(IndexError, match=f"index {-(2**63)} is out of bounds"):
        nfuser.fuse(partial(_at, "add"))(made, index, 1.0)
    np.testing.assert_array_equal(made, np.ones(1000))


@pytest.mark.parametrize("wrong", [-1, 5])
def test_one_of_many_numbers_is_no_place(wrong: int) -> None:
    numbers = RNG.integers(0, 5, 600_000)
    numbers[123_456] = wrong
    ends = f"from {min(wrong, 0)} to {max(wrong, 4)}"
    with pytest.raises(ValueError, match=f"minlength above the greatest.*{ends}"):
        nfuser.fuse(lambda x: np.bincount(x, minlength=5))(numbers)


def test_a_long_index_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # It was looked at as a whole before any of it was added.
    monkeypatch.delattr(f"{scatters.__name__}._Loops.look")
    numbers = RNG.integers(0, 50, 600_000)
    for function in (
        lambda x: np.bincount(x, minlength=50),
        lambda x: np.bincount(x, x * 0.5, 50),
    ):
        agree(function, numbers)


def test_weights_of_64_bits_are_not_copied() -> None:
    for weights in (WEIGHTS, WEIGHTS * 1j):
        fused = nfuser.fuse(lambda x, w: np.bincount(x, w, 60))
        assert not fused.kernels(NUMBERS, weights)


def test_the_last_of_many_values_stays() -> None:
    index = RNG.integers(0, 100_000, 600_000)
    values = RNG.random(index.size)
    wanted, found = np.zeros(100_000), np.zeros(100_000)
    wanted[index] = values

    def work(x: Any, i: Any, v: Any) -> None:
        x[i] = v

    nfuser.fuse(work)(found, index, values)
    np.testing.assert_array_equal(found, wanted)


def test_complex_arrays_are_scattered() -> None:
    def work(x: Any, y: Any, i: Any, v: Any) -> None:
        x[i] = v
        np.add.at(y, i, v * 2j)

    index = RNG.integers(-6, 6, 40)
    values = RNG.random(40) + 1j * RNG.random(40)
    one, two = np.ones((2, 8), complex)
    mine, more = one.copy(), two.copy()
    nfuser.fuse(work)(mine, more, index, values)
    work(one, two, index, values)
    np.testing.assert_array_equal(mine, one)
    np.testing.assert_array_equal(more, two)
    with pytest.raises(UnsupportedError, match="real and the imaginary parts"):
        nfuser.fuse(lambda x, i: np.multiply.at(x, i, 2))(mine, index)


IDS = RNG.integers(0, 7, 30)
ROWS = RNG.random((30, 3))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "i8"])
def test_segments_are_folded(dtype: str) -> None:
    rows = (ROWS * 100).astype(dtype)
    for name, fold, empty in (
        ("sum", np.sum, 0),
        ("max", np.max, -np.inf if dtype[0] == "f" else np.iinfo(dtype).min),
        ("min", np.min, np.inf if dtype[0] == "f" else np.iinfo(dtype).max),
        ("mean", np.mean, np.nan),
    ):
        verb = getattr(nfuser.nn, f"segment_{name}")
        inside = nfuser.fuse(lambda x, i, verb=verb: verb(x * 1, i, 8))(rows, IDS)
        wanted = [fold(rows[k == IDS], 0) for k in range(7)] + [np.full(3, empty)]
        np.testing.assert_allclose(inside, wanted, 1e-6)
        np.testing.assert_array_equal(verb(rows, IDS, 8), inside)
        assert inside.dtype == (
            np.float64 if name == "mean" and dtype[0] == "i" else dtype
        )


def test_ids_outside_raise() -> None:
    for ids in (IDS - 1, IDS + 1):
        with pytest.raises(ValueError, match="write ids from 0 to less than"):
            nfuser.nn.segment_sum(ROWS, ids, 7)
    with pytest.raises(DTypeError, match="expected integers"):
        nfuser.nn.segment_sum(ROWS, IDS * 1.0, 7)
    with pytest.raises(ShapeError, match="one segment id for each row"):
        nfuser.nn.segment_sum(ROWS, IDS[:5], 7)


def test_sums_of_segments_have_derivatives() -> None:
    def loss(x: Any, i: Any) -> Any:
        return np.sum(nfuser.nn.segment_sum(x, i, 7) ** 2)

    found = nfuser.grad(loss)(ROWS, IDS)
    sums = np.zeros((7, 3))
    np.add.at(sums, IDS, ROWS)
    np.testing.assert_allclose(found, 2 * sums[IDS])


def test_rows_of_an_array_in_another_order_go_to_others_of_it() -> None:
    def spread(a: Any) -> None:
        a[-np.arange(a.shape[0]) // 2] = a

    wanted = np.asfortranarray(RNG.random((5, 9, 4)))
    found = wanted.copy("K")
    spread(wanted)
    nfuser.fuse(spread)(found)
    np.testing.assert_array_equal(found, wanted)
