# SPDX-License-Identifier: Apache-2.0
"""What records of calls have in common: how arrays must be alike, what is performed."""

# Arguments have no static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.execution.device.cuda.streams import stream_reader
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.owned import Keeper, new_words
from nfuser.execution.host.call.native.number_steps import NotNativeError
from nfuser.execution.host.call.native.program_words import failed

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.errors import NfuserError
    from nfuser.execution.device.describe.libraries import Device
    from nfuser.execution.device.native.shared import Shared
    from nfuser.execution.host.call.native.program_words import NativeProgram

READ = (Library.NUMPY, Library.TORCH, Library.CUPY)  # what native code reads


class RecordWriter:
    """Writes the words of one record; ``keep`` holds all that they name."""

    def __init__(self, shared: Shared, library: Library, device: Device) -> None:
        self.keep = Keeper()
        self._shared = shared
        self._library = library
        self._device = device
        shared.learn({Library.NUMPY, library})

    def header(
        self,
        frame: Any,
        count: int,
        patterns: list[int],
        program: NativeProgram,
        fail: Callable[[NfuserError], None] = lambda error: None,
    ) -> Any:
        """Return a header for calls of ``count`` arguments, without results.

        ``fail`` sees the error of a launch before it is raised.
        """
        self.keep.hold(program.keep)
        steps = program.steps.words
        header = new_words([0] * (at.RECORD_BYTES // 8))
        for where, number in (
            (at.R_HASH, self._shared.mixed(frame, count)),
            (at.R_CONFIG, config.number()),
            (at.R_COUNT, count),
            (at.R_TOTAL, count),
            (at.R_PATTERNS, self.keep.words(patterns)),
            (at.R_OBJECTS, len(program.objects)),
            (at.R_BODY, self.keep.words(program.words)),
            (at.R_NUMBERS, self.keep.words(steps) if steps else 0),
            (at.R_FAILED, self.keep.object(_raiser(self._device, fail))),
        ):
            header[where // 8] = number
        if self._device.is_cuda:
            self._stream(header)
        return header

    def _stream(self, header: Any) -> None:
        from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

        self._shared.learn_context()
        context = driver.primary_context(self._device.index).value or 0
        header[at.R_CONTEXT // 8] = context
        if self._library is Library.TORCH:
            header[at.R_STREAM // 8] = at.DLPACK_STREAM
            header[at.R_STREAM_ARGUMENT // 8] = self._device.index
            return
        reader = stream_reader(self._library, self._device)
        header[at.R_STREAM // 8] = at.CALLED_STREAM
        header[at.R_STREAM_READER // 8] = self.keep.object(reader)

    def array_pattern(self, item: Any, row: Any, *, is_open: bool = False) -> list[int]:
        """Return what tells arrays like ``item``, which was read into ``row``.

        They are of other sizes, too, if it ``is_open``.
        """
        rank = int(row[at.F_NDIM // 8])
        if rank < 0:  # of a library that native code does not read
            raise NotNativeError
        self.keep.hold(type(item), item.dtype)
        places = (at.F_KIND, at.F_META, at.F_FLAGS, at.F_DATA, at.F_DIMS, at.F_STRIDES)
        kind, meta, flags, data, dims, strides = (int(row[k // 8]) for k in places)
        sizes = [] if is_open else [*_read(dims, rank), *_read(strides, rank)]
        size = 8 * (7 + len(sizes))
        tag = at.IS_OPEN_ARRAY if is_open else at.IS_ARRAY
        words = [tag, size, kind, meta, flags, data & at.ALIGNMENT, rank]
        return [*words, *sizes]


def _read(address: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(address)) if count else []


def _raiser(
    device: Device, fail: Callable[[NfuserError], None]
) -> Callable[[int], None]:
    def raise_failure(status: int) -> None:
        error = failed(device, status)
        fail(error)
        raise error

    return raise_failure
