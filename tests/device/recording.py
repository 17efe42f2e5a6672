# SPDX-License-Identifier: Apache-2.0
"""A driver whose stream records: it writes down what is launched, and behind what."""

from __future__ import annotations

import ctypes
from typing import Any

from nfuser.execution.device.cuda.launch_config import LaunchConfig

_POINTER, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint
_CAPTURES, _REPLACE = 1, 1
FIRST = 0x1000  # the handle of the first node


class RecordingDriver:
    """One stream, on which every call becomes a node of a graph.

    ``behind`` maps nodes to those that they were put behind, and ``launches`` to what
    they launch; ``statuses`` are returned by the launches to come.
    """

    def __init__(self) -> None:
        self.behind: dict[int, tuple[int, ...]] = {}
        self.launches: dict[int, dict[str, Any]] = {}
        self.statuses: list[int] = []
        self.is_known = True
        self._last: tuple[int, ...] = ()
        self._shown: Any = None

        def function(method: Any, *parameters: Any) -> Any:
            return ctypes.CFUNCTYPE(_INT, *parameters)(method)

        sizes = [_UNSIGNED] * 7
        self.cuLaunchKernelEx = function(self._extended, *[_POINTER] * 4)
        self.cuLaunchKernel = function(self._plain, _POINTER, *sizes, *[_POINTER] * 3)
        self.cuLaunchCooperativeKernel = function(
            self._together, _POINTER, *sizes, *[_POINTER] * 2
        )
        self.cuMemsetD8Async = function(
            self._memset, ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, _POINTER
        )
        self.cuStreamGetCaptureInfo_v2 = function(self._information, *[_POINTER] * 6)
        self.cuStreamUpdateCaptureDependencies = function(
            self._update, _POINTER, _POINTER, ctypes.c_size_t, _UNSIGNED
        )

    def record(self, **launch: Any) -> int:
        """Add a node; return its status."""
        if self.statuses and (status := self.statuses.pop(0)):
            return status
        node = FIRST + 8 * len(self.behind)
        self.behind[node], self._last = self._last, (node,)
        self.launches[node] = launch
        return 0

    def order(self) -> list[set[int]]:
        """Return, for each node, the numbers of all that come before it."""
        found: dict[int, set[int]] = {}
        for node, nearest in self.behind.items():
            further = set[int]().union(*(found[n] for n in nearest))
            found[node] = further | {(n - FIRST) // 8 for n in nearest}
        return list(found.values())

    def last(self) -> set[int]:
        """Return the numbers of the nodes that the next one would be behind."""
        return {(n - FIRST) // 8 for n in self._last}

    # -- the C interface -----------------------------------------------------

    def _information(
        self, _stream: Any, status: int, _id: Any, _graph: Any, nodes: int, count: int
    ) -> int:
        if not self.is_known:
            return 1
        self._shown = (_POINTER * len(self._last))(*self._last)
        ctypes.c_int.from_address(status).value = _CAPTURES
        ctypes.c_void_p.from_address(nodes).value = ctypes.addressof(self._shown)
        ctypes.c_size_t.from_address(count).value = len(self._last)
        return 0

    def _update(self, _stream: Any, nodes: int, count: int, flags: int) -> int:
        assert flags == _REPLACE
        found = (_POINTER * count).from_address(nodes) if count else ()
        self._last = tuple(found)
        return 0

    def _memset(self, address: int, byte: int, size: int, _stream: Any) -> int:
        return self.record(name="memset", address=address, byte=byte, size=size)

    def _extended(self, config: int, kernel: int, values: int, _extra: Any) -> int:
        found = LaunchConfig.from_address(config)
        grid, block = tuple(found.grid), tuple(found.block)
        together = bool(found.attribute_count)
        return self._launch(
            kernel, (*grid, *block, found.shared_bytes), values, together
        )

    def _plain(self, kernel: int, *given: Any) -> int:
        *sizes, _stream, values, extra = given
        assert extra is None
        return self._launch(kernel, tuple(sizes), values, together=False)

    def _together(self, kernel: int, *given: Any) -> int:
        *sizes, _stream, values = given
        return self._launch(kernel, tuple(sizes), values, together=True)

    def _launch(
        self, kernel: int, sizes: tuple[int, ...], values: int, together: bool
    ) -> int:
        first = ctypes.c_int64.from_address(
            ctypes.c_int64.from_address(values).value
        ).value
        return self.record(name=kernel, sizes=sizes, together=together, first=first)
