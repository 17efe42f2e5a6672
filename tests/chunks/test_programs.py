# SPDX-License-Identifier: Apache-2.0
"""Random programs over random chunks, and what such programs have found."""

# Dask has no static types that a strict checker could use.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import nfuser
import nfuser.numpy as xp
from tests.chunks.programs import check_program
from tests.fuzz.chunks import random_chunks
from tests.fuzz.drive import Task, run_one

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("dask.array")
pytestmark = pytest.mark.filterwarnings("ignore:rechunk the argument first")


@pytest.mark.parametrize("seed", [*range(24), 9_740_061])
def test_random_programs_over_random_chunks_give_what_numpy_gives(seed: int) -> None:
    check_program(seed)


@pytest.mark.parametrize("shapes", [False, True])
def test_programs_of_all_operations_are_right_in_chunks(shapes: bool) -> None:
    task = Task(3, "chunks", 0, 10, shapes)
    reports = [run_one(task, index).report for index in range(task.stop)]
    assert [report for report in reports if report] == []


def test_random_chunks_fill_an_axis_and_some_are_empty_or_of_one_element() -> None:
    rng = np.random.default_rng(0)
    drawn = [random_chunks(rng, n) for n in (0, 1, 7, 50_000) for _ in range(50)]
    assert {sum(chunks) for chunks in drawn} == {0, 1, 7, 50_000}
    sizes = {n for chunks in drawn for n in chunks}
    assert {0, 1} < sizes
    assert max(map(len, drawn)) > 4


def in_chunks(function: Callable[..., Any], x: Any, chunks: Any) -> Any:
    fused = nfuser.fuse(function, rechunk="warn")
    return fused(import_module("dask.array").from_array(x, chunks=chunks)).compute()


NUMBERS = np.arange(40, dtype="f4").reshape(5, 8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(x.shape[1], x.shape[0]) * 2,
        lambda x: x[:0].reshape(2, 0, 3) + 1,
    ],
    ids=["mixed axes", "nothing"],
)
def test_moves_that_chunks_do_not_follow_are_as_numpy_does_them(
    function: Callable[..., Any],
) -> None:
    found = in_chunks(function, NUMBERS, ((2, 1, 2), (3, 5)))
    np.testing.assert_array_equal(found, function(NUMBERS))


def test_numbers_that_were_simplified_away_are_no_inputs() -> None:
    da: Any = import_module("dask.array")

    def rolled(x: Any, y: Any) -> Any:
        apart = y.reshape(y.shape[0], y.shape[1] // x.shape[1], -1)
        return np.roll(apart, 2, axis=2)

    x, y = NUMBERS[:2, :1], NUMBERS[:2, :2]
    found = nfuser.fuse(rolled)(da.from_array(x, 1), da.from_array(y, 1))
    np.testing.assert_array_equal(found, rolled(x, y))


def test_an_axis_may_be_cut_away_and_all_of_it_be_padding() -> None:
    found = in_chunks(lambda x: xp.pad(x, ((-8, 8), (0, 0))), NUMBERS, ((2, 3), 8))
    np.testing.assert_array_equal(found, np.zeros((5, 8), "f4"))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_products_of_halves_in_chunks_are_halves_rounded_once(dtype: Any) -> None:
    x = (np.random.default_rng(0).standard_normal((20, 14)) * 3).astype(dtype)
    found = in_chunks(lambda x: x @ x.T, x, ((13, 7), (14,)))
    assert found.dtype == dtype
    wide = x.astype("f4")
    np.testing.assert_array_equal(found, (wide @ wide.T).astype(dtype))


def test_what_is_asked_of_arrays_in_memory_says_so_of_dask_arrays() -> None:
    x = import_module("dask.array").ones((4, 4), chunks=2)
    fused = nfuser.fuse(lambda x: x + 1)
    with pytest.raises(nfuser.errors.UnsupportedError, match=r"f\.explain\(x\)"):
        fused.kernels(x)


def test_reshapes_that_need_all_of_an_array_are_refused_where_it_is_large() -> None:
    da: Any = import_module("dask.array")
    x = da.ones((700, 300), chunks=(10, 300))
    mixed = nfuser.fuse(lambda x: x.reshape(300, 700))
    with pytest.raises(nfuser.errors.ArgumentError, match="reshape reads all of axis"):
        mixed(x)
