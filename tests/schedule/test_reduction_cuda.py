# SPDX-License-Identifier: Apache-2.0
"""Which form rows take on a GPU, and that blocks which wait all run at once."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfuser.ir.scalar_walk import evaluate_all
from nfuser.lower.build import lower
from nfuser.schedule.scheduled import ReductionHeuristic
from tests.schedule.run_schedule import CUDA, Call

if TYPE_CHECKING:
    from collections.abc import Callable


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _channels(x: Any) -> Any:
    centred = x - x.mean(axis=(0, 2), keepdims=True)
    return centred / np.sqrt(x.var(axis=(0, 2), keepdims=True) + 1e-5)


def _columns(x: Any) -> Any:
    return x - x.mean(axis=0, keepdims=True)


def _chosen(
    function: Callable[..., Any], *shape: int
) -> tuple[Call, ReductionHeuristic]:
    call = Call(function, np.empty(shape, np.float32), computes=False)
    heuristic = call.heuristic()
    assert isinstance(heuristic, ReductionHeuristic)
    return call, heuristic


def _grid(call: Call, heuristic: ReductionHeuristic) -> tuple[int, int]:
    launch = lower(call.apply(heuristic)).launch
    numbers = {**call.facts.sizes, **heuristic.knobs}
    x, y = evaluate_all(launch.grid, numbers)
    return x, y


def test_a_row_that_a_block_keeps_has_no_other() -> None:
    _, heuristic = _chosen(_softmax, 16384, 4096)
    assert heuristic.is_persistent
    assert not heuristic.is_split


def test_a_row_that_no_block_keeps_is_shared() -> None:
    for function, shape in (
        (_softmax, (1024, 262144)),
        (_channels, (64, 256, 3136)),
        (_columns, (100_000, 256)),
    ):
        _, heuristic = _chosen(function, *shape)
        assert heuristic.is_shared, shape


def test_a_row_that_no_device_keeps_is_read_in_each_pass() -> None:
    _, heuristic = _chosen(_softmax, 2, 1 << 26)
    assert not heuristic.is_persistent
    assert not heuristic.is_split


@given(
    rows=st.integers(1, 5000),
    length=st.integers(2**14, 2**24),
    form=st.sampled_from(["rows", "channels", "columns"]),
)
def test_blocks_that_wait_for_each_other_all_run_at_once(
    rows: int, length: int, form: str
) -> None:
    rows = min(rows, 2**30 // length + 1)
    function, shape = {
        "rows": (_softmax, (rows, length)),
        "channels": (_channels, (4, rows, -(-length // 4))),
        "columns": (_columns, (length, rows)),
    }[form]
    call, heuristic = _chosen(function, *shape)
    if not heuristic.is_shared:
        return
    x, y = _grid(call, heuristic)
    assert x * y <= heuristic.blocks * CUDA.multiprocessors
    # Registers and threads of so many blocks fit a multiprocessor.
    assert heuristic.most_threads * heuristic.blocks <= 1024


@pytest.mark.parametrize(
    ("shape", "waves"), [((64, 256, 3136), 0.9), ((1, 1, 2**28), 0.9)]
)
def test_statistics_of_a_few_channels_fill_the_device(
    shape: tuple[int, ...], waves: float
) -> None:
    call, heuristic = _chosen(lambda x: x.sum(axis=(0, 2)), *shape)
    x, y = _grid(call, heuristic)
    resident = CUDA.multiprocessors * heuristic.blocks
    full = x * y / resident
    assert waves <= full <= 1 or full % 1 >= waves
