# SPDX-License-Identifier: Apache-2.0
"""Load a cubin and find out what its kernel needs.

A cubin is loaded as a library, which belongs to no context; the kernel's handle belongs
to the primary context of one device. Libraries stay loaded: a kernel that was launched
may still run when the last reference to it goes.
"""

from __future__ import annotations

import ctypes

from nfuser.errors import BackendError
from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.launch_config import LaunchConfig
from nfuser.execution.device.cuda.streams import DeviceGuard

_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS = 1, 3, 4
_MAX_THREADS, _MAX_DYNAMIC_SHARED = 0, 8
PLAIN_SHARED = 48 << 10
"""Bytes of shared memory that a block may have without asking."""


class CudaFunction:
    """A loaded kernel on one device."""

    __slots__ = ("device", "dynamic_shared", "handle", "name")

    def __init__(self, handle: int, name: str, device: int) -> None:
        self.handle = handle
        self.name = name
        self.device = device
        self.dynamic_shared = 0

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self._attribute(_REGISTERS)

    @property
    def local_bytes(self) -> int:
        """Bytes that a thread spills to memory."""
        return self._attribute(_LOCAL_BYTES)

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory that the kernel declares itself."""
        return self._attribute(_SHARED_BYTES)

    @property
    def max_threads(self) -> int:
        """The largest block that the registers allow."""
        return self._attribute(_MAX_THREADS)

    def allow_dynamic_shared(self, size: int) -> None:
        """Ask for more than the 48 KiB of shared memory that every block may have.

        What the kernel declares itself counts, too.
        """
        if size <= self.dynamic_shared:
            return
        static = self.static_shared_bytes
        if size + static > PLAIN_SHARED:
            self._ask_for_dynamic(size, static)
        self.dynamic_shared = size

    def _ask_for_dynamic(self, size: int, static: int) -> None:
        limit = driver.attributes(self.device).shared_per_block_optin
        if size + static > limit:
            message = (
                f"kernel {self.name} needs {size + static} bytes of shared memory; a "
                f"block of this GPU has at most {limit}"
            )
            raise BackendError(message)
        with DeviceGuard(self.device):
            handle = ctypes.c_void_p(self.handle)
            driver.call("cuFuncSetAttribute", handle, _MAX_DYNAMIC_SHARED, size)

    def blocks_per_multiprocessor(self, threads: int, shared_bytes: int) -> int:
        """Return how many blocks of this size run on a multiprocessor at once."""
        self.allow_dynamic_shared(shared_bytes)
        found = ctypes.c_int()
        with DeviceGuard(self.device):
            driver.call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                ctypes.byref(found),
                ctypes.c_void_p(self.handle),
                threads,
                ctypes.c_size_t(shared_bytes),
            )
        return found.value

    def clusters_at_once(self, size: int, threads: int, shared_bytes: int) -> int:
        """Return how many clusters of ``size`` blocks the device runs at once.

        A cluster lies in one part of a chip. How many multiprocessors each part has
        differs from chip to chip, and no other attribute tells it.
        """
        self.allow_dynamic_shared(shared_bytes)
        found = ctypes.c_int()
        sizes = (1, size, 1), (threads, 1, 1)
        config = LaunchConfig(*sizes, shared_bytes, None, None, 0)
        with DeviceGuard(self.device):
            driver.call(
                "cuOccupancyMaxActiveClusters",
                ctypes.byref(found),
                ctypes.c_void_p(self.handle),
                ctypes.byref(config),
            )
        return found.value

    def _attribute(self, number: int) -> int:
        found = ctypes.c_int()
        handle = ctypes.c_void_p(self.handle)
        with DeviceGuard(self.device):
            driver.call("cuFuncGetAttribute", ctypes.byref(found), number, handle)
        return found.value

    def __repr__(self) -> str:
        return f"CudaFunction({self.name} on cuda:{self.device})"


def load_cubin(code: bytes, entry: str, device: int) -> CudaFunction:
    """Load a cubin onto a device and return its kernel ``entry``."""
    library, kernel, function = (ctypes.c_void_p() for _ in range(3))
    with DeviceGuard(device):
        driver.call(
            "cuLibraryLoadData",
            ctypes.byref(library),
            code,
            None,
            None,
            0,
            None,
            None,
            0,
        )
        driver.call("cuLibraryGetKernel", ctypes.byref(kernel), library, entry.encode())
        driver.call("cuKernelGetFunction", ctypes.byref(function), kernel)
    return CudaFunction(function.value or 0, entry, device)
