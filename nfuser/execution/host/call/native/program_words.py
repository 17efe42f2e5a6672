# SPDX-License-Identifier: Apache-2.0
"""Host programs as words that native code performs, where it can.

Slots are numbered: the arguments of the call first, by position, then what is
allocated, in order. What native code cannot do has no words, and Python runs it.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from nfuser.compiler.dtypes import as_dtype
from nfuser.compiler.ir.scalars.open_integer import OpenInteger
from nfuser.compiler.ir.scalars.scalar import ScalarInput
from nfuser.compiler.ir.scalars.symbols import scalar_input
from nfuser.execution.device.allocate import allocation
from nfuser.execution.device.cpu.affinity import available_threads, num_threads
from nfuser.execution.device.cpu.kernel import kernel_failure
from nfuser.execution.device.cpu.threads import (
    AWAKE_CHUNK_COST,
    AWAKE_COST,
    CHUNK_COST,
    SERIAL_COST,
    chunk_size,
    cut_words,
    cuts,
    helpers_for,
    start_helpers,
)
from nfuser.execution.device.cuda.parameters import word_of
from nfuser.execution.device.describe.libraries import Library
from nfuser.execution.device.native import layout as at
from nfuser.execution.device.native.library import kernel_caller
from nfuser.execution.device.native.owned import Keeper
from nfuser.execution.device.reuse import LEAST_BYTES
from nfuser.execution.host.call import footprint
from nfuser.execution.host.call.homes import saves
from nfuser.execution.host.call.library.library_calls import blas_product, library_call
from nfuser.execution.host.call.native.limits import beyond_limits
from nfuser.execution.host.call.native.number_steps import (
    GREATEST,
    NotNativeError,
    NumberWriter,
)
from nfuser.execution.host.call.program import (
    AllocateSlot,
    Begin,
    ByValue,
    CallLibrary,
    Clear,
    FreeSlot,
    HostScalar,
    LaunchKernel,
    Repeat,
    SlotPart,
    Turn,
    slots_of,
)
from nfuser.execution.host.run.library_functions import LOOKS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.errors import NfuserError
    from nfuser.execution.device.cpu.kernel import CpuKernel
    from nfuser.execution.device.cuda.module import CudaFunction
    from nfuser.execution.device.describe.descriptor import Device
    from nfuser.execution.host.call.library.small_products import SmallProduct
    from nfuser.execution.host.call.program import Argument, CallProgram, HostStmt, Slot

RELEASE_COST = SERIAL_COST >> 2
"""Cost from which on other threads may run Python meanwhile (10 us)."""

_RANGES = {
    "i8": (-(1 << 7), (1 << 7) - 1),
    "i16": (-(1 << 15), (1 << 15) - 1),
    "i32": (-(1 << 31), (1 << 31) - 1),
    "i64": (-(1 << 63), (1 << 63) - 1),
    "u8": (0, (1 << 8) - 1),
    "u16": (0, (1 << 16) - 1),
    "u32": (0, (1 << 32) - 1),
    "u64": (0, (1 << 63) - 1),
}


class NativeProgram:
    """The words of a program, and what they need.

    ``draws`` say of streams of random numbers, by the slot of the key, where their
    words lie and how often they are drawn from.

    ``ranges`` are the integers, by position, that the kernels can take; ``objects``
    says which of the things allocated each slot is; ``steps`` work numbers out.
    Kernels of a program that ``is_alone`` run in the calling thread.
    """

    def __init__(
        self,
        program: CallProgram,
        library: Library,
        device: Device,
        positions: Mapping[Slot, int],
        numbers: Mapping[int, tuple[int, type]],
        count: int,
        steps: NumberWriter | None = None,
        draws: Mapping[int, tuple[int, int]] | None = None,
        *,
        is_alone: bool = False,
    ) -> None:
        if beyond_limits(program, positions):
            raise NotNativeError
        self.keep = Keeper()
        self._is_alone = is_alone or num_threads() == 1
        self.objects: dict[Slot, int] = {}
        self.ranges: dict[int, tuple[int, int]] = {}
        self.words: list[int] = []
        self._slots = dict(positions)
        self._numbers = numbers
        self.steps = steps or NumberWriter({})
        self._library = library
        self._device = device
        self._first = count
        self._moves: list[list[SlotPart]] = []  # of the loops around
        self._place_of: dict[SlotPart, int] = {}
        self._drawn: dict[int, int] = {}  # places of keys and draw calls, by slot
        for slot, (words, count) in (draws or {}).items():
            self._draw(slot, words, count)
        for stmt in program.body:
            self._add(stmt)
        self.words.append(at.END)

    def _add(self, stmt: HostStmt) -> None:
        match stmt:
            case AllocateSlot(slot):
                if slot not in self._slots:  # an output that the caller gave
                    self._allocate(slot)
            case Clear(slot):
                self._clear(slot)
            case FreeSlot(slot):
                if slot in self.objects:
                    self._put(at.FREE, self.objects[slot])
            case LaunchKernel():
                if 0 in stmt.grid:
                    return
                (self._cuda if self._device.is_cuda else self._cpu)(stmt)
            case CallLibrary():
                self._call(stmt)
            case Repeat():
                self._repeat(stmt)
            case Begin():
                pass  # a call that fails runs again in Python, which names it
            case _:
                raise NotNativeError  # a statement that came later than this

    def _put(self, code: int, *words: int) -> None:
        self.words += [code, 8 * (2 + len(words)), *words]

    def _draw(self, slot: int, words: int, count: int) -> None:
        # A stream that comes near its end is Python's, which says so at the end.
        self.steps.require(self.steps.outside(words + 8), 0, GREATEST)
        place = self.steps.room(2)
        self._drawn |= {slot: place, slot + 1: place + 1}
        self._put(at.DRAW, words, count, 8 * place)

    def _allocate(self, slot: Slot) -> None:
        number = len(self.objects)
        self.objects[slot] = number
        self._slots[slot] = place = self._first + number
        size = slot.dtype.itemsize * prod(slot.shape)
        if self._library is Library.NUMPY and size < LEAST_BYTES:
            dtype = slot.dtype.numpy
            strides = [s * dtype.itemsize for s in slot.strides]
            what = (number, place, self.keep.object(dtype), len(slot.shape))
            if _is_open(*slot.shape, *strides):
                dims = 8 * self.steps.row(slot.shape)
                steps = 8 * self.steps.row(strides)
                self._put(at.NEW_OPEN, *what, dims, steps)
            else:
                dims, steps = self.keep.words(slot.shape), self.keep.words(strides)
                self._put(at.NEW_NUMPY, *what, dims, steps)
            return
        _refuse_open(*slot.shape, *slot.strides)
        function, arguments = allocation(
            self._library, self._device, slot.shape, slot.strides, slot.dtype
        )
        given = self.keep.words(map(self.keep.object, arguments))
        make = self.keep.object(function)
        self._put(at.NEW, number, place, make, given, len(arguments), 0)

    def _clear(self, slot: Slot) -> None:
        size = slot.dtype.itemsize * prod(slot.shape)
        _refuse_open(size)
        function = 0
        if self._device.is_cuda:
            from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

            function = driver.function_address("cuMemsetD8Async")
        if size:
            touched = self.keep.object(footprint.of_clear(slot))
            self._put(at.CLEAR, self._slots[slot], size, function, touched)

    def _call(self, stmt: CallLibrary) -> None:
        """Let Python call the library, which knows the stream by itself."""
        for slot in slots_of(stmt):
            _refuse_open(*slot.shape, *slot.strides)
        # What the caller gives to be written might overlap an operand.
        is_ours = stmt.result in self.objects
        if is_ours and (made := blas_product(stmt, self._library, self._device)):
            self._product(made)
            return
        function = library_call(stmt, self._library, self._device)
        operands = [self._object_of(slot) for slot in slots_of(stmt)]
        before, self.words = self.words, []
        self._put(at.CALL, self.keep.object(function), len(operands), *operands)
        called, self.words = self.words, before
        if (slot := self._asking(stmt)) is None:
            self.words += called
            return
        depth = len(self._moves)
        self._put(at.REPEAT, 1, 0, self._slots[slot], depth, *[0] * 4, *called, at.END)

    def _asking(self, stmt: CallLibrary) -> Slot | None:
        """Return the integer whose first byte is 0 where a call has nothing to do."""
        first = stmt.operands[0].part if stmt.name in LOOKS and stmt.operands else None
        is_here = not self._device.is_cuda and len(self._moves) < at.MOST_DEPTH
        if not is_here or not isinstance(first, SlotPart) or first.offset:
            return None
        return first.slot if prod(first.slot.shape) == 1 else None

    def _product(self, product: SmallProduct) -> None:
        parameters: list[int] = []
        for x in product.parameters:
            is_part = isinstance(x, SlotPart)
            place = (self._slots[x.slot], x.offset) if is_part else (x, 0)
            parameters += [at.ADDRESS if is_part else at.CONSTANT, *place]
        words = (len(product.parameters), product.caller, product.address, 1, 0)
        self._put(at.RUN, *words, *[0] * 5, *parameters)

    def _repeat(self, stmt: Repeat) -> None:
        """Let native code run the body; on the CPU other threads run Python then."""
        is_cpu = not self._device.is_cuda
        if stmt.flag is not None and not is_cpu:
            raise NotNativeError
        trips, is_computed = self._trips(stmt)
        flag = -1 if stmt.flag is None else self._slots[stmt.flag]
        before, self.words = self.words, []
        self._moves.append([])
        for inner in stmt.body:
            self._add(inner)
        moves = self._moves.pop()
        body, self.words = [*self.words, at.END], before
        rows: list[int] = []
        for pair in stmt.swaps:
            if not all(slot in self.objects for slot in pair):
                raise NotNativeError
            rows += [self._slots[s] for s in pair] + [self.objects[s] for s in pair]
        for part in moves:
            base = self._slots[part.slot]
            rows += [self._place_of[part], base, part.offset, part.step]
        counts = (int(is_cpu), len(stmt.swaps), len(moves))
        saved = self._saves(stmt)
        behind = at.L_FIRST + 8 * (len(rows) + len(body)) if saved else 0
        numbers = (trips, is_computed, flag, stmt.depth, *counts, behind)
        self._put(at.REPEAT, *numbers, *rows, *body, *saved)

    def _saves(self, stmt: Repeat) -> list[int]:
        """Return the words of what is done if a turn fails."""
        if not stmt.homes:
            return []
        before, self.words = self.words, []
        for function, *slots in saves(stmt, self._library, self._device):
            _refuse_open(*(x for s in slots for x in (*s.shape, *s.strides)))
            given = [self._object_of(slot) for slot in slots]
            self._put(at.CALL, self.keep.object(function), len(given), *given)
        saved, self.words = [*self.words, at.END], before
        return saved

    def _trips(self, stmt: Repeat) -> tuple[int, int]:
        if stmt.trips is None:
            return -1, 0
        if not stmt.trips.is_dynamic:
            return int(stmt.trips.value), 0
        return self.steps.scalar(stmt.trips.scalar), 1

    def _moving(self, part: SlotPart) -> int:
        """Return the slot of what moves with the iterations of a loop around."""
        if part not in self._place_of:
            first = at.MOST_SLOTS - at.MOST_MOVES
            self._place_of[part] = first + len(self._place_of)
            self._moves[part.depth].append(part)
        return self._place_of[part]

    def _object_of(self, slot: Slot) -> int:
        """Return the number of what was allocated, or below 0 that of an argument."""
        return self.objects[slot] if slot in self.objects else -1 - self._slots[slot]

    def _cpu(self, launch: LaunchKernel) -> None:
        kernel = cast("CpuKernel", launch.executable)
        parameters = self._parameters(launch)
        count, total = len(launch.arguments), launch.grid[0]
        self.keep.hold(kernel)
        # In a loop helpers come from the kernel before, and are awake.
        alone, fetched = SERIAL_COST, CHUNK_COST
        if self._moves:
            alone, fetched = AWAKE_COST, AWAKE_CHUNK_COST
        if launch.cost <= alone or total <= 1 or self._is_alone:
            caller = kernel_caller(kernel.kinds)
            release = int(launch.cost > RELEASE_COST and not self._moves)
            code = at.RUN_OPEN if _is_open(total) else at.RUN
            given = 8 * self.steps.number(total) if _is_open(total) else total
            words = (count, caller, kernel.address, given, release)
            self._put(code, *words, *[0] * 5, *parameters)
            return
        _refuse_open(total, launch.cost)
        least = chunk_size(total, 1, launch.cost, fetched)
        chunks = cuts(total, least, available_threads())
        helpers = helpers_for(chunks)
        words = self.keep.structure(cut_words(chunks))
        grow = self.keep.object(partial(start_helpers, helpers))
        shared = (chunks.each, words, helpers, grow, chunks.lanes)
        caller = kernel_caller(kernel.kinds)
        given = (caller, kernel.address, *shared, *[0] * 2)
        self._put(at.POOL, count, *given, *parameters)

    def _cuda(self, launch: LaunchKernel) -> None:
        _refuse_open(*launch.grid, *launch.block)
        from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

        function = cast("CudaFunction", launch.executable)
        touched = self.keep.object(footprint.of_launch(launch))
        self.keep.hold(function)
        function.allow_dynamic_shared(launch.shared_bytes)
        together = launch.is_cooperative
        name = "cuLaunchCooperativeKernel" if together else "cuLaunchKernel"
        start = driver.function_address(name)
        grid, *sizes = *launch.grid, *launch.block, launch.shared_bytes
        words = (len(launch.arguments), start, function.handle, grid, int(together))
        parameters = self._parameters(launch)
        self._put(at.LAUNCH, *words, *sizes, touched, *parameters)

    # -- parameters ----------------------------------------------------------

    def _parameters(self, launch: LaunchKernel) -> list[int]:
        words: list[int] = []
        for argument, kind in zip(launch.arguments, launch.source.kinds, strict=True):
            words += self._parameter(argument, kind)
        return words

    def _parameter(self, argument: Argument, kind: str) -> tuple[int, int, int]:
        match argument:
            case SlotPart(slot, offset, 0):
                return at.ADDRESS, self._slots[slot], offset
            case SlotPart():
                return at.ADDRESS, self._moving(argument), 0
            case Turn(depth):
                return at.TURN, depth, 0
            case ByValue(slot, dtype, ""):
                return self._given(slot, dtype, kind)
            case HostScalar(ScalarInput(slot=slot), _, True, dtype):
                return self._given(slot, dtype, kind)
            case HostScalar(_, value, False, _):
                return at.CONSTANT, word_of(kind, value), 0
            case HostScalar(scalar, _, True, dtype):
                return at.COMPUTED, self._worked_out(scalar, dtype, kind), 0
            case _:
                raise NotNativeError

    def _given(self, slot: int, dtype: DType, kind: str) -> tuple[int, int, int]:
        """Pass a number of the call that the kernel can take."""
        if slot in self._drawn:
            if kind != "u64":
                raise NotNativeError
            return at.COMPUTED, self._drawn[slot], 0
        position, cls = self._numbers.get(slot, (0, object))
        if cls is float and kind in ("f32", "f64"):
            code = at.GIVEN if kind == "f64" else at.GIVEN_SINGLE
            return code, position, 0
        if issubclass(cls, np.generic):
            is_cast = dtype.is_float and as_dtype(cast("object", cls)) is not dtype
            if is_cast and issubclass(cls, np.integer):
                made = self._worked_out(scalar_input(slot), dtype, kind)
                return at.COMPUTED, made, 0
            if is_cast or kind != str(dtype):  # a half becomes a single first
                raise NotNativeError
            return at.GIVEN, position, 0
        if cls is int and dtype.is_float and kind in ("f32", "f64"):
            code = at.AS_DOUBLE if kind == "f64" else at.AS_SINGLE
            return code, position, 0
        if cls is not int or kind not in _RANGES or not dtype.is_integer:
            raise NotNativeError
        low, high = self.ranges.get(position, _RANGES["i64"])
        least, greatest = _RANGES[kind]
        self.ranges[position] = max(low, least), min(high, greatest)
        return at.GIVEN, position, 0

    def _worked_out(self, x: Scalar, dtype: DType, kind: str) -> int:
        """Return the place of an integer that the host makes of others."""
        place = self.steps.scalar(x)
        if kind == "f64" and dtype.is_float:
            return self.steps.step(at.N_TO_FLOAT, place)
        if kind not in _RANGES or not dtype.is_integer:
            raise NotNativeError
        if kind != "i64":
            self.steps.require(place, *_RANGES[kind])
        return place


def _is_open(*numbers: int) -> bool:
    return any(isinstance(n, OpenInteger) for n in numbers)


def _refuse_open(*numbers: int) -> None:
    """Leave sizes that differ from call to call to plans of their own."""
    if _is_open(*numbers):
        raise NotNativeError


def failed(device: Device, status: int) -> NfuserError:
    """Return the error for a status that a kernel or the driver returned."""
    if not device.is_cuda:
        return kernel_failure(status)
    from nfuser.execution.device.cuda import driver  # noqa: PLC0415 (loads libcuda)

    return driver.failure(status, "launching a kernel")
