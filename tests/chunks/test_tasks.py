# SPDX-License-Identifier: Apache-2.0
"""How many tasks calls take, and what serves those that come again."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nfuser
import nfuser.config as config
from nfuser.chunks.block import Block

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
