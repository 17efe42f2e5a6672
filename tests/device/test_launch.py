# SPDX-License-Identifier: Apache-2.0
"""Launching against a driver that reads what it is given and writes it down."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import Any

import pytest

from nfuser.errors import BackendError
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.launch import PackedLaunch
from nfuser.execution.device.cuda.launch_config import LaunchAttribute, LaunchConfig
from nfuser.execution.device.cuda.module import CudaFunction

KINDS = ("pointer", "i32", "f32", "i64", "f64", "bool", "u32", "i8")
VALUES = (0x7F00_0000_1000, -5, 1.5, -(1 << 40), 2.25, True, (1 << 32) - 1, -3)
CODES = "Qifqd?Ib"


class FakeDriver:
    """Reads a launch through the pointers of the C interface."""

    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.during: Any = None
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        self.cuLaunchKernelEx = prototype(self._launch)

    def cuGetErrorName(self, status: int, name: Any) -> None:  # noqa: N802
        label = {700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}.get(status, b"CUDA_ERROR_OTHER")
        name._obj.value = label

    def cuGetErrorString(self, status: int, text: Any) -> None:  # noqa: N802
        text._obj.value = b"what happened"

    def _launch(self, config: int, function: int, table: int, extra: int) -> int:
        if self.during is not None:
            during, self.during = self.during, None
            during()
        found = LaunchConfig.from_address(config)
        slots = (ctypes.c_void_p * len(CODES)).from_address(table)
        sizes = [struct.calcsize(code) for code in CODES]
        raw = [ctypes.string_at(slots[k], size) for k, size in enumerate(sizes)]
        attribute = None
        if found.attribute_count:
            attribute = LaunchAttribute.from_address(found.attributes)
        self.launches.append(
            {
                "grid": tuple(found.grid),
                "block": tuple(found.block),
                "shared": found.shared_bytes,
                "stream": found.stream,
                "function": function,
                "extra": extra,
                "values": tuple(
                    struct.unpack(f"<{code}", data)[0]
                    for code, data in zip(CODES, raw, strict=True)
                ),
                "attribute": attribute and (attribute.number, attribute.value[0]),
            }
        )
        return self.statuses.pop(0) if self.statuses else 0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    found = FakeDriver()
    monkeypatch.setattr(driver, "library", lambda: found)
    monkeypatch.setattr(CudaFunction, "static_shared_bytes", 0)
    return found


def packed(grid: tuple[int, int, int] = (7, 1, 1), **more: Any) -> PackedLaunch:
    function = CudaFunction(0x1234, "kernel", 0)
    return PackedLaunch(function, KINDS, grid, (128, 2, 1), **more)


def test_the_layout_is_the_drivers() -> None:
    # cuda.h: seven unsigned, padding, a stream, a pointer and a count; and a 4-byte
    # number padded to 8 before a union of 64 bytes.
    assert ctypes.sizeof(LaunchConfig) == 56
    assert (LaunchConfig.stream.offset, LaunchConfig.attributes.offset) == (32, 40)
    assert (ctypes.sizeof(LaunchAttribute), LaunchAttribute.value.offset) == (72, 8)


def test_every_kind_of_argument_arrives(fake: FakeDriver) -> None:
    packed(shared_bytes=1024)(0x55, *VALUES)
    assert fake.launches == [
        {
            "grid": (7, 1, 1),
            "block": (128, 2, 1),
            "shared": 1024,
            "stream": 0x55,
            "function": 0x1234,
            "extra": None,
            "values": VALUES,
            "attribute": None,
        }
    ]


def test_a_second_call_overwrites_the_first(fake: FakeDriver) -> None:
    launch = packed()
    launch(0, *VALUES)
    launch(3, 0x10, *VALUES[1:])
    assert [one["values"][0] for one in fake.launches] == [VALUES[0], 0x10]
    assert [one["stream"] for one in fake.launches] == [None, 3]


def test_a_cooperative_launch_says_so(fake: FakeDriver) -> None:
    packed(cooperative=True)(0, *VALUES)
    assert fake.launches[0]["attribute"] == (2, 1)


def test_a_grid_without_blocks_is_not_launched(fake: FakeDriver) -> None:
    packed(grid=(0, 1, 1))(0, *VALUES)
    assert not fake.launches


def test_a_call_during_a_call_has_storage_of_its_own(fake: FakeDriver) -> None:
    launch = packed()
    inner = (0x20, *VALUES[1:])

    def from_another_thread() -> None:
        thread = threading.Thread(target=launch, args=(9, *inner))
        thread.start()
        thread.join()

    fake.during = from_another_thread
    launch(1, *VALUES)
    assert [one["values"] for one in fake.launches] == [inner, VALUES]
    assert [one["stream"] for one in fake.launches] == [9, 1]


def test_a_thread_without_a_context_gets_one(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    monkeypatch.setattr(driver, "make_current", made.append)
    fake.statuses = [driver.INVALID_CONTEXT, 0]
    packed()(0, *VALUES)
    assert made == [0]
    assert len(fake.launches) == 2


def test_a_failure_names_the_kernel_and_the_remedy(fake: FakeDriver) -> None:
    fake.statuses = [700]
    with pytest.raises(BackendError, match=r"launching kernel\[.*restarted"):
        packed()(0, *VALUES)
    packed()(0, *VALUES)  # the storage was released


@pytest.mark.parametrize("value", [1 << 31, 1.5])
def test_a_number_that_does_not_fit_is_refused(fake: FakeDriver, value: float) -> None:
    launch = packed()
    with pytest.raises(struct.error):
        launch(0, 0x10, value, *VALUES[2:])
    launch(0, *VALUES)
    assert len(fake.launches) == 1


def test_too_much_shared_memory_is_refused_by_name(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = driver.DeviceProperties(
        "G", (9, 0), 1, 32, 1024, 2048, 32, 65536, 49152, 232448, 233472, 1 << 20
    )
    monkeypatch.setattr(driver, "attributes", lambda _index: properties)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with pytest.raises(BackendError, match="at most 232448"):
        packed(shared_bytes=300_000)
