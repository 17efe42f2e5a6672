# SPDX-License-Identifier: Apache-2.0
"""Launch a CUDA kernel: all but addresses, numbers and the stream is prepared."""

from __future__ import annotations

import ctypes
import struct
import threading
from typing import TYPE_CHECKING, Any

from nfuser.device import driver
from nfuser.device.parameters import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.device.module import CudaFunction

Size3 = tuple[int, int, int]

_COOPERATIVE = 2
_ANOTHER_CONTEXT = (driver.INVALID_CONTEXT, driver.INVALID_HANDLE)


class LaunchAttribute(ctypes.Structure):
    """``CUlaunchAttribute``: a number and a union of 64 bytes."""

    _fields_ = (
        ("number", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("value", ctypes.c_int * 16),
    )


class LaunchConfig(ctypes.Structure):
    """``CUlaunchConfig``."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


class PackedLaunch:
    """A launch whose grid, block and parameter types are fixed.

    ``kinds`` names the type of each parameter: ``pointer``, ``i32``, ``f32``, ... A
    cooperative launch is refused by the driver unless all blocks run at once, which is
    what kernels that wait for one another need.

    The storage is written anew by each call. Two threads may call at once, and a
    finalizer may call in the middle of a call: who finds the storage in use makes his
    own.
    """

    def __init__(
        self,
        function: CudaFunction,
        kinds: Sequence[str],
        grid: Size3,
        block: Size3,
        shared_bytes: int = 0,
        *,
        cooperative: bool = False,
    ) -> None:
        self.function = function
        self.kinds = tuple(kinds)
        self.grid = grid
        self.block = block
        self.shared_bytes = shared_bytes
        self.cooperative = cooperative
        function.allow_dynamic_shared(shared_bytes)
        self._empty = 0 in grid
        self._in_use = threading.Lock()
        self._launch: Any = driver.library().cuLaunchKernelEx
        self._prepare()

    def __call__(self, stream: int, *arguments: float) -> None:
        """Launch with these arguments, addresses and numbers, on a stream's handle."""
        if not self._in_use.acquire(False):
            self._copy()(stream, *arguments)
            return
        try:
            self._pack(self._storage, 0, *arguments)
            self._config.stream = stream
            status = 0 if self._empty else self._launch(*self._handles)
            if status in _ANOTHER_CONTEXT:
                driver.make_current(self.function.device)
                status = self._launch(*self._handles)
        finally:
            self._in_use.release()
        if status:
            raise driver.failure(status, f"launching {self}")

    def _prepare(self) -> None:
        count = len(self.kinds)
        layout = "".join(FORMATS[kind] for kind in self.kinds)
        self._pack = struct.Struct(f"<{layout}").pack_into
        self._storage = (ctypes.c_uint64 * max(count, 1))()
        first = ctypes.addressof(self._storage)
        table = (ctypes.c_void_p * max(count, 1))(
            *(first + 8 * k for k in range(count))
        )
        attribute = LaunchAttribute(_COOPERATIVE, 0, (1,))
        attribute_count = int(self.cooperative)
        self._config = LaunchConfig(
            self.grid,
            self.block,
            self.shared_bytes,
            None,
            ctypes.addressof(attribute) if attribute_count else None,
            attribute_count,
        )
        self._handles = (
            ctypes.byref(self._config),
            ctypes.c_void_p(self.function.handle),
            ctypes.byref(table),
            None,
        )
        self._keep = (table, attribute)

    def _copy(self) -> PackedLaunch:
        return PackedLaunch(
            self.function,
            self.kinds,
            self.grid,
            self.block,
            self.shared_bytes,
            cooperative=self.cooperative,
        )

    def __repr__(self) -> str:
        sizes = f"{self.grid}, {self.block}, {self.shared_bytes} bytes"
        return f"{self.function.name}[{sizes}]"
