# SPDX-License-Identifier: Apache-2.0
"""Arrays of CuPy and of Numba: always on a CUDA device, strides in bytes."""

from __future__ import annotations

from typing import Any

from nfuser.errors import ArgumentError
from nfuser.execution.device.describe.elements import (
    element_strides,
    element_type,
    finished,
)
from nfuser.execution.device.describe.libraries import Descriptor, Device, Library


def describe_cupy(array: Any, what: str) -> Descriptor:
    """Return what a kernel needs to know about a CuPy array, or refuse it by name."""
    if type(array).__mro__[0].__module__.partition(".")[0] != "cupy":
        _refuse_subclass(array, "cupy.ndarray", what)
    place = Device("cuda", array.data.device_id)
    return _described(array, Library.CUPY, place, array.data.ptr, what)


def describe_numba(array: Any, what: str) -> Descriptor:
    """Return what a kernel needs to know about a device array, or refuse it by name."""
    place = Device("cuda", numba_device(array))
    return _described(array, Library.NUMBA, place, numba_pointer(array), what)


def _described(
    array: Any, library: Library, device: Device, pointer: int, what: str
) -> Descriptor:
    dtype, shape = element_type(array.dtype, what), tuple(array.shape)
    strides = element_strides(shape, array.strides, dtype.itemsize, what)
    layout = shape, strides
    return finished(library, device, dtype, layout, pointer, writable=True, what=what)


def numba_pointer(array: Any) -> int:
    """Read the address of a Numba device array; an empty one has no memory."""
    return int(array.device_ctypes_pointer.value or 0)


def numba_device(array: Any) -> int:
    """Return the index of a Numba array's device; an empty one may say nothing."""
    memory = array.gpu_data
    return 0 if memory is None else memory.context.device.id


def _refuse_subclass(array: Any, base: str, what: str) -> None:
    name = f"{type(array).__module__}.{type(array).__qualname__}"
    message = (
        f"{what}: nfuser does not take {name}, a subclass of {base}, since it may give "
        "operators another meaning"
    )
    raise ArgumentError(message)
