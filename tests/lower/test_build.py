# SPDX-License-Identifier: Apache-2.0
"""Kernels from schedules: what is loaded, kept, folded and stored, and by whom."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from nfuser.codegen.printers.cuda import print_cuda
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.lower.kernel.kernel_ir import (
    Barrier,
    CopyPacket,
    For,
    Kernel,
    Load,
    LoadPacket,
    Post,
    Receive,
    Shuffle,
    Store,
    StorePacket,
    TakePacket,
    TakeTicket,
)
from nfuser.compiler.lower.kernel.kernel_ir import Call as Apply
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.heuristics.cuda import Geometry
from tests.schedule.run_schedule import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

X = np.linspace(-1, 1, 480, dtype=np.float32).reshape(12, 40)
LONG = np.ones((3, 8192), np.float32)


def _softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _centred(x: Any) -> Any:
    return x - x.mean(axis=-1, keepdims=True)


_SHARED = {"steps": 2, "known": Geometry(fold=32, keep=1, splits=0, rounds=0)}


def _columns(x: Any, b: Any) -> Any:
    return np.maximum.accumulate(x + b, 0)


def _lowered(function: Callable[..., Any], *arrays: Any, **changes: Any) -> Kernel:
    call = Call(function, *arrays)
    return lower(call.apply(replace(call.heuristic(), **changes)))


def _statements(body: Any) -> Iterator[Any]:
    """Yield every statement and value of ``body``."""
    stack: list[Any] = list(body)
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(item)
        elif is_dataclass(item) and type(item).__module__ == Store.__module__:
            yield item
            stack.extend(getattr(item, f.name) for f in fields(item))


def _count(kernel: Kernel, *kinds: type) -> int:
    return sum(isinstance(x, kinds) for x in _statements(kernel.body))


def _code(kernel: Kernel) -> str:
    return print_cuda(kernel).code


SOURCES: dict[str, Callable[[], Kernel]] = {
    "stretched_sum": lambda: _lowered(lambda x, b: x * b + 1, X, X[0]),
    "softmax": lambda: _lowered(_softmax, X),
    "sum_over_blocks": lambda: _lowered(
        lambda x: x.sum(1), X, known=Geometry(0, 0, splits=2), steps=0
    ),
    "rows_over_blocks": lambda: _lowered(_centred, X, **_SHARED),
    "running_sums": lambda: _lowered(lambda x: np.exp(x).cumsum(1) * x, LONG),
    "running_columns": lambda: _lowered(_columns, X, X[0]),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_of(name: str, golden: Callable[[str], None]) -> None:
    golden(_code(SOURCES[name]()))


def test_equal_schedules_print_equal_sources() -> None:
    for make in SOURCES.values():
        assert _code(make()) == _code(make())


def test_a_row_that_fits_is_read_once() -> None:
    kernel = _lowered(_softmax, X)
    assert _count(kernel, LoadPacket) == 1
    assert _count(kernel, StorePacket) == 1
    assert _count(kernel, Load, Store) == 0
    exps = [x for x in _statements(kernel.body) if isinstance(x, Apply)]
    assert [x.op for x in exps].count("exp") == 1


def test_a_row_that_does_not_is_read_once_a_pass() -> None:
    kernel = _lowered(_softmax, X, steps=0)
    assert _count(kernel, LoadPacket) == 2  # the largest and the sum are of one pass


def test_rows_within_a_warp_need_no_barrier() -> None:
    kernel = _lowered(_softmax, X, known=Geometry(16, 8, 1))
    assert _count(kernel, Barrier) == 0
    assert _count(kernel, Shuffle) > 0


def test_rows_over_several_warps_meet_at_barriers() -> None:
    kernel = _lowered(lambda x: x.sum(1), LONG, known=Geometry(256, 1, 1), steps=0)
    assert kernel.launch.threads >= 256
    assert _count(kernel, Barrier) > 0
    assert kernel.scratch == ()


def test_rows_over_several_blocks_take_tickets() -> None:
    kernel = SOURCES["sum_over_blocks"]()
    assert _count(kernel, TakeTicket) == 1
    assert [s.buffer.role for s in kernel.scratch] == ["partials", "tickets"]
    assert kernel.launch.grid[1] is not kernel.launch.grid[0]


def test_a_row_that_blocks_share_is_read_once_and_kept() -> None:
    kernel = _lowered(_softmax, X, **_SHARED)
    assert kernel.launch.is_cooperative
    assert _count(kernel, LoadPacket) == 0
    assert _count(kernel, CopyPacket) == 2  # of the first row, and of the next
    assert _count(kernel, TakePacket) == 1
    assert _count(kernel, StorePacket) == 1
    assert _count(kernel, TakeTicket) == 0
    assert kernel.launch.shared_bytes == 2 * kernel.launch.threads * 16  # 2 steps
    assert _count(kernel, Post) == _count(kernel, Receive) == 2
    assert [s.buffer.role for s in kernel.scratch] == ["boxes"]  # one memset


def test_a_block_that_takes_one_row_copies_none_ahead() -> None:
    kernel = _lowered(_softmax, X, **{**_SHARED, "known": Geometry(32, 1, splits=0)})
    assert _count(kernel, LoadPacket) == 1
    assert _count(kernel, CopyPacket) == 0
    assert kernel.launch.shared_bytes == 0


def test_blocks_are_launched_together_only_where_they_wait() -> None:
    assert not SOURCES["softmax"]().launch.is_cooperative
    assert not SOURCES["sum_over_blocks"]().launch.is_cooperative


def test_rows_scanned_by_a_warp_need_no_barrier() -> None:
    kernel = _lowered(lambda x: np.cumsum(x, 1), X, fold=32, keep=4, items=1)
    assert _count(kernel, Shuffle) == 5
    assert not _count(kernel, Barrier)


def test_a_step_along_scanned_rows_has_one_barrier_for_each_scan() -> None:
    once = _lowered(lambda x, y: np.cumsum(x, 1) * y, LONG, LONG, fold=256)
    assert _count(once, Barrier) == 1
    assert _count(once, LoadPacket) == 2  # y is read with x, and kept
    twice = _lowered(lambda x: np.cumsum(np.cumsum(x, 1) - x, 1), LONG, fold=256)
    assert _count(twice, Barrier) == 2
    assert _count(twice, LoadPacket) == 1


def test_the_grid_covers_every_element() -> None:
    call = Call(lambda x: x + 1, X)
    kernel = lower(call.apply(call.heuristic()))
    grid = evaluate_all(kernel.launch.grid, call.facts.sizes)
    width = call.heuristic().width
    threads = kernel.launch.threads
    assert grid[0] * grid[1] * threads * width >= X.size
    assert (grid[0] - 1) * grid[1] * threads * width < X.size


def test_every_statement_writes_to_an_output_or_to_scratch() -> None:
    for make in SOURCES.values():
        kernel = make()
        written = [
            x.buffer
            for x in _statements(kernel.body)
            if isinstance(x, Store | StorePacket)
        ]
        assert written
        assert {b.role for b in written} <= {"out", "partials"}
        assert all(b in kernel.buffers for b in written)


def test_a_loop_runs_under_an_index_of_its_own() -> None:
    kernel = _lowered(_softmax, X, steps=0)
    loops = [x.index for x in _statements(kernel.body) if isinstance(x, For)]
    bound = {index for index, _ in kernel.bound}
    assert loops
    assert not bound & set(loops)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("exp", "exp_kernel"),
        ("<lambda>", "lambda_kernel"),
        ("while", "while_kernel"),
        ("größe", "gr__e_kernel"),
        ("1st", "fusion_kernel"),
        ("_", "fusion_kernel"),
    ],
)
def test_a_kernel_has_a_name_that_python_takes(name: str, entry: str) -> None:
    call = Call(lambda x: x + 1, X)
    scheduled = call.apply(call.heuristic())
    named = Fusion(name, scheduled.fusion.exprs, scheduled.fusion.outputs)
    kernel = lower(replace(scheduled, fusion=named))
    assert kernel.name == entry
    assert entry.isidentifier()
