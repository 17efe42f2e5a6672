# SPDX-License-Identifier: Apache-2.0
"""Loops over rows, pairs and computed bounds, and tables at traced places."""

# Programs are given, and give, what has no static type.
# pyright: basic

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(4)


def paired(x, y):
    s = 0.0
    for p, q in zip(x, y, strict=True):
        s = s * 0.5 + p * q
    return s


def shorter(x, y):
    s = 0.0
    for k, (p, q) in enumerate(zip(x, y), start=2):  # noqa: B905
        s = s * 0.5 + k * p * q
    return s


def rows_written(x):
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        row *= 2
        out[i] = row.sum()
        x[0, 0] += 1
    return out


def between(x, low, high):
    s, k = x[0] * 0, -1
    for k in range(low[0], high[0], 2):
        if x[k] > 0.9:
            break
        s = s + x[k]
    else:
        s = s + 100
    for j in range(high[0], low[0], -3):
        s = s + j * x[j]
    return s, k


def of_table(x, n):
    table = np.array([3, 1, 2])
    y = table[x]
    table[0] = 7
    for _ in range(n):
        y = y + table[y % 3]
    return y, table[x]


def numbered(i, n):
    label = np.arange(n)
    np.minimum.at(label, i, label[i[::-1]])
    return label


def named(x, n):
    own, y = x * 1.0, x * 2
    for i in range(n):
        own[i % 3] += 1
        y = own
    return y


def bounds(*numbers: int) -> tuple[Any, ...]:
    return RNG.random(30), *(np.array([n]) for n in numbers)


CALLS: tuple[tuple[Any, tuple[Any, ...]], ...] = (
    *((paired, (RNG.random(n), RNG.random(n))) for n in (0, 3, 70)),
    *((shorter, (RNG.random(n), RNG.random(66))) for n in (0, 3, 70)),
    (rows_written, (RNG.random((3, 2)),)),
    *((between, bounds(*n)) for n in ((0, 10), (3, 4), (5, 5), (7, 2), (1, 29))),
    *((of_table, (RNG.integers(0, 3, 5), n)) for n in (3, 80)),
    *((named, (RNG.random(5), n)) for n in (0, 1, 3, 80)),
    (numbered, (RNG.integers(0, 6, 9), 6)),
)
FUSED = {f: nfuser.fuse(f) for f, _ in CALLS}


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # NumPy's tables
@pytest.mark.parametrize(("function", "given"), CALLS)
def test_as_numpy(function: Any, given: tuple[Any, ...]) -> None:
    ours, theirs = copy.deepcopy(given), copy.deepcopy(given)
    wanted, found = function(*theirs), FUSED[function](*ours)
    for one, other in zip((*theirs, wanted), (*ours, found), strict=True):
        pairs = (
            zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        )
        for x, y in pairs:
            np.testing.assert_allclose(y, x, rtol=1e-12)


def paired_and_written(x, y, z):
    for k, (p, q, r) in enumerate(zip(x, y, z, strict=True)):
        z[k] = p + q + r


def test_strict_pairs_of_unequal_lengths_raise_as_python_does() -> None:
    fused = nfuser.fuse(paired_and_written)
    for lengths in (
        (70, 70, 71),
        (70, 71, 71),
        (71, 70, 71),
        (400, 400, 390),
        (0, 4, 4),
        (70, 0, 70),
    ):
        given = [np.arange(float(n)) for n in lengths]
        ours = copy.deepcopy(given)
        with pytest.raises(ValueError, match="zip") as wanted:
            paired_and_written(*given)
        with pytest.raises(ValueError, match="zip") as found:
            fused(*ours)
        assert str(found.value).splitlines()[0] == str(wanted.value)
        np.testing.assert_array_equal(ours[2], given[2])


def paired_until(x, y):
    s = 0.0
    for k, (p, q) in enumerate(zip(x, y, strict=True)):
        s = s + p * q
        if k == 3:
            break
    return s


def test_a_turn_may_end_a_loop_before_lengths_that_differ_show() -> None:
    fused = nfuser.fuse(paired_until)
    with pytest.raises(TraceError, match="compare the lengths before the loop"):
        fused(np.arange(400.0), np.arange(390.0))
    x = np.arange(400.0)
    assert fused(x, x) == paired_until(x, x)


def test_one_trace_is_for_all_lengths() -> None:
    fused = nfuser.fuse(shorter)
    for n in (70, 80, 90):
        fused(np.ones(n), np.ones(n))
    assert fused.cache_info().traces == 1


def in_pairs(x, y):
    s = a = b = 0.0
    for a, b in zip(x, y):  # noqa: B905
        s = s * 0.5 + a * b
    return s, a, b


def of_neighbours(x, y):
    s = 0.0
    for a, b in zip(x[1:], x):  # noqa: B905
        s = s * 0.5 + a - b
    return s + y[0]


def in_order(x, y):
    s = x[0] * 0
    for row in x:
        s = s * 0.5 + row
    for i, row in enumerate(x):
        s = s * 0.5 + row * i - y[i]
    return s


def backwards(x, y):
    s = 0.0
    for a in reversed(x):
        s = s * 0.5 + a
    for i, (a, b) in enumerate(zip(reversed(x), y[::-1])):  # noqa: B905
        s = s * 0.5 + a * b - i
        if s > 1e9:
            break
    return s


@pytest.mark.parametrize("function", [in_pairs, of_neighbours, in_order, backwards])
def test_a_first_call_may_have_any_number_of_rows(function: Any) -> None:
    fused = nfuser.fuse(function)
    for n in (301, 900, 500):
        x, y = RNG.random(n), RNG.random(n + 1)
        np.testing.assert_allclose(fused(x, y), function(x, y), rtol=1e-12)
    assert fused.cache_info().traces == 1


def test_long_rows_that_are_not_there_are_refused_as_numpy_does() -> None:
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 400"):
        nfuser.fuse(in_order)(np.ones(500), np.ones(400))


def test_pairs_of_other_lengths_are_refused_as_python_does() -> None:
    with pytest.raises(ValueError, match="argument 2 is longer than argument 1"):
        nfuser.fuse(paired)(np.ones(3), np.ones(4))


def test_choices_of_choices_are_traced_in_time() -> None:
    def best(x, moves):
        least = x
        for k in range(9):
            found = x + moves[k]
            if found.sum() < least.sum():
                least = found
        return least

    x, moves = RNG.random(3), RNG.random((9, 3)) - 0.5
    np.testing.assert_allclose(nfuser.fuse(best)(x, moves), best(x, moves))


def test_a_slice_up_to_a_computed_number_says_what_to_write() -> None:
    with pytest.raises(nfuser.NfuserError, match="sizes of a fused function do not"):
        nfuser.fuse(lambda x, n: x[: n[0]] * 2)(np.ones(3), np.array([2]))


def counted(n, step):
    turns, total = 0, 0
    if step == 7:
        for i in range(n[0], n[1], 7):
            turns += 1
            total += i % 5
    else:
        for i in range(n[0], n[1], -11):
            turns += 1
            total += i % 5
    return turns, total


@pytest.mark.parametrize("step", [7, -11])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8"])
def test_counters_of_computed_ranges_do_not_wrap(dtype: str, step: int) -> None:
    info = np.iinfo(dtype)
    fused = nfuser.fuse(counted)
    for near in (range(3), range(20, 23)):
        for far in (5, 70):
            ends = [info.max - near[0], info.max - near[-1] - far]
            low = [info.min + near[0], info.min + near[-1] + far]
            for first, last in (ends, ends[::-1], low, low[::-1]):
                n = np.array([first, last]).astype(dtype)
                assert fused(n, step) == counted([first, last], step)


def test_unsigned_bounds_of_64_bits_are_refused() -> None:
    with pytest.raises(nfuser.NfuserError, match="compute the number outside"):
        nfuser.fuse(counted)(np.array([1, 2], np.uint64), 7)


def test_computed_ranges_backwards_are_refused_by_name() -> None:
    def backwards(n):
        total = 0
        for i in reversed(range(n[0])):
            total = total * 2 + i
        return total

    with pytest.raises(nfuser.NfuserError, match="compute the number outside"):
        nfuser.fuse(backwards)(np.array([3]))


def best_row(x):
    best = x[0]
    for row in x:
        if row[0] > best[0]:
            best = row
    best += 100
    return best


def either_of_two(x):
    one, two = np.zeros(3), np.ones(3)
    which = one if x[0] > 0 else two
    which[0] = 5
    return one, two


@pytest.mark.parametrize("function", [best_row, either_of_two])
def test_writes_into_one_that_a_choice_took_are_refused(function: Any) -> None:
    x = np.ones((3, 3)) if function is best_row else np.ones(3)
    with pytest.raises(nfuser.NfuserError, match=r"assign to x\.copy\(\)"):
        nfuser.fuse(function)(x)
    np.testing.assert_array_equal(x, 1)


def size_at_a_place(x, n):
    w = np.zeros(3)
    w[n[0]] = x.shape[0]
    return w


def sizes_in_turns(x, n):
    for i in range(n[0]):
        x[i] = len(x)
    return x


@pytest.mark.parametrize("function", [size_at_a_place, sizes_in_turns])
def test_sizes_are_stored_at_traced_places(function: Any) -> None:
    fused = nfuser.fuse(function)
    for length in (4, 5):
        wanted = function(np.ones(length), np.array([2]))
        np.testing.assert_array_equal(fused(np.ones(length), np.array([2])), wanted)


def parts_of_rows(x: Any, n: int) -> None:
    for k in range(n):
        row = x[k] * 2
        row[1:] = row[1:] + x[k, 1:]
        x[k] = row


def updates_of_rows(x: Any, n: int) -> None:
    for k in range(n):
        x[k][::2] += n
        last = x[n - 1 - k]
        last[last > 3] *= 0.5
        last += x[k]
        np.add(x[k], 0.5, out=x[k])


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", [parts_of_rows, updates_of_rows])
def test_parts_of_rows_go_where_the_turn_counts(
    function: Callable[[Any, int], None], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for n in (3, 70):
        ours, theirs = (np.arange(3.0 * n).reshape(n, 3) for _ in range(2))
        fused(ours, n)
        function(theirs, n)
        np.testing.assert_array_equal(ours, theirs)
    assert fused.cache_info().traces == 1
