# SPDX-License-Identifier: Apache-2.0
"""Check what the caller gives to a host program, before anything runs."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import (
    ArgumentError,
    DeviceError,
    DTypeError,
    MutationError,
    ShapeError,
)
from nfuser.execution.device.apart import check_apart
from nfuser.execution.device.describe.descriptor import CPU, Library, describe
from nfuser.execution.host.ir.rules import RANK, STREAMS
from nfuser.execution.host.run.frame import shape_reader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.execution.device.describe.descriptor import Descriptor, Device
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.run.frame import RunFrame


def common_home(program: HostProgram, inputs: Sequence[Any]) -> tuple[Library, Device]:
    """Return the library and device of the arrays, which all have in common."""
    found: tuple[Library, Device] | None = None
    for given, item in zip(program.inputs, inputs, strict=True):
        if isinstance(given.value, TensorView):
            d = describe(item, f"input {given.name} of {program.name}")
            if found is not None and found != (d.library, d.device):
                message = (
                    f"input {given.name} of {program.name}: expected an array of "
                    f"{found[0].value} on {found[1]}, found {d}"
                )
                raise DeviceError(message)
            found = d.library, d.device
    return found or (Library.NUMPY, CPU)


def bind_inputs(
    frame: RunFrame, program: HostProgram, inputs: Sequence[Any], streams: int
) -> None:
    """Give arrays and integers to ``frame``; refuse those of another form."""
    frame.values[STREAMS] = streams
    if frame.communicator is not None:
        frame.values[RANK] = frame.communicator.rank
    for slot, (given, item) in enumerate(zip(program.inputs, inputs, strict=True)):
        what = f"input {given.name} of {program.name}"
        if not isinstance(given.value, TensorView):
            if isinstance(item, bool) or not isinstance(item, int | np.integer):
                message = f"{what}: expected an integer, found {type(item).__name__}"
                raise ArgumentError(message)
            if item < 0:
                message = f"{what}: expected 0 or more, found {item}"
                raise ArgumentError(message)
            frame.values[given.value] = int(item)
            continue
        d = describe(item, what)
        _check_dtype(what, given.value, d)
        if len(d.shape) != given.value.ndim:
            message = f"{what}: expected {given.value.ndim} axes, found shape {d.shape}"
            raise ShapeError(message)
        for axis, extent in enumerate(d.shape):
            frame.values[scalar_symbols.size(slot, axis)] = extent
        frame.arrays[given.value] = item
    for given, item in zip(program.inputs, inputs, strict=True):
        if isinstance(given.value, TensorView):
            wanted = shape_reader(given.value.shape)(frame)
            _check_shape(f"input {given.name} of {program.name}", wanted, item)


def bind_outputs(
    frame: RunFrame,
    program: HostProgram,
    keys: Sequence[TensorView],
    outputs: Sequence[Any],
) -> dict[int, Any]:
    """Give the caller's outputs to ``frame``, all checked before one is written.

    Return those that are written at the end only: they overlap an input, or have no
    memory of their own in the program.
    """
    if outputs and len(outputs) != len(keys):
        message = f"expected {len(keys)} outputs, found {len(outputs)}"
        raise ArgumentError(message)
    taken = [describe(a, "an input") for a in frame.arrays.values()]
    staged: dict[int, Any] = {}
    ready: dict[TensorView, Any] = {}
    found: list[tuple[str, Descriptor]] = []
    for number, given in enumerate(outputs):
        if given is None:
            continue
        key, what = keys[number], f"output {number} of {program.name}"
        d = describe(given, what)
        _check_output(frame, what, program.outputs[number], given, d)
        apart = not any(d.meets(other) for other in taken)
        if apart and key not in frame.arrays and key not in ready:
            ready[key] = given
        else:
            staged[number] = given
        taken.append(d)
        found.append((what, d))
    check_apart(found)
    frame.arrays |= ready
    return staged


def _check_output(
    frame: RunFrame, what: str, tensor: TensorView, given: Any, d: Descriptor
) -> None:
    home = frame.library.library, frame.library.device
    if (d.library, d.device) != home:
        message = (
            f"{what}: expected an array of {home[0].value} on {home[1]}, found {d}"
        )
        raise DeviceError(message)
    _check_dtype(what, tensor, d)
    _check_shape(what, shape_reader(tensor.shape)(frame), given)
    _check_writable(what, d)


def check_updated(
    frame: RunFrame, program: HostProgram, updated: AbstractSet[TensorView]
) -> None:
    """Refuse inputs that the program writes, and cannot."""
    for given in program.inputs:
        if given.value in updated and isinstance(given.value, TensorView):
            what = f"input {given.name} of {program.name}, which it writes"
            _check_writable(what, describe(frame.arrays[given.value], what))


def _check_writable(what: str, d: Descriptor) -> None:
    repeated = any(
        n > 1 and step == 0 for n, step in zip(d.shape, d.strides, strict=True)
    )
    if not d.writable or repeated:
        message = f"{what}: the array is read-only, or its elements share memory"
        raise MutationError(message)


def _check_dtype(what: str, tensor: TensorView, d: Descriptor) -> None:
    if d.dtype is not tensor.dtype:
        message = f"{what}: expected {tensor.dtype}, found {d.dtype}"
        raise DTypeError(message)


def _check_shape(what: str, wanted: tuple[int, ...], given: Any) -> None:
    if tuple(given.shape) != wanted:
        message = f"{what}: expected shape {wanted}, found {tuple(given.shape)}"
        raise ShapeError(message)
