# SPDX-License-Identifier: Apache-2.0
"""Loops that pass arrays on to each other run in one kernel of a CPU, row by row."""

# What a traced function is given has no static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import nfuser
from tests.fuzz import chain_programs, sweep_programs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def solved(a: Any, b: Any, c: Any, d: Any) -> Any:
    n = d.shape[1]
    cp, dp, x = np.empty_like(d), np.empty_like(d), np.empty_like(d)
    cp[:, 0] = c[:, 0] / b[:, 0]
    dp[:, 0] = d[:, 0] / b[:, 0]
    for k in range(1, n):
        m = b[:, k] - a[:, k] * cp[:, k - 1]
        cp[:, k] = c[:, k] / m
        dp[:, k] = (d[:, k] - a[:, k] * dp[:, k - 1]) / m
    x[:, n - 1] = dp[:, n - 1]
    for k in range(n - 2, -1, -1):
        x[:, k] = dp[:, k] - cp[:, k] * x[:, k + 1]
    return x


def solved_in_place(a: Any, b: Any, c: Any, d: Any) -> None:
    """Leave the result where the right side was, which the first loop reads."""
    n = d.shape[1]
    cp, dp = np.empty_like(d), np.empty_like(d)
    cp[:, 0] = c[:, 0] / b[:, 0]
    dp[:, 0] = d[:, 0] / b[:, 0]
    for k in range(1, n - 1):
        m = b[:, k] - a[:, k] * cp[:, k - 1]
        cp[:, k] = c[:, k] / m
        dp[:, k] = (d[:, k] - a[:, k] * dp[:, k - 1]) / m
    for k in range(n - 1, n):
        m = b[:, k] - a[:, k] * cp[:, k - 1]
        dp[:, k] = (d[:, k] - a[:, k] * dp[:, k - 1]) / m
    x = dp[:, n - 1]
    d[:, n - 1] = x * 2.0
    for k in range(n - 2, -1, -1):
        x = dp[:, k] - cp[:, k] * x
        d[:, k] = x * 2.0


def left_to_others(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return also an array between the loops."""
    n = d.shape[1]
    p, x = np.empty_like(d), np.empty_like(d)
    p[:, 0] = a[:, 0] + b[:, 0]
    for k in range(1, n):
        p[:, k] = c[:, k] * p[:, k - 1] + d[:, k]
    x[:, n - 1] = p[:, n - 1]
    for k in range(n - 2, -1, -1):
        x[:, k] = p[:, k] - x[:, k + 1]
    return x, p


def of_other_rows(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Read rows beside one's own of what the first loop left."""
    n = d.shape[1]
    p, x = np.empty_like(d), np.empty_like(d)
    p[:, 0] = a[:, 0] + b[:, 0]
    for k in range(1, n):
        p[:, k] = c[:, k] * p[:, k - 1] + d[:, k]
    x[:, n - 1] = p[::-1, n - 1]
    for k in range(n - 2, -1, -1):
        x[:, k] = p[::-1, k] - x[:, k + 1]
    return x


def begun_with_numbers(a: Any, b: Any, c: Any, d: Any) -> Any:
    """Leave some elements of the array between the loops as they were."""
    n = d.shape[1]
    p, x = np.full_like(d, 3.0), np.empty_like(d)
    for k in range(2, n):
        p[:, k] = c[:, k] * p[:, k - 1] + d[:, k] * a[:, k] + b[:, k]
    x[:, n - 1] = p[:, n - 1]
    for k in range(n - 2, -1, -1):
        x[:, k] = p[:, k] - x[:, k + 1]
    return x


def _given(*shape: int, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(sum(shape))
    return tuple((rng.random(shape) + k).astype(dtype) for k in (0, 3, 0, 0))


def _agree(function: Callable[..., Any], given: tuple[Any, ...], backend: Any) -> Any:
    """Return the kernels that leave the same bits as NumPy in all arrays."""
    fused = nfuser.fuse(function, backend=backend)
    mine, theirs = ([x.copy("K") for x in given] for _ in range(2))
    found, wanted = fused(*mine), function(*theirs)
    pairs = zip((*_listed(found), *mine), (*_listed(wanted), *theirs), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
    return fused.kernels(*mine)


def _listed(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else () if x is None else (x,)


@pytest.mark.parametrize("function", [solved, solved_in_place])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_solve_is_one_kernel_without_arrays_between_its_loops(
    function: Callable[..., Any], dtype: Any
) -> None:
    (kernel,) = _agree(function, _given(64, 70, dtype=dtype), None)
    assert kernel.schedule.startswith("chain(")
    stored = {x.split("(")[1].split(",")[0] for x in _stores(kernel.source)}
    arrays = {x for x in stored if x.startswith("T")}
    assert len(arrays) == 1, arrays


def _stores(source: str) -> list[str]:
    return [x.strip() for x in source.splitlines() if x.strip().startswith("store(")]


def test_what_is_overwritten_is_stored_by_the_name_by_which_it_is_read() -> None:
    (kernel,) = _agree(solved_in_place, _given(64, 70), None)
    (name,) = {
        x.split("(")[1].split(",")[0]
        for x in _stores(kernel.source)
        if x.startswith("store(T")
    }
    assert f"load({name}, " in kernel.source


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 2), (64, 3), (48, 70), (300, 20), (2, 257)])
def test_rows_lie_either_way(sizes: tuple[int, int], axis: int) -> None:
    given = _given(*sizes)
    if axis == 0:
        given = tuple(np.asfortranarray(x) for x in given)
    for function in (solved, solved_in_place):
        _ = _agree(function, given, None)


def test_gpus_run_each_loop_by_itself() -> None:
    kernels = _agree(solved, _given(8, 9), "interpret")
    assert [k.schedule.partition("(")[0] for k in kernels].count("sweep") == 2


@pytest.mark.parametrize(
    "function", [left_to_others, of_other_rows, begun_with_numbers]
)
def test_what_others_have_to_see_lies_in_memory(function: Callable[..., Any]) -> None:
    kernels = _agree(function, _given(64, 70), None)
    assert not any("chain" in k.schedule for k in kernels)


def test_long_columns_and_odd_rows_take_a_kernel_for_each_loop() -> None:
    fused = nfuser.fuse(solved)
    kinds: list[set[str]] = []
    for shape in ((4, 60_000), (65, 70), (64, 70)):
        given = _given(*shape)
        np.testing.assert_array_equal(fused(*given), solved(*given))
        kernels = fused.kernels(*given)
        kinds.append({k.schedule.partition("(")[0] for k in kernels})
    assert kinds == [{"sweep"}, {"sweep"}, {"chain"}]


def test_a_loop_around_chains_runs_them() -> None:
    def again(a: Any, b: Any, c: Any, d: Any, turns: int) -> None:
        n = d.shape[1]
        for _ in range(turns):
            p, x = np.empty_like(d), np.empty_like(d)
            p[:, 0] = a[:, 0] + b[:, 0]
            for k in range(1, n):
                p[:, k] = c[:, k] * p[:, k - 1] + d[:, k] * 0.5
            x[:, n - 1] = p[:, n - 1]
            for k in range(n - 2, -1, -1):
                x[:, k] = p[:, k] * 0.5 + x[:, k + 1] * 0.25
            d[:] = x

    def copied_first(a: Any, b: Any, c: Any, d: Any, turns: int) -> None:
        n = d.shape[1]
        for _ in range(turns):
            p = np.empty_like(d)
            p[:, 0] = a[:, 0] + b[:, 0]
            for k in range(1, n):
                p[:, k] = c[:, k] * p[:, k - 1] + d[:, k] * 0.5
            d[:, n - 1] = p[:, n - 1]
            for k in range(n - 2, -1, -1):
                d[:, k] = p[:, k] * 0.5 + d[:, k + 1] * 0.25

    functions: list[tuple[Any, bool]] = [(again, True), (copied_first, False)]
    for function, is_chain in functions:
        fused: Any = nfuser.fuse(function)
        mine, theirs = _given(64, 70), _given(64, 70)
        for turns in (1, 3):
            fused(*mine, turns)
            function(*theirs, turns)
            np.testing.assert_array_equal(mine[3], theirs[3])
        kernels = fused.kernels(*mine, 3)
        assert any("chain" in k.schedule for k in kernels) == is_chain


def test_explain_says_that_loops_share_a_kernel() -> None:
    told = str(nfuser.fuse(solved).explain(*_given(64, 70)))
    assert "in 1 kernel" in told
    assert "chain(lanes=4)" in told
    assert "assign" not in told.partition("cut:")[0]


@pytest.mark.parametrize(("backend", "first"), [(None, 3), ("interpret", 3)])
def test_random_chains(backend: str | None, first: int, tmp_path: Path) -> None:
    seen = sum(
        (
            sweep_programs.compare(seed, backend, tmp_path, 3, chain_programs.generate)
            for seed in range(first, first + 6)
        ),
        start=sweep_programs.Counter(),
    )
    assert not seen["refused"]
    assert (seen["chain"] > 0) == (backend is None)


def _begun_by_another(a: Any, b: Any, c: Any) -> Any:
    """Write first rows of what other kernels of the chain have read of arguments."""
    a, b, c = a[::-1], b[::-1], c[:]
    n = a.shape[0]
    p = np.empty_like(a)
    q = np.empty_like(a)
    r = np.empty_like(a)
    y = np.empty_like(a)
    p[0] = b[0] * 0.25
    q[0] = c[0] * 0.25
    r[0] = b[0]
    for k in range(1, n):
        p[k] = np.where(b[k] > 0, a[k] * 0.25 + q[k - 1] * a[k - 1] * 0.25, 1)
        q[k] = b[k] * 0.5 + q[k - 1]
        r[k] = a[k] + q[k - 1]
    r[n - 1] = p[n - 1] - b[n - 1]
    p[0] = r[-1]
    y[0] = q[0] * 0.5
    for k in range(1, n):
        y[k] = p[k] - q[k] - r[k] - y[k - 1] * 0.25 + a[k]
    q[0] = q[0] * 0.5
    for k in range(1, n):
        q[k] = p[k] + q[k] - r[k] - q[k - 1] * 0.25 - a[k]
    return y


def test_what_is_assigned_may_be_given_from_outside_of_a_piece() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-8, 8, 12).astype(np.float32) / 4 for _ in range(3)]
    found = nfuser.fuse(_begun_by_another, backend="cpu")(*arrays)
    np.testing.assert_allclose(found, _begun_by_another(*arrays), rtol=1e-5)
