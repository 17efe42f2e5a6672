# SPDX-License-Identifier: Apache-2.0
"""Loops whose turns read each other element by element are one kernel each."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from nfuser import lax
from tests.fuzz import sweep_programs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def advected(a: Any, c: Any, d: Any) -> None:
    for k in range(1, a.shape[2]):
        a[:, :, k] = c[:, :, k] * a[:, :, k - 1] + d[:, :, k]


def filtered(x: Any, alpha: float) -> Any:
    y = np.empty_like(x)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = alpha * x[i] + (1 - alpha) * y[i - 1]
    return y


def both_back(a: Any, b: Any) -> None:
    for k in range(a.shape[0] - 2, -1, -1):
        t = np.where(a[k + 1] > 0, a[k + 1], b[k])
        a[k] = a[k] * t
        b[k] = b[k] - a[k] * 0.5


def solved(a: Any, b: Any, c: Any, d: Any) -> Any:
    n = d.shape[0]
    cp, dp, x = np.zeros_like(d), np.zeros_like(d), np.zeros_like(d)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def parts(p: Any, u: Any) -> None:
    n = p.shape[1]
    for j in range(1, n - 1):
        p[1:-1, j] = u[j, 2:] / (p[1:-1, j - 1] + 3)
        p[1:-1, j] = p[1:-1, j] + u[j, :-2]


def round_the_end(a: Any) -> None:
    for k in range(a.shape[0]):
        a[k] = a[k - 1] * 0.5 + 1


def ahead(a: Any) -> None:
    for k in range(1, a.shape[0] - 1):
        a[k] = a[k - 1] * 0.5 + a[k] - a[k + 1] * 0.1
        a[k] = a[k] * 0.5 + a[k + 1]


def twice_back(a: Any) -> None:
    for k in range(2, a.shape[0]):
        a[k] = a[k - 1] * 0.5 + a[k - 2] * 0.25


def strided(a: Any) -> None:
    for k in range(3, a.shape[0] - 1, 3):
        a[k] = a[k - 3] * 0.5 + a[k]


def both_ways(d: Any, w: Any) -> None:
    for k in range(1, len(d)):
        d[k] -= w[k] * d[k - 1]
    for k in range(len(d) - 2, -1, -1):
        d[k] -= w[k] * d[k + 1]


def by_name(d: Any, w: Any) -> None:
    for k in range(1, d.shape[1]):
        row = d[:, k]
        row -= w[:, k] * d[:, k - 1]
        w[:, k] *= row


def escaped(c: Any, n: int) -> Any:
    z, count = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(n):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        count += inside
    return count, z


def scanned(x: Any, s: Any) -> Any:
    return lax.scan(lambda y, x: (0.5 * y + x, 0.25 * y + x), s, x)


def scanned_back(x: Any, s: Any) -> Any:
    return lax.scan(lambda y, x: (0.5 * y + x, 0.25 * y + x), s, x, reverse=True)


def swapped(a: Any, b: Any) -> Any:
    def step(i: Any, state: Any) -> Any:
        a, b, t = state
        return b, a * 0.5 + i, t + 0.5

    a, b, t = lax.fori_loop(0, 70, step, (a * 2, b, 0.0))
    return a + b * t


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape)


# Where turns read what they are about to overwrite, rows are copied to their place.
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (advected, (_random(4, 5, 70), _random(4, 5, 71), _random(4, 5, 72)), 0),
    (advected, tuple(_random(9, 3, 257).transpose(1, 2, 0) for _ in range(3)), 0),
    (both_back, (_random(80, 30) - 0.5, _random(81, 30)), 2),
    (parts, (_random(70, 70), _random(70, 70)), 0),
    (round_the_end, (_random(66, 3),), 0),
    (ahead, (_random(66, 300),), 1),
    (ahead, (_random(66),), 1),
    (twice_back, (_random(66, 17)[::-1],), 0),
    (strided, (_random(300, 7).astype(np.float32),), 1),
    (by_name, (_random(5, 70, 3), _random(5, 70, 3)), 2),
    (escaped, (_random(20, 30) * 4 - 2, 100), 0),
    (scanned, (_random(70, 30), _random(30)), 0),
    (scanned, (_random(70, 300, 3).transpose(0, 2, 1), _random(3, 300)), 0),
    (scanned_back, (_random(70, 30), _random(30)), 0),
    (swapped, (_random(20, 30), _random(20, 30)), 0),
]


def _run(function: Callable[..., Any], given: tuple[Any, ...]) -> list[Any]:
    own = [np.copy(x, "K") if isinstance(x, np.ndarray) else x for x in given]
    found = function(*own)
    listed = found if isinstance(found, tuple) else () if found is None else (found,)
    return [*listed, *own]


def _agree(function: Callable[..., Any], given: tuple[Any, ...], backend: Any) -> Any:
    fused = nfuser.fuse(function, backend=backend)
    wanted, found = _run(function, given), _run(fused, given)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(other, one)
    return fused


@pytest.mark.parametrize("backend", [None, "interpret"])
@pytest.mark.parametrize(("function", "given", "copies"), CASES)
def test_such_a_loop_is_one_kernel(
    function: Callable[..., Any],
    given: tuple[Any, ...],
    copies: int,
    backend: str | None,
) -> None:
    fused = _agree(function, given, backend)
    kernels = fused.kernels(*given)
    assert len(kernels) == 1 + copies
    assert "sweep(" in str(kernels[0].schedule)


@pytest.mark.parametrize("backend", [None, "interpret"])
@pytest.mark.parametrize("sizes", [(1, 1), (2, 1), (2, 3), (3, 16), (5, 257), (70, 5)])
def test_sizes_at_the_borders_of_tiles(
    sizes: tuple[int, int], backend: str | None
) -> None:
    a = tuple(_random(*sizes) + k for k in (0, 3, 0, 0))
    fused = _agree(solved, a, backend)
    assert sum("sweep(" in str(k.schedule) for k in fused.kernels(*a)) >= (
        2 if sizes[0] > 1 else 0
    )
    _agree(filtered, (_random(*sizes), 0.25), backend)


def test_there_is_one_trace_and_one_kernel_for_any_number_of_turns() -> None:
    fused = nfuser.fuse(escaped)
    x = _random(5, 5)
    for turns in (100, 10_000):
        _ = fused(x, turns)
    info = fused.cache_info()
    assert (info.traces, info.compiled + info.loaded + info.reused) == (1, 1)


@pytest.mark.parametrize("backend", [None, "interpret"])
def test_rows_that_are_updated_in_place_are_sweeps_of_one_trace(
    backend: str | None,
) -> None:
    fused = nfuser.fuse(both_ways, backend=backend)
    for rows in (5, 1, 70, 9):
        given = _random(rows, 30), _random(rows, 30)[::-1]
        wanted, found = _run(both_ways, given), _run(fused, given)
        np.testing.assert_array_equal(found, wanted)
    kernels = fused.kernels(*given)
    assert sum("sweep(" in str(k.schedule) for k in kernels) == 2
    assert fused.cache_info().traces == 2  # one row, and more


def test_a_loop_around_sweeps_launches_them() -> None:
    def relaxed(v: Any, p: Any, u: Any, steps: int) -> Any:
        n = u.shape[0]
        for _ in range(steps):
            p[1:-1, 0] = 0.0
            for j in range(1, n - 1):
                p[1:-1, j] = 0.5 / (p[1:-1, j - 1] + 2) + u[j, 2:]
            v[-1, 1:-1] = 1.0
            for j in range(n - 2, 0, -1):
                v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] * 0.125
            u[...] = u * 0.5 + v * 0.125
        return v

    x = _random(20, 20)
    fused = _agree(relaxed, (x, x * 2, x + 1, 70), None)
    names = [str(k.schedule) for k in fused.kernels(x, x * 2, x + 1, 70)]
    assert sum("sweep(" in name for name in names) == 2


def test_what_is_read_before_it_is_overwritten_is_what_it_was() -> None:
    def moved(a: Any) -> Any:
        y = a * 0.5
        for k in range(1, a.shape[0]):
            y[k] = a[k]
            a[k] = y[k - 1]
        return y

    _ = _agree(moved, (_random(90),), None)
    _ = _agree(moved, (_random(90, 70),), None)


def test_the_row_before_the_only_row_is_the_one_that_was_written() -> None:
    def wrapped(a: Any, c: Any) -> Any:
        y = np.zeros_like(a)
        for k in range(a.shape[0]):
            a[k] = c[k] - y[k]
            y[k] = c[k] * a[k - 1]
        return y

    for size in (1, 2, 70):
        _ = _agree(wrapped, (_random(size, 3), _random(size, 3)), None)


@pytest.mark.parametrize("backend", [None, "interpret"])
def test_what_is_no_sweep_is_right(backend: str | None) -> None:
    def beside(u: Any) -> None:
        for t in range(1, u.shape[0]):
            u[t, 1:-1] = u[t - 1, 2:] + u[t - 1, :-2]

    def behind(u: Any) -> None:  # the first turns read what later ones have not written
        for k in range(u.shape[0] - 1, -1, -1):
            u[k] = u[k - 1] * 0.5

    def crossed(u: Any) -> None:
        for k in range(u.shape[0]):
            u[k] = u[:, k] * 0.5

    def by_others(u: Any, v: Any) -> None:
        for k in range(u.shape[0]):
            u[k] = u[k] + v[(k * 3) % v.shape[0]]

    for function in (beside, behind, crossed):
        _ = _agree(function, (_random(8, 8),), backend)
    _ = _agree(by_others, (_random(8, 8), _random(5, 8)), backend)


def test_rows_that_a_library_reads_in_the_same_turn_are_this_turns() -> None:
    def looked_up(a: Any, b: Any) -> None:
        for k in range(1, a.shape[0]):
            b[k] = a[k - 1]
            a[k] = b[k]
            a[k] = a[k] + a[k - 2]

    def scanned(x: Any, m: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            y = row + c
            return m @ y, y

        return lax.scan(step, x[0] * 0, x)

    _ = _agree(looked_up, (_random(80, 3), _random(80, 3)), None)
    x, m = _random(70, 3), _random(3, 3) / 4
    fused = nfuser.fuse(scanned)
    for found, wanted in zip(fused(x, m), scanned(x, m), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_rows_that_are_written_over_are_read_elsewhere_first() -> None:
    def twice(y: Any, c: Any, m: int) -> None:
        for k in range(m):
            y[k] = 0.25
        for k in range(m):
            y[k] = c[k] + y[k - 1]

    for turns in (1, 3, 6):
        _ = _agree(twice, (_random(6, 3), _random(6, 3), turns), None)


@pytest.mark.parametrize("whole", [False, True])
def test_a_row_that_is_not_there_is_refused_whatever_the_extents(whole: bool) -> None:
    def marked(a: Any, b: Any, t: float) -> Any:
        for i in range(70):
            if whole:
                a += 0.5
            b[i] = b[i - 1] * 0.5
            a[i % 2] = i * t
        return b

    fused = nfuser.fuse(marked)
    for rows in (4, 1, 0):
        given = np.zeros((rows, 3), np.float32), _random(70, 3), -0.25
        if rows > 1:
            _ = _agree(marked, given, None)
            continue
        for function in (marked, fused):
            with pytest.raises(IndexError):
                _ = function(*given)


def test_what_a_sweep_leaves_is_stored_where_it_is_assigned() -> None:
    def substituted(a: Any, c: Any, d: Any) -> None:
        n = a.shape[-1]
        x = d[..., n - 1]
        a[..., n - 1] = 2.0 * (x - c[..., n - 1])
        for k in range(n - 2, -1, -1):
            x = d[..., k] - c[..., k] * x
            a[..., k] = 2.0 * (x - c[..., k])

    given = tuple(_random(8, 9, 70) + k for k in range(3))
    kernels = _agree(substituted, given, None).kernels(*given)
    assert len(kernels) == 2  # the last row is assigned before
    assert "sweep(" in str(kernels[-1].schedule)


def test_columns_that_lie_apart_go_together_while_memory_keeps_up() -> None:
    def filtered_rows(x: Any) -> Any:
        y = np.empty_like(x)
        y[:, 0] = x[:, 0]
        for j in range(1, x.shape[1]):
            y[:, j] = 0.25 * x[:, j] + 0.75 * y[:, j - 1]
        return y

    for rows, lanes in ((64, 4), (66, 2), (65, 1)):
        given = (_random(rows, 70),)
        kernels = _agree(filtered_rows, given, None).kernels(*given)
        assert f"sweep(lanes={lanes})" in str(kernels[-1].schedule)


def test_what_is_stored_before_the_turns_takes_no_place_of_memory_in_them() -> None:
    def solved(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        y, z = np.empty_like(a), np.empty_like(a)
        y[:, 0] = a[:, 0] * b[:, 0] + c[:, 0]
        z[:, 0] = d[:, 0] * e[:, 0] + f[:, 0]
        for j in range(1, a.shape[1]):
            y[:, j] = (a[:, j] + b[:, j] * y[:, j - 1]) * c[:, j]
            z[:, j] = (d[:, j] + e[:, j] * z[:, j - 1]) * f[:, j] + y[:, j]
        return y, z

    for rows, lanes in ((66, 2), (65, 1)):  # six arrays to read, two to write
        given = tuple(_random(rows, 70) for _ in range(6))
        kernels = _agree(solved, given, None).kernels(*given)
        sweep = next(k for k in kernels if "sweep" in str(k.schedule))
        assert f"sweep(lanes={lanes})" in str(sweep.schedule)


def test_numbers_that_a_loop_carries_are_one_kernel() -> None:
    def newton(x: Any, n: int) -> Any:
        for i in range(n):
            x = (x + 2 / x) / 2 + i * 0
        return x

    fused = nfuser.fuse(newton)
    assert fused(3.0, 70) == newton(3.0, 70)
    assert len(fused.kernels(3.0, 70)) == 1


def test_explain_says_that_a_loop_is_inside_a_kernel() -> None:
    text = str(nfuser.fuse(advected).explain(*CASES[0][1]))
    assert "sweep" in text


@pytest.mark.parametrize(("backend", "first"), [(None, 1044), ("interpret", 1044)])
def test_random_recurrences(backend: str | None, first: int, tmp_path: Path) -> None:
    count = 4
    seen = sum(
        (
            sweep_programs.compare(seed, backend, tmp_path)
            for seed in range(first, first + count)
        ),
        start=sweep_programs.Counter(),
    )
    assert seen["sweep"] > 0
