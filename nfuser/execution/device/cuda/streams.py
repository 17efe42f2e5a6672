# SPDX-License-Identifier: Apache-2.0
"""On which stream a caller expects its work, and which context must be current."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from nfuser.execution.device.cuda import driver
from nfuser.execution.device.describe.libraries import Device, Library, module

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_NOTHING = nullcontext()
_LEGACY_DEFAULT = 0


def current_stream(library: Library, device: Device) -> int:
    """Return the handle of the stream on which ``library`` would launch now.

    >>> current_stream(Library.NUMPY, Device("cpu"))
    0
    """
    return stream_reader(library, device)()


def stream_reader(library: Library, device: Device) -> Callable[[], int]:
    """Return a function that reads the current stream; a plan makes it once.

    JAX has no current stream. Its inputs are waited for when their address is read and
    its outputs before they are handed out, so the default stream is as good as any.
    """
    if not device.is_cuda:
        return _default_stream
    match library:
        case Library.TORCH:
            raw = module(library)._C._cuda_getCurrentRawStream
            return partial(raw, device.index)
        case Library.CUPY:
            return partial(_cupy_stream, module(library).cuda, device.index)
        case Library.NUMBA:
            return partial(_numba_stream, module(library))
        case Library.JAX | Library.NUMPY | Library.PHANTOM:
            return _default_stream


def guard(device: Device) -> AbstractContextManager[Any]:
    """Make the device's context current inside a ``with`` statement.

    With one device there is nothing to choose; a thread that has no context yet gets
    one from the launch itself.
    """
    if not device.is_cuda or driver.device_count() == 1:
        return _NOTHING
    return DeviceGuard(device.index)


class DeviceGuard:
    """Makes a device current and restores what was current before."""

    __slots__ = ("_before", "_index")

    def __init__(self, index: int) -> None:
        self._index = index
        self._before: int | None = None

    def __enter__(self) -> None:
        self._before = driver.current_context()
        if self._before != driver.primary_context(self._index).value:
            driver.make_current(self._index)

    def __exit__(self, *_: object) -> None:
        # What ran inside may have changed it too.
        driver.set_context(self._before)


def _default_stream() -> int:
    return _LEGACY_DEFAULT


def _cupy_stream(cuda: Any, index: int) -> int:
    return cuda.get_current_stream(index).ptr


def _numba_stream(cuda: Any) -> int:
    return int(cuda.default_stream().handle)
