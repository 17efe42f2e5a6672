# SPDX-License-Identifier: Apache-2.0
"""Run host programs: prepared once for a library and device, then called."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from nfuser.base.debug import dump, events, ranges
from nfuser.codegen.numba.compiler_lock import imported
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import HostError
from nfuser.execution.device.allocate import allocator
from nfuser.execution.device.cuda.ordering import placed
from nfuser.execution.device.cuda.streams import guard, stream_reader
from nfuser.execution.device.describe.descriptor import pointer_reader
from nfuser.execution.host.call import footprint
from nfuser.execution.host.call.frame import NOTHING, Frame
from nfuser.execution.host.call.homes import saves
from nfuser.execution.host.call.library.generators import draw_of
from nfuser.execution.host.call.library.library_calls import library_call
from nfuser.execution.host.call.program import (
    AllocateSlot,
    Begin,
    ByValue,
    CallLibrary,
    CallPython,
    Clear,
    End,
    FreeSlot,
    HostScalar,
    LaunchKernel,
    OrderStreams,
    Repeat,
    Slot,
    SlotPart,
    Turn,
    ViewSlot,
    line,
    slots_of,
)
from nfuser.execution.host.call.python_calls import python_step, view_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.device.cpu.kernel import CpuKernel
    from nfuser.execution.device.cuda.module import CudaFunction
    from nfuser.execution.device.cuda.ordering import Footprint
    from nfuser.execution.device.describe.descriptor import Device, Library
    from nfuser.execution.host.call.program import Argument, CallProgram, HostStmt
    from nfuser.execution.host.ir.statements import Statement

    Step: TypeAlias = Callable[["Frame"], None]


class Evaluator:
    """A program ready to run on one device, for arrays of one library.

    ``backend`` is cpu, cuda or interpret, ``name`` that of the function. Calls may
    overlap: all state of a call is in its frame. No step knows the evaluator: one that
    runs a piece of a long line goes when it has run.
    """

    def __init__(
        self,
        program: CallProgram,
        library: Library,
        device: Device,
        backend: str,
        *,
        name: str = "program",
        fault: Callable[[Statement, Exception], Exception] | None = None,
    ) -> None:
        ranges.follow_torch()
        self._name = name
        self.program = program
        self.device = device
        self._fault = fault
        self._pointer = pointer_reader(library)
        self._stream = stream_reader(library, device)
        self._steps: list[tuple[HostStmt, Step]] = []
        at = None
        for stmt in program.body:
            at = stmt.stmt if isinstance(stmt, Begin) else at
            try:
                step = self._step(stmt, library, backend)
            except Exception as error:
                raise self._named(at, error) from error
            self._steps.append((stmt, step))

    def __call__(
        self,
        inputs: Mapping[Slot, tuple[Any, int]],
        numbers: Mapping[int, Any],
        scalars: Mapping[Scalar, int],
        given: Mapping[Slot, Any] = NOTHING,
    ) -> tuple[list[Any], int]:
        """Run; return the outputs and the stream they are computed on.

        What is ``given`` for an output, and lies as it does, is written in its place.
        A fault keeps its class; a note says which statement it met. What was allocated
        is gone, though the traceback holds the frame.
        """
        frame = Frame(dict(inputs), numbers, scalars, given)
        self.run(frame)
        return [frame.arrays[slot][0] for slot in self.program.outputs], frame.stream

    def run(self, frame: Frame) -> None:
        """Run in ``frame``, which holds the inputs, and then the outputs."""
        stmt = None
        try:
            with events.span(self._name, "call"), guard(self.device):
                frame.stream = self._stream()
                order = frame.order
                for stmt, step in self._steps:
                    step(frame)
                    if order is not None:
                        order.note(stmt)
        except BaseException as error:
            frame.clear()
            if stmt is not None:
                error.add_note(f"in `{line(stmt)}`, which a call came to")
            is_named = isinstance(stmt, CallPython) and isinstance(error, HostError)
            if frame.at is None or is_named or not isinstance(error, Exception):
                raise
            raise self._named(frame.at, error) from error

    def _named(self, at: Statement | None, error: Exception) -> Exception:
        """Return an error that names the statement of the host program, if any."""
        return error if at is None or self._fault is None else self._fault(at, error)

    def _step(self, stmt: HostStmt, library: Library, backend: str) -> Step:
        match stmt:
            case AllocateSlot(slot):
                make = allocator(
                    library, self.device, slot.shape, slot.strides, slot.dtype
                )
                pointer = self._pointer
                return lambda frame: _allocate(frame, slot, make, pointer)
            case Clear(slot):
                touched, on_cuda = footprint.of_clear(slot), self.device.kind == "cuda"
                return lambda frame: _clear(frame, slot, touched, on_cuda)
            case FreeSlot(slot):
                return lambda frame: frame.drop(slot)
            case LaunchKernel():
                run = _LAUNCHERS[backend](stmt).run
                return _shown(stmt, f"{self._name}:{stmt.source.entry}", run)
            case CallLibrary():
                run = _called(stmt, library, self.device)
                return _shown(stmt, f"{self._name}:{stmt.name}", run)
            case Repeat():
                steps = [self._step(s, library, backend) for s in stmt.body]
                run = _repeated(stmt, steps, self.device)
                return _saving(run, saves(stmt, library, self.device))
            case ViewSlot():
                return view_step(stmt, library, self.device)
            case CallPython():
                return python_step(stmt, library, self.device)
            case OrderStreams():
                current = self._stream
                return lambda frame: _order(frame, stmt, current)
            case Begin(begun):
                return lambda frame: _begin(frame, begun)
            case End(ended):
                return lambda frame: _end(frame, ended)


def _order(frame: Frame, stmt: OrderStreams, current: Callable[[], int]) -> None:
    assert frame.order is not None
    frame.order.follow(stmt)
    frame.stream = current()


def _allocate(
    frame: Frame, slot: Slot, make: Callable[[], Any], pointer: Callable[[Any], int]
) -> None:
    array = frame.given[slot] if slot in frame.given else make()
    frame.arrays[slot] = (array, pointer(array))


def _clear(frame: Frame, slot: Slot, touched: Footprint, on_cuda: bool) -> None:
    size = slot.dtype.itemsize * int(np.prod(slot.shape))
    address = frame.arrays[slot][1]
    if on_cuda:
        from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

        with placed(frame.stream, touched, (address,)):
            driver.memset(address, 0, size, frame.stream)
    else:
        frame.arrays[slot][0][...] = 0
        frame.written.add(slot)


def _begin(frame: Frame, stmt: Statement) -> None:
    frame.at = stmt
    if frame.notes is not None:
        frame.notes.begin(stmt)


def _end(frame: Frame, stmt: Statement) -> None:
    if frame.notes is not None:
        frame.notes.end(stmt)


def _shown(stmt: LaunchKernel | CallLibrary, name: str, run: Step) -> Step:
    """Return ``run``, which tells and prints what it runs where that is asked for."""
    prints = dump.wants("launch")

    def shown(frame: Frame) -> None:
        if prints:
            dump.dump("launch", repr(stmt))
        if not events.watched():
            run(frame)
            return
        with events.span(name, "launch"):
            run(frame)

    return shown


def _called(stmt: CallLibrary, library: Library, device: Device) -> Step:
    call = library_call(stmt, library, device)
    slots = slots_of(stmt)
    called = stmt.function
    written = [stmt.result] if called is None else [p.slot for p in called.parts]
    draw = draw_of(called)

    def run(frame: Frame) -> None:
        first = () if draw is None else (frame.numbers[draw.slot],)
        call(*first, *(frame.arrays[slot][0] for slot in slots))
        frame.written.update(written)

    return run


def _repeated(stmt: Repeat, steps: Sequence[Step], device: Device) -> Step:
    flag, depth = stmt.flag, stmt.depth

    def run(frame: Frame) -> None:
        trips = None if stmt.trips is None else _values([stmt.trips], frame)[0]
        turn = 0
        while turn != trips and (flag is None or _is_set(frame, flag, device)):
            frame.turns[depth] = turn
            for step in steps:
                step(frame)
            for first, second in stmt.swaps:
                frame.swap(first, second)
            turn += 1

    return run


def _saving(
    run: Step, listed: Sequence[tuple[Callable[[Any, Any], None], Slot, Slot]]
) -> Step:
    """Return a loop that leaves arrays where they belong if a turn fails."""
    if not listed:
        return run

    def saving(frame: Frame) -> None:
        try:
            run(frame)
        except BaseException:
            for save, own, home in listed:
                save(frame.arrays[own][0], frame.arrays[home][0])
            raise

    return saving


def _is_set(frame: Frame, flag: Slot, device: Device) -> bool:
    address = frame.arrays[flag][1]
    if device.kind == "cuda":
        from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

        return bool(driver.read_byte(address, frame.stream))
    return bool(ctypes.c_uint8.from_address(address).value)


def _values(arguments: Sequence[Argument], frame: Frame) -> list[Any]:
    found: list[Any] = []
    for argument in arguments:
        match argument:
            case SlotPart(slot, offset, step, depth):
                moved = step and step * frame.turns[depth]
                found.append(frame.arrays[slot][1] + offset + moved)
            case Turn(depth):
                found.append(frame.turns[depth])
            case ByValue(slot, dtype, part):
                number = frame.numbers[slot]
                number = getattr(number, part) if part else number
                found.append(float(number) if dtype.is_float else int(number))
            case HostScalar(scalar, value, is_dynamic, dtype):
                if is_dynamic:
                    value = scalar_walk.evaluate(scalar, frame.scalars)
                    if dtype.is_float:
                        value = float(value)
                    else:
                        check_fits(value, dtype, "a number passed to a fused function")
                found.append(value)
    return found


def _reader(arguments: Sequence[Argument]) -> Callable[[Frame], list[Any]]:
    """Return a function that does what ``_values`` does, for a call after another.

    Mostly nothing but addresses is new.
    """
    fixed: list[Any] = []
    addresses: list[tuple[int, Slot, int]] = []
    for number, argument in enumerate(arguments):
        match argument:
            case SlotPart(slot, offset, 0):
                addresses.append((number, slot, offset))
                fixed.append(0)
            case HostScalar(_, value, is_dynamic) if not is_dynamic:
                fixed.append(value)
            case _:
                return lambda frame: _values(arguments, frame)

    def values(frame: Frame) -> list[Any]:
        found, arrays = fixed.copy(), frame.arrays
        for number, slot, offset in addresses:
            found[number] = arrays[slot][1] + offset
        return found

    return values


class _CpuLaunch:
    def __init__(self, launch: LaunchKernel) -> None:
        imported("nfuser.execution.device.cpu.threads")
        from nfuser.execution.device.cpu.threads import run_range  # noqa: PLC0415 (its own pool)

        self.launch = launch
        self._kernel = cast("CpuKernel", launch.executable)
        self._run_range = run_range
        self._values = _reader(launch.arguments)

    def run(self, frame: Frame) -> None:
        launch, arguments = self.launch, self._values(frame)
        self._run_range(self._kernel, arguments, launch.grid[0], 1, launch.cost)


class _CudaLaunch:
    def __init__(self, launch: LaunchKernel) -> None:
        imported("nfuser.execution.device.cuda.launch")
        from nfuser.execution.device.cuda.launch import PackedLaunch  # noqa: PLC0415 (libcuda)

        self.arguments = launch.arguments
        self._touched = footprint.of_launch(launch)
        self._launch = PackedLaunch(
            cast("CudaFunction", launch.executable),
            launch.source.kinds,
            (*launch.grid, 1),
            (*launch.block, 1),
            launch.shared_bytes,
            cooperative=launch.is_cooperative,
        )

    def run(self, frame: Frame) -> None:
        values = _values(self.arguments, frame)
        with placed(frame.stream, self._touched, values):
            self._launch(frame.stream, *values)


class _InterpretedLaunch:
    def __init__(self, launch: LaunchKernel) -> None:
        self.launch = launch
        pairs = zip(launch.source.form.buffers, launch.arguments, strict=False)
        slots = [
            (buffer.role, a.slot) for buffer, a in pairs if isinstance(a, SlotPart)
        ]
        read = {slot for role, slot in slots if role == "in"}
        self._in_place = {slot for role, slot in slots if role != "in"} & read

    def run(self, frame: Frame) -> None:
        imported("nfuser.execution.interpret.run")
        from nfuser.execution.interpret.run import run  # noqa: PLC0415 (a tool)

        launch = self.launch
        values = _values(launch.arguments, frame)
        given = [
            _buffer(a, frame, a.slot in self._in_place)
            if isinstance(a, SlotPart)
            else value
            for a, value in zip(launch.arguments, values, strict=True)
        ]
        report = run(
            launch.source.text,
            launch.source.entry,
            (*launch.grid, 1),
            (*launch.block, 1),
            given,
            shared_bytes=launch.shared_bytes,
        )
        REPORTS.append(report)
        del REPORTS[:-MOST_REPORTS]
        parts = (a for a in launch.arguments if isinstance(a, SlotPart))
        frame.written.update(part.slot for part in parts)


MOST_REPORTS = 4096
REPORTS: list[Any] = []  # what the interpreter found, newest last; tests clear it


def _buffer(part: SlotPart, frame: Frame, in_place: bool) -> Any:
    """Return the memory that a slot's elements span, as the interpreter wants it."""
    from nfuser.execution.interpret.buffer import PointerArgument  # noqa: PLC0415 (a tool)

    slot = part.slot
    dtype = slot.dtype.real
    scale = slot.dtype.itemsize // dtype.itemsize
    moved = part.step and part.step * frame.turns[part.depth]
    reach = [(n - 1) * s for n, s in zip(slot.shape, slot.strides, strict=True)]
    low = sum(r for r in reach if r < 0)
    base = frame.arrays[slot][1] + low * slot.dtype.itemsize
    if slot not in frame.storage:
        high = sum(r for r in reach if r > 0)
        count = 0 if 0 in slot.shape else high - low + 1
        raw: Any = (ctypes.c_uint8 * (count * slot.dtype.itemsize)).from_address(base)
        stored = np.uint8 if dtype.is_bool else np.uint16 if dtype.is_half else None
        frame.storage[slot] = np.frombuffer(raw, stored or dtype.numpy)
    return PointerArgument(
        frame.storage[slot],
        -low * scale + (part.offset + moved) // dtype.itemsize,
        base,
        initialized=slot in frame.written,
        in_place=in_place,
    )


_LAUNCHERS: dict[str, Any] = {
    "cpu": _CpuLaunch,
    "cuda": _CudaLaunch,
    "interpret": _InterpretedLaunch,
}
