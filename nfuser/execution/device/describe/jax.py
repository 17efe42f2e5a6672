# SPDX-License-Identifier: Apache-2.0
"""JAX arrays on one device; its tracers and arrays over several devices are refused.

JAX computes asynchronously, on streams of its own. Reading an address is therefore
preceded by ``block_until_ready``: afterwards the data may be read from any stream.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nfuser.errors import ArgumentError, DeviceError
from nfuser.execution.device.describe.elements import element_type, finished
from nfuser.execution.device.describe.libraries import (
    CPU,
    Descriptor,
    Device,
    Library,
    c_strides,
)


def describe_jax(array: Any, what: str) -> Descriptor:
    """Return what a kernel needs to know about a JAX array, or refuse it by name."""
    if any(base.__name__ == "Tracer" for base in type(array).__mro__):
        message = (
            f"{what}: {type(array).__name__} is a tracer of JAX (jit, vmap, grad, "
            "...); apply the transform to a function that nfuser does not fuse"
        )
        raise ArgumentError(message)
    if array.is_deleted():
        message = f"{what}: the array was deleted or donated to another JAX computation"
        raise ArgumentError(message)
    device = _device(array, what)
    dtype = element_type(array.dtype, what)
    shape = tuple(array.shape)
    return finished(
        Library.JAX,
        device,
        dtype,
        (shape, _strides(array, shape, what)),
        jax_pointer(array),
        writable=False,
        what=what,
    )


def jax_pointer(array: Any) -> int:
    """Wait until a JAX array is computed and read its address.

    Memory on the CPU that JAX will adopt is a NumPy array so far.
    """
    if isinstance(array, np.ndarray):
        return array.ctypes.data
    return array.block_until_ready().unsafe_buffer_pointer()


def _device(array: Any, what: str) -> Device:
    devices = array.devices()
    if len(devices) != 1:
        message = f"{what}: the array is spread over {len(devices)} devices"
        raise DeviceError(message)
    (device,) = devices
    if device.platform == "cpu":
        return CPU
    if device.platform in ("gpu", "cuda"):
        return Device("cuda", device.local_hardware_id)
    message = f"{what}: device {device} is neither a CPU nor a CUDA device"
    raise DeviceError(message)


def _strides(array: Any, shape: tuple[int, ...], what: str) -> tuple[int, ...]:
    layout = array.format.layout
    if layout is None or 0 in shape:
        return c_strides(shape)
    if layout.tiling:
        message = f"{what}: the array has a tiled layout ({layout.tiling})"
        raise ArgumentError(message)
    order: tuple[int, ...] = tuple(layout.major_to_minor)
    ordered = c_strides(tuple(shape[axis] for axis in order))
    strides = dict(zip(order, ordered, strict=True))
    return tuple(strides[axis] for axis in range(len(shape)))
