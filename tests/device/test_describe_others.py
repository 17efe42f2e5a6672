# SPDX-License-Identifier: Apache-2.0
"""CuPy and Numba arrays without a GPU: stand-ins with the attributes they promise."""

from __future__ import annotations

import ctypes
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nfuser.compiler.dtypes import DType
from nfuser.errors import ArgumentError
from nfuser.execution.device.allocate import allocator
from nfuser.execution.device.cuda.streams import current_stream
from nfuser.execution.device.describe.descriptor import (
    Device,
    Library,
    describe,
    is_array,
    key_reader,
    pointer_reader,
)
from nfuser.execution.device.describe.libraries import module


def stand_in(module_name: str, name: str, base: Any = object) -> Any:
    return type(name, (base,), {"__module__": module_name})()


def cupy_array(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: str = "f4"
) -> Any:
    array = stand_in("cupy", "ndarray")
    array.shape, array.strides, array.dtype = shape, strides, np.dtype(dtype)
    array.data = SimpleNamespace(ptr=0x7000, device_id=1)
    return array


def numba_array(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    array = stand_in("numba.cuda.cudadrv.devicearray", "DeviceNDArray")
    array.shape, array.strides, array.dtype = shape, strides, np.dtype("f8")
    array.device_ctypes_pointer = ctypes.c_void_p(0 if 0 in shape else 0x9000)
    context = SimpleNamespace(device=SimpleNamespace(id=2))
    array.gpu_data = SimpleNamespace(context=context)
    return array


def test_a_cupy_array() -> None:
    array = cupy_array((2, 3), (4, 8))
    found = describe(array, "x")
    assert (found.library, found.device) == (Library.CUPY, Device("cuda", 1))
    assert (found.strides, found.pointer, found.dtype) == ((1, 2), 0x7000, DType.F32)
    assert pointer_reader(Library.CUPY)(array) == 0x7000
    assert key_reader(Library.CUPY)(array) != key_reader(Library.CUPY)(
        cupy_array((2, 3), (12, 4))
    )


def test_a_subclass_of_a_cupy_array_is_refused() -> None:
    base: Any = stand_in("cupy", "ndarray").__class__
    array = stand_in("user", "Mine", base)
    assert is_array(array)
    with pytest.raises(ArgumentError, match=r"user\.Mine"):
        describe(array, "x")


def test_a_numba_array() -> None:
    array = numba_array((2, 3), (24, 8))
    found = describe(array, "x")
    assert (found.library, found.device) == (Library.NUMBA, Device("cuda", 2))
    assert (found.strides, found.pointer) == ((3, 1), 0x9000)


def test_an_empty_numba_array_has_no_memory() -> None:
    array = numba_array((0,), (8,))
    assert describe(array, "x").pointer == 0
    array.gpu_data = None
    assert describe(array, "x").device == Device("cuda", 0)
    assert key_reader(Library.NUMBA)(array) == (np.dtype("f8"), (0,), (8,), 0)


def test_allocation_asks_for_a_library_that_is_there() -> None:
    assert "cupy" not in sys.modules
    with pytest.raises(ArgumentError, match="import cupy"):
        module(Library.CUPY)


def test_cupy_allocates_on_its_device_and_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[object] = []

    class OnDevice:
        def __init__(self, index: int) -> None:
            self.index = index

        def __enter__(self) -> None:
            log.append(("enter", self.index))

        def __exit__(self, *_: object) -> None:
            log.append("exit")

    def stream(index: int) -> Any:
        return SimpleNamespace(ptr=100 + index)

    cupy = ModuleType("cupy")
    runtime = SimpleNamespace(getDevice=lambda: 0)
    cuda = SimpleNamespace(runtime=runtime, Device=OnDevice, get_current_stream=stream)
    monkeypatch.setattr(cupy, "cuda", cuda, raising=False)
    monkeypatch.setattr(cupy, "empty", np.empty, raising=False)
    monkeypatch.setitem(sys.modules, "cupy", cupy)

    here = allocator(Library.CUPY, Device("cuda", 0), (2, 3), (1, 2), DType.F32)()
    assert here.strides == (4, 8)
    assert not log
    allocator(Library.CUPY, Device("cuda", 1), (2, 3), (3, 1), DType.F32)()
    assert log == [("enter", 1), "exit"]
    assert current_stream(Library.CUPY, Device("cuda", 1)) == 101
