# SPDX-License-Identifier: Apache-2.0
"""How many tasks calls take, and what serves those that come again."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.execution.chunks.tasks.block import Block

pytest.importorskip("dask.array")


def in_chunks(x: Any, *chunks: int) -> Any:
    return import_module("dask.array").from_array(x, chunks=chunks)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


def tasks_of(made: tuple[Any, ...]) -> dict[Any, Any]:
    """Return the tasks of a call, without those of its argument."""
    found = {k: t for array in made for k, t in dict(array.dask).items()}
    return {k: t for k, t in found.items() if not k[0].startswith("array-")}


def assert_gives(made: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    found = import_module("dask").compute(*made)
    for array, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(array, right, rtol=1e-12, atol=1e-12)


def test_what_is_made_of_folds_alone_is_run_by_the_last_task_of_their_tree() -> None:
    x = normal(4000, 30)
    fused = nfuser.fuse(lambda x: (x.mean(), x.var()))
    made = fused(in_chunks(x, 700, 30))
    assert len(tasks_of(made)) == 6 + 1 + 2  # chunks, the tree, a pick of each result
    assert_gives(made, (x.mean(), x.var()))
    assert "tail, 0 tasks" in str(fused.explain(in_chunks(x, 700, 30)))


@pytest.mark.parametrize("keepdims", [False, True])
def test_a_tail_runs_for_each_chunk_that_a_fold_leaves(keepdims: bool) -> None:
    def both(x: Any) -> Any:
        spread = np.sqrt(x.var(1, keepdims=keepdims)) + 1
        return spread, np.exp(x.mean(1, keepdims=keepdims))

    x = normal(60, 50, 7)
    made = nfuser.fuse(both)(in_chunks(x, 25, 20, 3))
    assert len(tasks_of(made)) == 27 + 9 + 18  # nine trees of two results
    assert_gives(made, both(x))


def test_a_tail_may_lie_otherwise_than_its_tree() -> None:
    x = normal(60, 50, 7)
    made = nfuser.fuse(lambda x: np.exp(x.mean(1)).T)(in_chunks(x, 25, 20, 3))
    assert len(tasks_of((made,))) == 27 + 9
    assert_gives((made,), (np.exp(x.mean(1)).T,))


def test_parts_that_others_read_too_are_combined_once() -> None:
    def several(x: Any) -> Any:
        return x.mean(0), x - x.mean(0), x.sum(0)

    x = normal(40, 6)
    made = nfuser.fuse(several)(in_chunks(x, 9, 6))
    combined = [t for t in tasks_of(made).values() if "Combine" in repr(type(t.func))]
    assert len(combined) == 1
    assert_gives(made, several(x))


def test_native_code_serves_chunks_of_a_form_met_twice() -> None:
    x = normal(400, 30)
    fused = nfuser.fuse(lambda x: np.sqrt(x * x + 1).sum())
    made = fused(in_chunks(x, 50, 30))
    run = [getattr(t, "func", None) for t in tasks_of((made,)).values()]
    (block,) = {f for f in run if isinstance(f, Block)}
    with config.override(num_threads=1):
        first = made.compute(scheduler="sync")
        calls = block.built.cache.cache_info().calls
        assert calls <= 3  # one more where memory lies otherwise
        assert made.compute(scheduler="sync") == first
        assert block.built.cache.cache_info().calls == calls
    for _ in range(4):  # with helpers, where there are any
        assert made.compute(scheduler="threads") == first
        assert made.compute(scheduler="sync") == first
    np.testing.assert_allclose(first, np.sqrt(x * x + 1).sum())


def test_native_code_reads_chunks_of_one_form_alone() -> None:
    rows = (20, 20, 20, 7, 20, 7, 7)
    x = normal(sum(rows), 5)
    fused = nfuser.fuse(lambda x, n: x * n + x[:, ::-1].sum(1, keepdims=True) / n)
    with config.override(num_threads=1):
        for n in (2, 3, 2, 2.5):
            made = fused(import_module("dask.array").from_array(x, chunks=(rows, 5)), n)
            found = made.compute(scheduler="sync")
            np.testing.assert_allclose(found, x * n + x.sum(1, keepdims=True) / n)


def optimized(*made: Any) -> dict[Any, Any]:
    """Return the tasks of results as Dask runs them."""
    arrays = import_module("dask").optimize(*made)
    return {k: t for array in arrays for k, t in dict(array.dask).items()}


def test_chunks_in_memory_are_part_of_the_task_that_reads_them() -> None:
    x = normal(40, 6)
    y = x[::-1].copy()
    made = nfuser.fuse(lambda x, y: x * 2 + y)(in_chunks(x, 7, 3), in_chunks(y, 7, 3))
    tasks = optimized(made)
    assert len(tasks) == made.npartitions
    assert all(isinstance(task.func, Block) for task in tasks.values())
    np.testing.assert_array_equal(made, x * 2 + y)
    np.testing.assert_array_equal(made[10:20], (x * 2 + y)[10:20])
    assert len(made[:7, :3].__dask_optimize__(made.dask, [(made.name, 0, 0)])) == 1


def test_chunks_that_tasks_have_all_of_an_axis_of_are_part_of_them() -> None:
    x = normal(40, 6, 5)
    made = nfuser.fuse(lambda x: x.transpose(2, 0, 1).sum(1))(in_chunks(x, 7, 3, 5))
    assert not any(name.startswith("array-") for name in made.dask.layers)
    np.testing.assert_allclose(made, x.transpose(2, 0, 1).sum(1), rtol=1e-12)


WEIGHT = np.linspace(0.5, 1.5, 6)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x - x.mean(0), id="two passes"),
        pytest.param(lambda x: (x * 2, np.roll(x, 3, 0)), id="a pass and a move"),
        pytest.param(lambda x: np.zeros(6) + x.sum(1)[:6] * WEIGHT, id="other chunks"),
    ],
)
def test_chunks_that_others_read_too_stay_apart(function: Any) -> None:
    x = normal(40, 6)
    made = nfuser.fuse(function)(in_chunks(x, 7, 6))
    several = made if isinstance(made, tuple) else (made,)
    layers = {name for array in several for name in array.dask.layers}
    assert any(name.startswith("array-") for name in layers)
    found = function(x)
    assert_gives(several, found if isinstance(found, tuple) else (found,))


def test_what_all_tasks_read_stays_apart() -> None:
    x = normal(40, 6)
    made = nfuser.fuse(lambda x: x * WEIGHT)(in_chunks(x, 7, 6))
    assert sum(name.startswith("array-") for name in made.dask.layers) == 1
    np.testing.assert_array_equal(made, x * WEIGHT)


@pytest.mark.parametrize(
    ("function", "beside"),
    [
        pytest.param(lambda x: x * 2 + 1, 0, id="points"),
        pytest.param(lambda x: x.T - x.mean(1), 0, id="rows, transposed"),
        pytest.param(lambda x: x.sum(0), 1, id="a fold and its tree"),
    ],
)
def test_what_makes_chunks_and_the_pass_over_them_are_one_task(
    function: Any, beside: int
) -> None:
    x = normal(42, 6)

    def rows(block_id: Any) -> Any:
        return x[block_id[0] * 7 :][:7]

    chunks, meta = ((7,) * 6, (6,)), np.empty((0, 0))
    read = import_module("dask.array").map_blocks(rows, chunks=chunks, meta=meta)
    made = nfuser.fuse(function)(read)
    assert len(optimized(made)) == 6 + beside
    np.testing.assert_allclose(made, function(x), rtol=1e-12, atol=1e-12)


def test_chunks_that_were_persisted_are_part_of_tasks() -> None:
    x = normal(40, 6)
    lazy = (in_chunks(x, 7, 6) + 1).persist()
    made = nfuser.fuse(lambda x: x * 2)(lazy)
    assert len(optimized(made)) == len(made.dask) == 6
    np.testing.assert_array_equal(made, (x + 1) * 2)
