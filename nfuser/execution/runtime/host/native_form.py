# SPDX-License-Identifier: Apache-2.0
"""Calls of a ready program for inputs of one form, served natively."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import nfuser.config as config
from nfuser.base.debug import dump
from nfuser.execution.device.describe.descriptor import address_and_key, library_of
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.shared import shared
from nfuser.execution.device.native.state import Record
from nfuser.execution.host.call.native.calls import NativeCall, has_native_calls
from nfuser.execution.host.call.native.number_steps import NotNativeError, NumberWriter
from nfuser.execution.host.call.native.program_words import NativeProgram
from nfuser.execution.host.call.native.records import READ, RecordWriter

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from nfuser.execution.device.native.shared import Shared
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.execution.runtime.place import Place

NO_INTEGERS: Mapping[int, int] = MappingProxyType({})
MISSED: tuple[Any, ...] = ()  # what a native call gives that served nothing


class NativeForm(NativeCall[tuple[Any, ...]]):
    """Gives the outputs as a tuple, or MISSED for inputs of another form."""

    __slots__ = ()

    def __init__(self, record: Record, inputs: int) -> None:
        super().__init__()
        self._serve(record, inputs)

    def _otherwise(self, *args: Any) -> tuple[Any, ...]:
        return MISSED


def form_of(inputs: Sequence[Any]) -> tuple[Hashable, ...] | None:
    """Return what inputs must have in common to follow one program."""
    found: list[Hashable] = [config.number()]
    for item in inputs:
        library = library_of(type(item))
        if library is not None:
            found.append(address_and_key(library, item)[1])
        elif type(item) is int and -(1 << 63) <= item < 1 << 63:
            found.append(item)
        else:
            return None
    return tuple(found)


def native_form(
    program: CallProgram,
    place: Place,
    positions: Mapping[Slot, int],
    inputs: Sequence[Any],
    integers: Mapping[int, int] = NO_INTEGERS,
    *,
    is_alone: bool = False,
) -> NativeForm | None:
    """Return what lets native code serve calls of ``program`` like this, if it can.

    ``positions`` say which of ``inputs`` are its arrays, ``integers`` which are those
    of its scalars, by slot; integers are the same in all such calls. Kernels run in the
    calling thread if it ``is_alone``.
    """
    found = shared()
    if (
        found is None
        or not has_native_calls()
        or place.backend == "interpret"
        or place.library not in READ
        or not 0 < len(inputs) <= at.MOST_ARGUMENTS
        or dump.wants("launch")
    ):
        return None
    try:
        native = NativeProgram(
            program,
            place.library,
            place.device,
            positions,
            {slot: (position, int) for slot, position in integers.items()},
            len(inputs),
            NumberWriter(integers),
            is_alone=is_alone,
        )
        record = _record(found, native, program, place, positions, inputs)
    except NotNativeError:
        return None
    return NativeForm(record, len(inputs))


def _record(
    found: Shared,
    native: NativeProgram,
    program: CallProgram,
    place: Place,
    positions: Mapping[Slot, int],
    inputs: Sequence[Any],
) -> Record:
    writer = RecordWriter(found, place.library, place.device)
    frame = found.read(inputs)
    if frame is None:
        raise NotNativeError
    patterns: list[int] = []
    for item, row in zip(inputs, frame, strict=True):
        if type(item) is int:
            cls = writer.keep.object(int)
            patterns += [at.IS_NUMBER, 40, cls, item, item]
        else:
            patterns += writer.array_pattern(item, row)
    header = writer.header(frame, len(inputs), patterns, native)
    results: list[int] = []
    for slot in program.outputs:
        given = slot in positions
        results += [-1 - positions[slot] if given else native.objects[slot], 0]
    header[at.R_RESULT // 8] = at.MANY
    header[at.R_RESULT_COUNT // 8] = len(program.outputs)
    header[at.R_RESULTS // 8] = writer.keep.words(results)
    writer.keep.hold(program)
    return Record(header, writer.keep, [])
