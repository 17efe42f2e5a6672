# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver through ctypes: devices, contexts, modules.

Nothing here needs a CUDA Python package, and nothing happens before the first call.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import value
from nfuser.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIBRARY = "libcuda.so.1"
_WARM_UP = "call the function once before the capture"
_ADVICE = {
    "CUDA_ERROR_OUT_OF_MEMORY": "free device memory, or make the arrays smaller",
    "CUDA_ERROR_NO_DEVICE": "check nvidia-smi and CUDA_VISIBLE_DEVICES",
    "CUDA_ERROR_NOT_INITIALIZED": "after os.fork() CUDA cannot be used; use spawn",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "install matching driver packages, or reboot",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "the kernel was compiled for another GPU",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "update the NVIDIA driver",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "an earlier kernel read or wrote out of bounds; "
    "the process has to be restarted",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": _WARM_UP,
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": _WARM_UP,
}
_PROPERTY_NUMBERS = {  # CUdevice_attribute
    "multiprocessors": 16,
    "warp": 10,
    "threads_per_block": 1,
    "threads_per_multiprocessor": 39,
    "blocks_per_multiprocessor": 106,
    "registers": 82,
    "shared_per_block": 8,
    "shared_per_block_optin": 97,
    "shared_per_multiprocessor": 81,
    "l2_bytes": 38,
}
_MAJOR, _MINOR = 75, 76
_POINTER_DEVICE = 9
_CAPTURES, _REPLACE = 1, 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE, ..._SET_..._DEPENDENCIES
INVALID_CONTEXT = 201
INVALID_HANDLE = 400  # a kernel of another context than the current one


@value
class DeviceProperties:
    """What schedulers and the compiler ask of a CUDA device."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    warp: int
    threads_per_block: int
    threads_per_multiprocessor: int
    blocks_per_multiprocessor: int
    registers: int
    shared_per_block: int
    shared_per_block_optin: int
    shared_per_multiprocessor: int
    l2_bytes: int


@cache
def library() -> ctypes.CDLL:
    """Return the loaded and initialised driver, or say why there is none."""
    try:
        loaded = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        message = f"no CUDA driver: {error}; install the NVIDIA driver"
        raise BackendError(message) from error
    status = loaded.cuInit(0)
    if status:
        raise _failure(loaded, status, "cuInit")
    return loaded


def function_address(name: str) -> int:
    """Return where a driver function lies, for native code."""
    return ctypes.cast(getattr(library(), name), ctypes.c_void_p).value or 0


def call(name: str, *arguments: Any) -> None:
    """Call a driver function and raise what it returns."""
    loaded = library()
    status = getattr(loaded, name)(*arguments)
    if status:
        raise _failure(loaded, status, name)


def failure(status: int, doing: str) -> BackendError:
    """Turn a CUresult into an error that says what to do."""
    return _failure(library(), status, doing)


def _failure(loaded: ctypes.CDLL, status: int, doing: str) -> BackendError:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    loaded.cuGetErrorName(status, ctypes.byref(name))
    loaded.cuGetErrorString(status, ctypes.byref(text))
    label = (name.value or b"CUDA_ERROR_%d" % status).decode()
    advice = _ADVICE.get(label)
    message = f"{doing}: {label} ({(text.value or b'unknown error').decode()})"
    return BackendError(f"{message}; {advice}" if advice else message)


def why_missing() -> str | None:
    """Return why CUDA cannot be used in this process, or None if it can."""
    try:
        return None if device_count() else "the driver finds no device"
    except BackendError as error:
        return str(error)


def driver_version() -> tuple[int, int]:
    """Return the newest CUDA version that the driver runs."""
    found = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(found))
    return found.value // 1000, found.value % 1000 // 10


@cache
def device_count() -> int:
    """Return the number of devices that this process may use."""
    found = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(found))
    return found.value


@cache
def _device(index: int) -> int:
    found = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(found), index)
    return found.value


@cache
def attributes(index: int) -> DeviceProperties:
    """Return the properties of a device."""
    device = _device(index)
    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, device)
    numbers = {key: _attribute(device, n) for key, n in _PROPERTY_NUMBERS.items()}
    capability = _attribute(device, _MAJOR), _attribute(device, _MINOR)
    return DeviceProperties(name.value.decode(), capability, **numbers)


def _attribute(device: int, number: int) -> int:
    found = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(found), number, device)
    return found.value


@cache
def primary_context(index: int) -> ctypes.c_void_p:
    """Return the context that a device shares with every library of the process."""
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), _device(index))
    return context


def make_current(index: int) -> None:
    """Make the primary context of a device current in this thread."""
    call("cuCtxSetCurrent", primary_context(index))


def set_context(context: int | None) -> None:
    """Make a context current in this thread, or none."""
    call("cuCtxSetCurrent", ctypes.c_void_p(context))


def current_context() -> int | None:
    """Return the context that is current in this thread, or None."""
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    return context.value


def pointer_device(pointer: int) -> int:
    """Return the device on which an address lies."""
    found = ctypes.c_int()
    address = ctypes.c_uint64(pointer)
    call("cuPointerGetAttribute", ctypes.byref(found), _POINTER_DEVICE, address)
    return found.value


def synchronize(stream: int) -> None:
    """Wait until everything on a stream of the current context is done."""
    call("cuStreamSynchronize", ctypes.c_void_p(stream))


def read_byte(pointer: int, stream: int) -> int:
    """Return the byte at ``pointer``, once all that ``stream`` was given is done."""
    synchronize(stream)
    found = ctypes.c_uint8()
    call(
        "cuMemcpyDtoH_v2",
        ctypes.byref(found),
        ctypes.c_uint64(pointer),
        ctypes.c_size_t(1),
    )
    return found.value


def memset(pointer: int, byte: int, size: int, stream: int) -> None:
    """Set bytes of device memory, in the order of a stream of the current context."""
    if size:
        call(
            "cuMemsetD8Async",
            ctypes.c_uint64(pointer),
            ctypes.c_ubyte(byte),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )


def recorded_last(stream: int) -> tuple[int, ...] | None:
    """Return the nodes that the next one a stream records would be behind.

    None where it records nothing, or where what it records cannot be told.
    """
    status, count = ctypes.c_int(), ctypes.c_size_t()
    nodes = ctypes.POINTER(ctypes.c_void_p)()
    failed = library().cuStreamGetCaptureInfo_v2(
        ctypes.c_void_p(stream),
        ctypes.byref(status),
        None,
        None,
        ctypes.byref(nodes),
        ctypes.byref(count),
    )
    if failed or status.value != _CAPTURES:
        return None
    return tuple(nodes[k] or 0 for k in range(count.value))


def record_behind(stream: int, nodes: tuple[int, ...]) -> None:
    """Put the next node that a stream records behind these, and behind no others."""
    call(
        "cuStreamUpdateCaptureDependencies",
        ctypes.c_void_p(stream),
        (ctypes.c_void_p * len(nodes))(*nodes),
        ctypes.c_size_t(len(nodes)),
        _REPLACE,
    )


def devices() -> Iterator[DeviceProperties]:
    """Yield the properties of every device that this process may use."""
    for index in range(device_count()):
        yield attributes(index)
