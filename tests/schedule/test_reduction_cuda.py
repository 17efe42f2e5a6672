# SPDX-License-Identifier: Apache-2.0
"""Which form rows take on a GPU, and that blocks which wait all run at once."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nfuser
from nfuser.compiler.ir.scalars.scalar_walk import evaluate_all
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.heuristics.cuda import CudaReduction
from nfuser.execution.host.call.evaluate import REPORTS
from tests.schedule.run_schedule import CUDA, Call
from tests.smaller_gpu import use_smaller_gpu

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


def _chosen(function: Callable[..., Any], *shape: int) -> tuple[Call, CudaReduction]:
    call = Call(function, np.empty(shape, np.float32), computes=False)
    heuristic = call.heuristic()
    assert isinstance(heuristic, CudaReduction)
    return call, heuristic


def _grid(call: Call, heuristic: CudaReduction) -> tuple[int, int]:
    launch = lower(call.apply(heuristic)).launch
    numbers = {**call.facts.sizes, **heuristic.knobs}
    x, y = evaluate_all(launch.grid, numbers)
    return x, y


def test_a_row_that_a_block_keeps_has_no_other() -> None:
    _, heuristic = _chosen(_softmax, 16384, 4096)
    assert heuristic.is_persistent
    assert not heuristic.is_split


HALF_ROW = (8192, 32768)


def _chosen_for_halves(function: Callable[..., Any], *shape: int) -> Any:
    x = np.empty(shape, ml_dtypes.bfloat16)
    return Call(function, x, computes=False).heuristic()


def test_long_rows_of_halves_stay_as_they_are_stored() -> None:
    heuristic = _chosen_for_halves(_softmax, *HALF_ROW)
    assert heuristic.as_stored
    assert heuristic.blocks > 1  # one computes while another reads
    row = 2 * heuristic.steps * heuristic.most_threads * heuristic.width
    assert row * heuristic.blocks < CUDA.shared_bytes
    for function, shape in (
        (_softmax, (16384, 4096)),  # in registers
        (lambda x: _softmax(np.tan(np.sin(np.tan(x)))), HALF_ROW),  # dear
        (lambda x: x.max(axis=1), HALF_ROW),  # read once
    ):
        assert not _chosen_for_halves(function, *shape).as_stored, shape
    assert not _chosen(_softmax, 8192, 32768)[1].as_stored  # a block's alone
    assert _chosen_for_halves(_softmax, 8192, 32769).as_stored  # but for its ends


@pytest.mark.parametrize(
    ("length", "most"), [(2048, 256), (8192, 256), (12288, 512), (16384, 512)]
)
def test_the_compiler_is_told_of_no_more_threads_than_rows_of_a_kind_have(
    length: int, most: int
) -> None:
    heuristic = _chosen_for_halves(_softmax, 8192, length)
    assert heuristic.geometry.fold <= heuristic.threads == most


def test_two_rows_that_would_fill_a_multiprocessor_lie_side_by_side() -> None:
    def back(y: Any, t: Any) -> Any:
        return y * (t - (y * t).sum(axis=-1, keepdims=True))

    def chosen(function: Callable[..., Any], length: int) -> Any:
        x = np.empty((8192, length), ml_dtypes.bfloat16)
        return Call(function, x, x, computes=False).heuristic()

    stored = chosen(back, 16384)
    assert stored.as_stored
    assert (stored.most_threads, stored.blocks) == (1024, 2)  # all there may be
    halves = np.empty((8192, 12288), ml_dtypes.bfloat16)
    arrays = halves, np.empty((8192, 1), np.float32), halves
    exact = Call(lambda x, s, t: back(x / s, t), *arrays, computes=False).heuristic()
    assert (exact.most_threads, exact.blocks) == (512, 3)  # quotients take registers
    assert chosen(back, 4096).geometry.fold == 128  # leaves room for others


def _scaled(x: Any, weight: Any) -> Any:
    """Return rows over their root mean squares, times weights of each element."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True)) * weight


def test_rows_of_f32_that_two_blocks_can_keep_take_the_steps_they_need() -> None:
    x = np.empty((512, 25088), np.float32)
    for heuristic in (
        _chosen(_softmax, *x.shape)[1],
        # What only the last pass reads is not kept.
        Call(_scaled, x, x, computes=False).heuristic(),
    ):
        assert isinstance(heuristic, CudaReduction)
        assert heuristic.as_stored
        assert heuristic.blocks == 2
        elements = heuristic.most_threads * heuristic.width
        assert heuristic.steps == -(-25088 // elements)  # 16 would leave no room
    _, shorter = _chosen(_softmax, 512, 12000)
    assert (shorter.as_stored, shorter.steps) == (True, 4)  # one kernel for many


@pytest.mark.parametrize(
    ("length", "dtype", "error"),
    [
        (32768, ml_dtypes.bfloat16, 2**-8),
        (24584, ml_dtypes.bfloat16, 2**-8),
        (25088, np.float32, 1e-6),
        (12004, np.float32, 1e-6),
    ],
)
def test_rows_kept_as_stored_are_read_once(
    length: int, dtype: type[Any], error: float
) -> None:
    x = np.random.default_rng(0).standard_normal((3, length)).astype(dtype)
    fused = nfuser.fuse(_softmax, backend="interpret")
    wanted = _softmax(x.astype(np.float64))
    np.testing.assert_allclose(fused(x).astype(np.float64), wanted, rtol=error)
    access = REPORTS[-1].accesses
    assert access["T0"].elements_read == x.size
    (kernel,) = fused.kernels(x)
    assert "as stored" in kernel.schedule


def _moments(x: Any) -> Any:
    return x.mean(axis=1), x.var(axis=1)


def test_rows_that_larger_blocks_fill_the_device_with_are_not_split() -> None:
    for rows, threads in ((256, 512), (128, 1024)):
        call, heuristic = _chosen(_moments, rows, 200704)
        assert (heuristic.is_split, heuristic.most_threads) == (False, threads)
        assert _grid(call, heuristic) == (rows, 1)
    for rows in (64, 300):  # these would leave multiprocessors idle
        assert _chosen(_moments, rows, 200704)[1].is_split


def _rms_norm(x: Any, weight: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * weight


def _rms_norm_backward(gradient: Any, x: Any, weight: Any) -> Any:
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    weighted = gradient * weight
    projection = (weighted * x).mean(axis=-1, keepdims=True)
    return scale * weighted - x * scale * scale * scale * projection


@pytest.mark.parametrize("length", [8, 264, 4096, 4104])
def test_packets_of_a_kept_row_are_loaded_without_a_condition(length: int) -> None:
    random = np.random.default_rng(0)
    gradient, x = random.standard_normal((2, 3, length)).astype(ml_dtypes.bfloat16)
    weight = random.standard_normal(length).astype(ml_dtypes.bfloat16)
    fused = nfuser.fuse(_rms_norm_backward, backend="interpret")
    wanted = _rms_norm_backward(*(a.astype(np.float64) for a in (gradient, x, weight)))
    found = fused(gradient, x, weight).astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=0.02, atol=0.02)
    access = REPORTS[-1].accesses["T0"]
    assert access.distinct_elements_read == x.size
    assert access.elements_read == x.size or length != 4096
    (kernel,) = fused.kernels(gradient, x, weight)
    loads = re.findall("^( *)load_packet_8_bf16\\(", kernel.source, re.MULTILINE)
    assert set(loads) == {8 * " "}  # in the loop over steps, and no deeper
    # Both sums of a row are known after one barrier.
    assert kernel.source.count("syncthreads") == 1


def test_what_rows_share_is_loaded_while_their_threads_meet() -> None:
    def is_loaded_first(dtype: Any, rows: int, length: int) -> bool:
        x, weight = np.empty((rows, length), dtype), np.empty(length, dtype)
        (kernel,) = nfuser.fuse(_rms_norm, backend="interpret").kernels(x, weight)
        load = re.search(r"load_packet_\w+\(\w+, \S+( \* \d)?, T1, ", kernel.source)
        meeting = re.search(r"= shuffle_xor\(", kernel.source)
        assert load is not None
        assert meeting is not None
        return load.start() < meeting.start()

    assert is_loaded_first(ml_dtypes.bfloat16, 16384, 4096)
    # It would take registers that the row itself needs.
    assert not is_loaded_first(np.float32, 1024, 16384)


@pytest.mark.parametrize("length", [5120, 9216])
def test_any_number_of_whole_warps_folds_a_row(length: int) -> None:
    _, heuristic = _chosen(_softmax, 16384, length)
    packets = length // heuristic.width
    assert heuristic.geometry.fold * heuristic.steps == packets  # none is idle
    assert heuristic.geometry.fold <= heuristic.most_threads
    x = np.random.default_rng(0).standard_normal((2, length), np.float32)
    call = Call(_softmax, x)
    call.check(call.apply(call.heuristic()))


def test_threads_of_a_short_row_read_a_line_side_by_side() -> None:
    for length, threads in ((64, 4), (32, 4), (8, 1)):
        assert _chosen_for_halves(_softmax, 1 << 16, length).geometry.fold == threads


def test_rows_of_narrow_elements_have_fewer_threads() -> None:
    def threads(dtype: Any) -> int:
        call = Call(
            lambda a, b: a - b * (a * b).sum(axis=1, keepdims=True),
            *(np.empty((16384, 4096), dtype) for _ in range(2)),
            computes=False,
        )
        heuristic = call.heuristic()
        assert isinstance(heuristic, CudaReduction)
        return heuristic.geometry.fold

    assert threads(ml_dtypes.bfloat16) < threads(np.float32)


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e6])
def test_moments_of_one_pass_bear_an_offset(offset: float) -> None:
    x = np.random.default_rng(0).standard_normal((8, 3, 4096), np.float32)
    x += np.float32(offset)
    x[0, 1, 0] += 100  # a first element that is like no other
    fused = nfuser.fuse(
        lambda x: (x.mean(axis=(0, 2)), x.var(axis=(0, 2))), backend="interpret"
    )
    wide = x.astype(np.float64)
    for found, wanted in zip(
        fused(x), (wide.mean(axis=(0, 2)), wide.var(axis=(0, 2))), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=0)
    (kernel,) = fused.kernels(x)
    assert "looped" in kernel.schedule


def test_a_row_that_no_block_keeps_is_shared() -> None:
    for function, shape in (
        (_softmax, (1024, 262144)),
        (_channels, (64, 256, 3136)),
        (_columns, (100_000, 256)),
    ):
        _, heuristic = _chosen(function, *shape)
        assert heuristic.is_shared, shape


def test_what_is_computed_once_a_row_does_not_shorten_a_block_s_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_smaller_gpu(monkeypatch, most_cluster=1)

    def normalised(x: Any, weight: Any) -> Any:
        return _channels(x) * weight[:, None]

    arrays = (np.empty((64, 256, 3136), np.float32), np.empty(256, np.float32))
    heuristic = Call(normalised, *arrays, computes=False).heuristic()
    assert isinstance(heuristic, CudaReduction)
    groups = CUDA.multiprocessors // heuristic.geometry.splits
    assert groups * heuristic.geometry.splits == CUDA.multiprocessors  # none is idle
    assert groups * heuristic.geometry.rounds < 1.05 * 256


def test_a_row_that_no_device_keeps_is_read_in_each_pass() -> None:
    _, heuristic = _chosen(_softmax, 2, 1 << 26)
    assert not heuristic.is_persistent
    assert heuristic.phases


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


def test_the_lanes_of_columns_are_joined_by_a_thread_each() -> None:
    """Each value in shared memory is read once, and once more as a sum."""
    fused = nfuser.fuse(lambda x: x.sum(axis=0), backend="interpret")
    (kernel,) = fused.kernels(np.ones((3000, 4096), ml_dtypes.bfloat16))
    lanes = re.findall(r"if int32\(ty \+ \w+ \* fold\) < (\d):", kernel.source)
    assert set(lanes) == {"8"}  # of this kernel, and of what its last block joins
    assert kernel.source.count("cuda.syncthreads()") >= 2


def test_sums_of_columns_leave_registers_to_threads_and_to_loads() -> None:
    def one(x: Any) -> Any:
        return x.sum(axis=0, dtype=np.float32)

    def two(x: Any) -> Any:
        y = x.astype(np.float32)
        return y.sum(axis=0), (y * y).sum(axis=0)

    def way_back(x: Any, g: Any) -> Any:
        y = g.astype(np.float32)
        first, second = y.sum(axis=0), (x * y).sum(axis=0)
        return y - first - x * second

    x, g = (np.empty((16384, 4096), ml_dtypes.bfloat16) for _ in range(2))
    calls = [(one, (x,)), (two, (x,)), (way_back, (x, g))]
    forms: list[tuple[int, int, int, bool]] = []
    for function, arrays in calls:
        found = Call(function, *arrays, computes=False).heuristic()
        assert isinstance(found, CudaReduction)
        resident = found.blocks * found.threads
        forms.append((found.width, found.flight, resident, found.phases))
    assert forms == [(8, 2, 1024, False), (4, 4, 1024, False), (4, 4, 512, True)]


def test_a_thread_has_more_loads_under_way_where_columns_go_one_by_one() -> None:
    flights: list[tuple[int, int]] = []
    for columns in 16384, 16385:
        x = np.empty((16384, columns), np.float32)
        found = Call(lambda x: x.sum(axis=0), x, computes=False).heuristic()
        assert isinstance(found, CudaReduction)
        flights.append((found.width, found.flight))
    assert flights == [(4, 4), (1, 16)]


@pytest.mark.parametrize(
    ("rows", "columns", "beside"),
    [(16384, 16385, 128), (262144, 257, 32), (16384, 16384, 32)],
)
def test_blocks_of_single_columns_share_few_lines(
    rows: int, columns: int, beside: int
) -> None:
    _, heuristic = _chosen(lambda x: x.sum(axis=0), rows, columns)
    assert heuristic.geometry.keep == beside


def test_sums_of_many_single_columns_are_right() -> None:
    x = np.random.default_rng(0).standard_normal((37, 2049)).astype(np.float32)
    found = nfuser.fuse(lambda x: x.sum(axis=0), backend="interpret")(x)
    np.testing.assert_allclose(found, x.sum(axis=0, dtype=np.float64), atol=1e-5)
