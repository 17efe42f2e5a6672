# SPDX-License-Identifier: Apache-2.0
"""Run host programs on arrays of NumPy, PyTorch or CuPy."""

# Arrays of several libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.base.debug import events
from nfuser.compiler.ir.tensor import TensorView
from nfuser.errors import ArgumentError, HostError, NfuserError, host_error
from nfuser.execution.device.allocate import empty
from nfuser.execution.device.describe.descriptor import describe
from nfuser.execution.device.describe.libraries import c_strides
from nfuser.execution.host.ir.memory import MemoryOwners
from nfuser.execution.host.ir.overlap import Overlap
from nfuser.execution.host.ir.statements import line_of
from nfuser.execution.host.ir.verify import verify
from nfuser.execution.host.run.arrays_of import arrays_of
from nfuser.execution.host.run.bind import (
    bind_inputs,
    bind_outputs,
    check_updated,
    common_home,
)
from nfuser.execution.host.run.frame import RunFrame
from nfuser.execution.host.run.steps import Steps
from nfuser.execution.host.run.timeline import TimelineNotes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.base.debug.timeline import Timeline
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.host.ir.statements import Statement
    from nfuser.execution.host.mesh.communicator import Communicator
    from nfuser.execution.host.run.steps import Call, Step


class Interpreter:
    """A program ready to run; calls may overlap.

    ``call`` runs what the program launches on arrays and integers; it is given those
    outputs that have memory, and may write there; what it makes shares no memory with
    its operands.
    """

    def __init__(self, program: HostProgram, call: Call, streams: int) -> None:
        if streams < 1:
            message = f"number_of_streams is at least 1, found {streams}"
            raise ArgumentError(message)
        verify(program)
        self.program = program
        self.streams = streams
        self._memory = memory = MemoryOwners(program)
        self._overlap = Overlap(program, memory)
        made = Steps(self._overlap, memory, call, self._run, _allocate)
        self._steps = made.block(program.body)
        self._outputs = [memory.owner.get(t, t) for t in program.outputs]

    def __call__(
        self,
        inputs: Sequence[Any] | Mapping[str, Any],
        outputs: Sequence[Any] = (),
        communicator: Communicator | None = None,
        timeline: Timeline | None = None,
    ) -> list[Any]:
        """Run; return the outputs, which are those given where some are."""
        listed = self._listed(inputs)
        home = common_home(self.program, listed)
        frame = RunFrame(arrays_of(*home), communicator)
        bind_inputs(frame, self.program, listed, self.streams)
        check_updated(frame, self.program, self._overlap.updated)
        frame.is_serial = self._overlap.among_inputs(frame)
        staged = bind_outputs(frame, self.program, self._outputs, outputs)
        try:
            if timeline is not None:
                frame.tracer = TimelineNotes(
                    timeline, self.program.lines(), frame.library
                )
            self._run(self._steps, frame)
            frame.leave()
            if frame.tracer is not None:
                frame.tracer.finish(frame.peak)
            results = [self._result(frame, key) for key in self._outputs]
            self._write(frame, results, staged)
            return results
        finally:
            frame.leave()
            frame.clear()

    def _write(
        self, frame: RunFrame, results: list[Any], staged: Mapping[int, Any]
    ) -> None:
        """Copy results into arrays that had to wait; read none that one has changed."""
        changed: list[Descriptor] = []
        for number, given in staged.items():
            found = describe(results[number], "a result")
            own = describe(given, "an output")
            is_moved = found.meets(own) and found != own
            if is_moved or any(found.meets(other) for other in changed):
                results[number] = frame.library.copy(results[number], None)
            changed.append(own)
        for number, given in staged.items():
            results[number] = frame.library.copy(results[number], given)

    def _result(self, frame: RunFrame, key: TensorView) -> Any:
        """Return an output, which the caller uses and lets go on its own stream."""
        array, root = frame.arrays[key], self._memory.root(key)
        home = frame.home.get(root, frame.origin)
        if home == frame.origin:
            return array
        lent = frame.library.lend(array)
        if lent is not array:
            frame.note([root])
        return lent

    def _listed(self, inputs: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        names = [x.name for x in self.program.inputs]
        if isinstance(inputs, Mapping):
            if set(inputs) != set(names):
                message = f"expected inputs {names}, found {list(inputs)}"
                raise ArgumentError(message)
            inputs = [inputs[name] for name in names]
        if len(inputs) != len(names):
            message = f"expected {len(names)} inputs {names}, found {len(inputs)}"
            raise ArgumentError(message)
        return [
            # NumPy gives such for what has no axes.
            np.asarray(x)
            if isinstance(x, np.generic) and isinstance(given.value, TensorView)
            else x
            for given, x in zip(self.program.inputs, inputs, strict=True)
        ]

    # -- running -------------------------------------------------------------

    def _run(self, steps: Sequence[tuple[Statement, Step]], frame: RunFrame) -> None:
        tracer = frame.tracer
        for stmt, step in steps:
            try:
                if tracer is not None:
                    tracer.run(stmt, partial(step, frame))
                elif events.watched():
                    with events.span(self.program.lines()[stmt], "statement"):
                        step(frame)
                else:
                    step(frame)
            except HostError:
                raise
            except Exception as error:
                raise self._fault(stmt, error) from error

    def _fault(self, stmt: Statement, error: Exception) -> HostError:
        text = self.program.lines()[stmt]
        kind = "" if isinstance(error, NfuserError) else f"{type(error).__name__}: "
        message = f"{self.program.name}: `{text}` failed: {kind}{error}{line_of(stmt)}"
        return host_error(message, error)


def _allocate(frame: RunFrame, shape: tuple[int, ...], tensor: TensorView) -> Any:
    home = frame.library
    return empty(home.library, home.device, shape, c_strides(shape), tensor.dtype)
