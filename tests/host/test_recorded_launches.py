# SPDX-License-Identifier: Apache-2.0
"""Programs launched from Python and from native code while their stream records."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.compiler.lower.kernel.kernel_ir import Buffer
from nfuser.execution.device.cuda import driver, ordering
from nfuser.execution.device.cuda.module import CudaFunction
from nfuser.execution.device.cuda.ordering import by_data
from nfuser.execution.device.describe.libraries import Device, Library
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.library import library
from nfuser.execution.device.native.shared import is_as_expected, shared
from nfuser.execution.host.call.evaluate import Evaluator
from nfuser.execution.host.call.native.program_words import NativeProgram
from nfuser.execution.host.call.program import (
    CallProgram,
    Clear,
    LaunchKernel,
    Slot,
    SlotPart,
)
from tests.device.recording import FIRST, RecordingDriver

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.codegen.printers.source import Source

CUDA = Device("cuda")


def perform_in_python(program: CallProgram, arrays: dict[Slot, Any]) -> None:
    """Run ``program`` as calls do that native code does not serve."""
    evaluator = Evaluator(program, Library.NUMPY, CUDA, "cuda")
    given = {slot: (array, array.ctypes.data) for slot, array in arrays.items()}
    evaluator(given, {}, {})


def perform_natively(program: CallProgram, arrays: dict[Slot, Any]) -> None:
    """Run ``program`` as native code does, once it has read the arguments."""
    found = shared()
    assert found is not None
    positions = {slot: k for k, slot in enumerate(arrays)}
    made = NativeProgram(program, Library.NUMPY, CUDA, positions, {}, len(arrays))
    header = np.zeros(at.RECORD_BYTES // 8, np.int64)
    body = np.array(made.words, np.int64)
    header[at.R_TOTAL // 8] = len(arrays)
    header[at.R_BODY // 8] = body.ctypes.data
    frame = found.read(list(arrays.values()))
    types = [ctypes.c_int64] * 3
    run = ctypes.PYFUNCTYPE(ctypes.c_int64, *types)(library().address("perform"))
    assert run(header.ctypes.data, frame.ctypes.data, 0)


WAYS: dict[str, Callable[[CallProgram, dict[Slot, Any]], None]] = {
    "Python": perform_in_python,
    "native": perform_natively,
}


@pytest.fixture(params=WAYS)
def perform(request: pytest.FixtureRequest) -> Any:
    if request.param == "native" and not is_as_expected():
        pytest.skip("no native calls here")
    return WAYS[request.param]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> RecordingDriver:
    found = RecordingDriver()
    monkeypatch.setattr(driver, "library", lambda: found)
    monkeypatch.setattr(driver, "device_count", lambda: 1)
    monkeypatch.setattr(ordering, "LANES", 100)
    monkeypatch.setattr(CudaFunction, "static_shared_bytes", 0)
    return found


def slot(name: str, *shape: int, strides: tuple[int, ...] = ()) -> Slot:
    return Slot(name, shape, strides or (1,), DType.F32)


def launch(
    reads: list[SlotPart], writes: list[SlotPart], *, role: str = "out", **more: Any
) -> LaunchKernel:
    """Launch a kernel; memory that is written has this role."""
    roles = ["in"] * len(reads) + [role] * len(writes)
    buffers = tuple(Buffer(DType.F32, None, name) for name in roles)
    source = SimpleNamespace(
        form=SimpleNamespace(buffers=buffers),
        kinds=("pointer",) * len(buffers),
        entry="kernel",
    )
    function = CudaFunction(0x1234, "kernel", 0)
    return LaunchKernel(
        cast("Source", source),
        function,
        (5, 3),
        (32, 2),
        (*reads, *writes),
        0,
        **more,
    )


def test_kernels_of_a_program_wait_for_what_they_read(
    fake: RecordingDriver, perform: Any
) -> None:
    x, y, a, b, c = (slot(name, 4) for name in "xyabc")
    body = (
        launch([SlotPart(x)], [SlotPart(a)]),
        launch([SlotPart(y)], [SlotPart(b)]),
        launch([SlotPart(a), SlotPart(b)], [SlotPart(c)]),
    )
    arrays = {s: np.zeros(4, np.float32) for s in (x, y, a, b, c)}
    with by_data(0):
        perform(CallProgram((x, y), (a, b, c), body), arrays)
    assert fake.order() == [set(), set(), {0, 1}]


@pytest.mark.parametrize("role", ["tickets", "boxes", "partials"])
def test_scratch_memory_that_is_used_again_keeps_its_order(
    fake: RecordingDriver, perform: Any, role: str
) -> None:
    x, y, tickets, a, b = (slot(name, 4) for name in "xytab")
    body = (
        Clear(tickets),
        launch([SlotPart(x)], [SlotPart(tickets), SlotPart(a)], role=role),
        Clear(tickets),
        launch([SlotPart(y)], [SlotPart(tickets), SlotPart(b)], role=role),
        launch([SlotPart(y)], [SlotPart(y)], role=role),
    )
    arrays = {s: np.zeros(4, np.float32) for s in (x, y, tickets, a, b)}
    with by_data(0):
        perform(CallProgram((x, y), (a, b), body), arrays)
    assert fake.order() == [set(), {0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}]


def test_views_of_one_array(fake: RecordingDriver, perform: Any) -> None:
    whole = np.zeros(16, np.float32)
    views = {
        slot("low", 4): whole[:4],
        slot("back", 4, strides=(-1,)): whole[11:7:-1],
        slot("odd", 3, strides=(4,)): whole[5::4],
        slot("high", 4): whole[12:],
    }
    low, back, odd, high = views
    body = (
        launch([], [SlotPart(low)]),
        launch([], [SlotPart(back)]),
        launch([], [SlotPart(high)]),
        launch([SlotPart(odd)], []),  # elements 5, 9 and 13
    )
    with by_data(0):
        perform(CallProgram((), tuple(views), body), views)
    assert fake.order() == [set(), set(), set(), {1, 2}]


def test_the_imaginary_part_lies_behind_the_real_one(
    fake: RecordingDriver, perform: Any
) -> None:
    z = Slot("z", (2,), (1,), DType.C64)
    x = slot("x", 4)
    body = (
        launch([], [SlotPart(z), SlotPart(z, 4)]),
        launch([SlotPart(x)], []),
        launch([SlotPart(z, 4)], [SlotPart(x)]),
    )
    both = np.zeros(8, np.float32)
    arrays = {z: both[:4].view(np.complex64), x: both[4:]}
    with by_data(0):
        perform(CallProgram((z, x), (), body), arrays)
    assert fake.order() == [set(), set(), {0, 1}]


def test_nothing_is_ordered_where_nothing_records(
    fake: RecordingDriver, perform: Any
) -> None:
    x, a, b = (slot(name, 4) for name in "xab")
    body = (launch([SlotPart(x)], [SlotPart(a)]), launch([SlotPart(x)], [SlotPart(b)]))
    arrays = {s: np.zeros(4, np.float32) for s in (x, a, b)}
    with by_data(1):  # on another stream
        perform(CallProgram((x,), (a, b), body), arrays)
    assert fake.order() == [set(), {0}]


@pytest.mark.parametrize("together", [False, True])
def test_sizes_and_parameters_of_a_launch(
    fake: RecordingDriver, perform: Any, together: bool
) -> None:
    x, a = slot("x", 4), slot("a", 4)
    arrays = {s: np.zeros(4, np.float32) for s in (x, a)}
    made = launch(
        [SlotPart(x, 8)], [SlotPart(a)], is_cooperative=together, shared_bytes=4096
    )
    body = (Clear(a), made)
    perform(CallProgram((x,), (a,), body), arrays)
    cleared, launched = fake.launches.values()
    assert cleared == {
        "name": "memset",
        "address": arrays[a].ctypes.data,
        "byte": 0,
        "size": 16,
    }
    assert launched == {
        "name": 0x1234,
        "sizes": (5, 3, 1, 32, 2, 1, 4096),
        "together": together,
        "first": arrays[x].ctypes.data + 8,
    }
    assert fake.behind[FIRST + 8] == (FIRST,)
