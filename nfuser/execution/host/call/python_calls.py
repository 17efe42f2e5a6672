# SPDX-License-Identifier: Apache-2.0
"""What Python computes in a program, and views that the library makes."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.compiler.dtypes import as_dtype
from nfuser.errors import ArgumentError, DTypeError, ShapeError
from nfuser.execution.device.allocate import ALIGNMENT, empty
from nfuser.execution.device.describe.descriptor import library_of, pointer_reader
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.host.call.library.library_calls import view_reader
from nfuser.execution.host.call.program import Operand, SlotPart
from nfuser.execution.host.run.arrays_of import arrays_of, share_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.execution.device.describe.libraries import Device
    from nfuser.execution.host.call.frame import Frame
    from nfuser.execution.host.call.program import CallPython, Slot, ViewSlot
    from nfuser.execution.host.run.arrays import Arrays


def view_step(
    stmt: ViewSlot, library: Library, device: Device
) -> Callable[[Frame], None]:
    """Return what makes the view in a frame."""
    view, pointer = (
        view_reader(stmt.views, arrays_of(library, device)),
        pointer_reader(library),
    )

    def run(frame: Frame) -> None:
        array = view(frame.arrays[stmt.source][0])
        frame.arrays[stmt.slot] = array, pointer(array)

    return run


def python_step(
    stmt: CallPython, library: Library, device: Device
) -> Callable[[Frame], None]:
    """Return what calls the function in a frame, and keeps its results.

    What lies otherwise than in C order, in memory that other arrays of the run have,
    or in such that nobody may write, is copied.
    """
    arrays, pointer = arrays_of(library, device), pointer_reader(library)
    read = [_reader(x, arrays) for x in stmt.operands]

    def run(frame: Frame) -> None:
        operands = [x(frame) for x in read]
        found = stmt.call(frame.communicator, operands)
        if len(found) != len(stmt.results):
            message = f"expected {len(stmt.results)} results, found {len(found)}"
            raise ArgumentError(message)
        others = [array for array, _ in frame.arrays.values()]
        for slot, made in zip(stmt.results, found, strict=True):
            made = np.asarray(made) if isinstance(made, np.generic) else made
            _check(made, slot)
            if not _may_stay(made, arrays, others):
                form = slot.shape, slot.strides, slot.dtype
                made = arrays.copy(made, empty(library, device, *form))
            frame.arrays[slot] = made, pointer(made)
            frame.written.add(slot)
            others.append(made)

    return run


def _may_stay(made: Any, arrays: Arrays, others: Sequence[Any]) -> bool:
    library = arrays.library
    if library_of(type(made)) is not library or not arrays.is_dense(made):
        return False
    if library is Library.NUMPY and not made.flags.writeable:
        return False  # kernels may be told to write there
    is_lazy = library is Library.TORCH and (made.is_conj() or made.is_neg())
    if is_lazy or pointer_reader(library)(made) % ALIGNMENT:
        return False
    return not any(share_memory(library, made, x) for x in others)


def _check(array: Any, slot: Slot) -> None:
    if tuple(array.shape) != slot.shape:
        found = tuple(array.shape)
        message = f"expected an array of shape {slot.shape}, found {found}"
        raise ShapeError(message)
    if as_dtype(array.dtype) is not slot.dtype:
        message = f"expected an array of {slot.dtype}, found {array.dtype}"
        raise DTypeError(message)


def _reader(x: object, arrays: Arrays) -> Callable[[Frame], Any]:
    """Return what gives an operand in a frame."""
    if not isinstance(x, Operand) or not isinstance(x.part, SlotPart):
        return lambda frame: x
    slot, view = x.part.slot, view_reader(x.views, arrays)
    return lambda frame: view(frame.arrays[slot][0])
