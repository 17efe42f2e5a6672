# SPDX-License-Identifier: Apache-2.0
"""Check what the caller gives to a host program, before anything runs."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.ir.scalars import scalar_walk
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.mesh.communicator import Communicator
    from nfuser.execution.host.run.arrays import Arrays


class BoundInputs:
    """What a call gives to a program: arrays of one library and device, and integers.

    Those of another form are refused.
    """

    def __init__(
        self,
        program: HostProgram,
        inputs: Sequence[Any],
        streams: int,
        communicator: Communicator | None,
    ) -> None:
        self.program = program
        self.arrays: dict[TensorView, Any] = {}
        self.inputs: dict[TensorView, Descriptor] = {}
        self.outputs: dict[TensorView, Descriptor] = {}
        self.values: dict[Scalar, int] = {STREAMS: streams}
        if communicator is not None:
            self.values[RANK] = communicator.rank
        self.library, self.device = Library.NUMPY, CPU
        for given, item in zip(program.inputs, inputs, strict=True):
            if isinstance(given.value, TensorView):
                self._describe(given.value, item, f"input {given.name}")
        for slot, (given, item) in enumerate(zip(program.inputs, inputs, strict=True)):
            what = f"input {given.name} of {program.name}"
            if not isinstance(given.value, TensorView):
                self.values[given.value] = _integer(what, item)
                continue
            d = self.inputs[given.value]
            _check_dtype(what, given.value, d)
            if len(d.shape) != (wanted := given.value.ndim):
                message = f"{what}: expected {wanted} axes, found shape {d.shape}"
                raise ShapeError(message)
            for axis, extent in enumerate(d.shape):
                self.values[scalar_symbols.size(slot, axis)] = extent
        for given in program.inputs:
            if isinstance(given.value, TensorView):
                what = f"input {given.name} of {program.name}"
                self._check_shape(what, given.value, self.inputs[given.value])

    def _describe(self, tensor: TensorView, item: Any, name: str) -> None:
        what = f"{name} of {self.program.name}"
        d = describe(item, what)
        if not self.inputs:
            self.library, self.device = d.library, d.device
        self._check_home(what, d)
        self.inputs[tensor], self.arrays[tensor] = d, item

    def _check_home(self, what: str, d: Descriptor) -> None:
        if (d.library, d.device) != (self.library, self.device):
            home = f"{self.library.value} on {self.device}"
            message = f"{what}: expected an array of {home}, found {d}"
            raise DeviceError(message)

    def _check_shape(self, what: str, tensor: TensorView, d: Descriptor) -> None:
        wanted = tuple(scalar_walk.evaluate_all(tensor.shape, self.values))
        if d.shape != wanted:
            message = f"{what}: expected shape {wanted}, found {d.shape}"
            raise ShapeError(message)

    def meet(self, updated: AbstractSet[TensorView]) -> bool:
        """Refuse inputs that the program writes, and cannot; tell if any meet others.

        They do that overlap another input in memory.
        """
        inputs = self.inputs
        for given in self.program.inputs:
            if isinstance(given.value, TensorView) and given.value in updated:
                what = f"input {given.name} of {self.program.name}, which it writes"
                _check_writable(what, inputs[given.value])
        return any(
            inputs[t].meets(d) for t in updated for u, d in inputs.items() if u is not t
        )

    def give(
        self, keys: Sequence[TensorView], outputs: Sequence[Any]
    ) -> dict[int, Any]:
        """Bind the caller's outputs, all checked before one is written.

        Return those that are written at the end only: they overlap an input, or have no
        memory of their own in the program.
        """
        if outputs and len(outputs) != len(keys):
            message = f"expected {len(keys)} outputs, found {len(outputs)}"
            raise ArgumentError(message)
        taken = [*self.inputs.values()]
        staged: dict[int, Any] = {}
        found: list[tuple[str, Descriptor]] = []
        for number, given in enumerate(outputs):
            if given is None:
                continue
            key, what = keys[number], f"output {number} of {self.program.name}"
            d = describe(given, what)
            self._check_home(what, d)
            _check_dtype(what, self.program.outputs[number], d)
            self._check_shape(what, self.program.outputs[number], d)
            _check_writable(what, d)
            if key in self.arrays or any(d.meets(other) for other in taken):
                staged[number] = given
            else:
                self.arrays[key], self.outputs[key] = given, d
            taken.append(d)
            found.append((what, d))
        check_apart(found)
        return staged


def store_outputs(
    library: Arrays, results: list[Any], staged: Mapping[int, Any]
) -> None:
    """Copy results into arrays that had to wait; read none that one has changed."""
    changed: list[Descriptor] = []
    for number, given in staged.items():
        found = describe(results[number], "a result")
        own = describe(given, "an output")
        is_moved = found.meets(own) and found != own
        if is_moved or any(found.meets(other) for other in changed):
            results[number] = library.copy(results[number], None)
        changed.append(own)
    for number, given in staged.items():
        results[number] = library.copy(results[number], given)


def _integer(what: str, item: Any) -> int:
    if isinstance(item, bool) or not isinstance(item, int | np.integer):
        message = f"{what}: expected an integer, found {type(item).__name__}"
        raise ArgumentError(message)
    if item < 0:
        message = f"{what}: expected 0 or more, found {item}"
        raise ArgumentError(message)
    return int(item)


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
