# SPDX-License-Identifier: Apache-2.0
"""Loops over single elements are one kernel, which one thread runs."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser.execution.host.call.program import SlotPart
from tests.fuzz import element_programs

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(3)


def gauss_seidel(u: Any, f: Any, n: int, m: int) -> None:
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            near = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
            u[i, j] = 0.25 * (near - f[i, j])


def longest_common(a: Any, b: Any, table: Any) -> Any:
    n, m = len(a), len(b)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = max(table[i, j + 1], table[i + 1, j])
    return table[n, m]


def knapsack(weights: Any, values: Any, best: Any, n: int) -> None:
    for i in range(n):
        for room in range(best.shape[0] - 1, -1, -1):
            if weights[i] <= room:
                best[room] = max(best[room], best[room - weights[i]] + values[i])


def first_column(a: Any, b: Any, n: int, m: int) -> Any:
    total = a[0, 0]
    for i in range(1, n):
        for j in range(m):
            b[i, j] = b[i - 1, j] + a[i, j]
        a[i, 0] = b[i, -1] + a[i - 1, 0]
        total = total + a[i, 0]
    return total


def exchanged(x: Any, y: Any, n: int, m: int) -> None:
    for j in range(m):
        for i in range(1, n):
            before = x[i, j]
            x[i, j] = y[i - 1, j]
            y[i, 0] = before + y[i - 1, 0]


def from_the_end(a: Any, b: Any, n: int, m: int) -> None:
    for i in range(n):
        for j in range(m):
            a[i - 1, j - 1] = a[i, j] + b[i - 1, j]


CALLS: dict[Any, Callable[[], list[Any]]] = {
    gauss_seidel: lambda: [RNG.random((8, 9)), RNG.random((8, 9)), 8, 9],
    longest_common: lambda: [
        *(RNG.integers(0, 3, n) for n in (70, 67)),
        np.zeros((71, 68), int),
    ],
    knapsack: lambda: [RNG.integers(1, 9, 7), RNG.random(7), np.zeros(80), 7],
    first_column: lambda: [RNG.random((6, 70)), np.zeros((6, 70), order="F"), 6, 70],
    exchanged: lambda: [RNG.random((90, 5))[::2], RNG.random((45, 5)), 45, 5],
    from_the_end: lambda: [RNG.random((6, 70)).T, RNG.random((70, 6)), 70, 6],
}


@pytest.mark.parametrize("backend", ["cpu", "interpret"])
@pytest.mark.parametrize("function", CALLS)
def test_a_nest_of_loops_is_one_kernel_with_the_same_bits(
    function: Callable[..., Any], backend: str
) -> None:
    fused = nfuser.fuse(function, backend=backend)
    for _ in range(3):
        given = CALLS[function]()
        theirs, mine = ([np.array(x, copy=True) for x in given] for _ in range(2))
        theirs, mine = (
            [x if x.ndim else int(x) for x in arrays] for arrays in (theirs, mine)
        )
        assert fused(*mine) == function(*theirs)
        for found, wanted in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(found, wanted)
        schedules = [str(k.schedule) for k in fused.kernels(*mine)]
        assert schedules.count("serial()") == 1
        assert fused.cache_info().traces == 1


def test_the_kernel_becomes_machine_code_of_a_gpu() -> None:
    found = pytest.importorskip("nfuser.codegen.numba.compile_cuda")
    pytest.importorskip("numba.cuda.extending")
    for function, given in CALLS.items():
        for kernel in nfuser.fuse(function, backend="interpret").kernels(*given()):
            made = found.compile_cuda(kernel.source, kernel.name, kernel.signature)
            assert made.spills == 0


def test_places_that_are_not_there_raise_before_anything_runs() -> None:
    fused = nfuser.fuse(from_the_end)
    theirs, mine = (np.arange(20.0).reshape(4, 5) for _ in range(2))
    more = np.ones((4, 5))
    from_the_end(theirs, more, 4, 5)
    fused(mine, more, 4, 5)
    np.testing.assert_array_equal(mine, theirs)
    for extents in ((4, 6), (5, 5)):
        with pytest.raises(IndexError):
            fused(mine, more, *extents)
        np.testing.assert_array_equal(mine, theirs)


def test_a_table_of_known_size_is_filled_by_one_kernel() -> None:
    def counted(a: Any) -> Any:
        n, m = a.shape
        table = np.zeros((n + 1, m + 1))
        for i in range(n):
            for j in range(m):
                table[i + 1, j + 1] = table[i, j] + a[i, j]
        return table[n, m], table

    a, fused = RNG.random((70, 9)), nfuser.fuse(counted)
    for found, wanted in zip(fused(a), counted(a), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert "serial()" in [str(k.schedule) for k in fused.kernels(a)]


def test_an_array_of_its_own_is_changed_where_it_was_made() -> None:
    def table(a: Any, n: int, m: int) -> Any:
        made = a * 2
        for i in range(1, n):
            for j in range(1, m):
                made[i, j] = made[i - 1, j - 1] + a[i, j]
        return made + 1

    a = RNG.random((9, 80))
    fused = nfuser.fuse(table)
    np.testing.assert_array_equal(fused(a, 9, 80), table(a, 9, 80))
    plan = fused._plan_of((a, 9, 80), {})  # pyright: ignore[reportPrivateUsage]
    launch = next(x for x in plan.program.launches if "serial" in x.source.text)
    arrays = [x for x in launch.arguments if isinstance(x, SlotPart)]
    assert arrays[0].slot is arrays[-1].slot


def test_truth_values_are_written_one_by_one() -> None:
    def sieve(is_prime: Any, n: int) -> None:
        for i in range(2, n):
            for k in range(2, n):
                if is_prime[i]:
                    is_prime[k - 1] = is_prime[k - 1] & (k % i != 1)

    theirs, mine = np.ones(80, bool), np.ones(80, bool)
    sieve(theirs, 80)
    fused = nfuser.fuse(sieve)
    fused(mine, 80)
    np.testing.assert_array_equal(mine, theirs)
    assert "serial()" in [str(k.schedule) for k in fused.kernels(mine, 80)]


def test_what_was_read_before_a_write_stays_what_it_was() -> None:
    def shifted(x: Any, y: Any, n: int) -> None:
        for _ in range(n):
            for i in range(1, n):
                old = x[i]
                last = x[i - 1]
                x[i] = y[i]
                y[i] = old + last
                x[i - 1] = old

    theirs, mine = ((np.arange(70.0), np.arange(70.0) * 2) for _ in range(2))
    shifted(theirs[0], theirs[1], 70)
    nfuser.fuse(shifted)(mine[0], mine[1], 70)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("rows", [1, 2])
def test_the_number_of_a_turn_is_written_into_few_rows(rows: int) -> None:
    def counted(a: Any, b: Any, x: Any, n: int, m: int) -> Any:
        y = b * 2
        for _ in range(m):
            for i in range(n):
                if x[i] > y[i, 0]:
                    a[i, 0] = 2
                y[i, 0] = i
        return y

    b, x = np.arange(rows * 3).reshape(rows, 3) - 2, np.arange(rows)
    theirs, mine = b.copy(), b.copy()
    wanted = counted(theirs, b, x, rows, 4)
    np.testing.assert_array_equal(nfuser.fuse(counted)(mine, b, x, rows, 4), wanted)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.filterwarnings("ignore:.*compiled in:RuntimeWarning")  # of zeros
@pytest.mark.parametrize(("backend", "count"), [("cpu", 12), ("interpret", 4)])
def test_random_programs_give_what_numpy_gives(backend: str, count: int) -> None:
    seen = sum(
        (
            element_programs.compare(seed, backend, 2)
            for seed in range(300, 300 + count)
        ),
        element_programs.Counter(),
    )
    assert seen["serial"] >= count // 2
