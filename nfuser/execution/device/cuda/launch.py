# SPDX-License-Identifier: Apache-2.0
"""Launch a CUDA kernel: all but addresses, numbers and the stream is prepared."""

from __future__ import annotations

import ctypes
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from nfuser.execution.device.cuda import driver
from nfuser.execution.device.cuda.launch_config import LaunchAttribute, LaunchConfig
from nfuser.execution.device.cuda.parameters import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.execution.device.cuda.module import CudaFunction

Size3 = tuple[int, int, int]

_COOPERATIVE = 2
_MOST_STORAGES = 8
_ANOTHER_CONTEXT = (driver.INVALID_CONTEXT, driver.INVALID_HANDLE)


class _Storage(NamedTuple):
    """What one launch at a time is written into, and what that points to."""

    values: Any
    config: LaunchConfig
    handles: tuple[Any, ...]
    keep: tuple[Any, ...]


class PackedLaunch:
    """A launch whose grid, block and parameter types are fixed.

    ``kinds`` names the type of each parameter: ``pointer``, ``i32``, ``f32``, ... A
    cooperative launch is refused by the driver unless all blocks run at once, which is
    what kernels that wait for one another need.

    The storage is written anew by each call. Two threads may call at once, and a
    finalizer may call in the middle of a call: who finds no storage makes his own.
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
        self._launch: Any = driver.library().cuLaunchKernelEx
        layout = "".join(FORMATS[kind] for kind in self.kinds)
        self._pack = struct.Struct(f"<{layout}").pack_into
        self._free = deque([self._storage()], maxlen=_MOST_STORAGES)

    def __call__(self, stream: int, *arguments: float) -> None:
        """Launch with these arguments, addresses and numbers, on a stream's handle."""
        try:
            storage = self._free.pop()
        except IndexError:
            storage = self._storage()
        self._pack(storage.values, 0, *arguments)
        storage.config.stream = stream
        status = 0 if self._empty else self._launch(*storage.handles)
        if status in _ANOTHER_CONTEXT:
            driver.make_current(self.function.device)
            status = self._launch(*storage.handles)
        self._free.append(storage)
        if status:
            raise driver.failure(status, f"launching {self}")

    def _storage(self) -> _Storage:
        count = len(self.kinds)
        values = (ctypes.c_uint64 * max(count, 1))()
        first = ctypes.addressof(values)
        table = (ctypes.c_void_p * max(count, 1))(
            *(first + 8 * k for k in range(count))
        )
        attribute = LaunchAttribute(_COOPERATIVE, 0, (1,))
        attribute_count = int(self.cooperative)
        config = LaunchConfig(
            self.grid,
            self.block,
            self.shared_bytes,
            None,
            ctypes.addressof(attribute) if attribute_count else None,
            attribute_count,
        )
        handles = (
            ctypes.byref(config),
            ctypes.c_void_p(self.function.handle),
            ctypes.byref(table),
            None,
        )
        return _Storage(values, config, handles, (table, attribute))

    def __repr__(self) -> str:
        sizes = f"{self.grid}, {self.block}, {self.shared_bytes} bytes"
        return f"{self.function.name}[{sizes}]"
