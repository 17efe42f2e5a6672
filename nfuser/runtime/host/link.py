# SPDX-License-Identifier: Apache-2.0
"""A host program, for inputs of one exact form, as one program of kernels.

What an evaluator decides at each statement is decided once here: which kernels run,
where each array lies, which numbers they are given. A program links if it consists of
launched fusions, products, views and allocations, and writes into no input. All its
integers are known, so loops and conditions become a straight line.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import nfuser.host.call.program as flat
import nfuser.host.ir.statements as st
import nfuser.ir.scalar_symbols as scalar_symbols
from nfuser.device.describe.libraries import Descriptor, c_strides
from nfuser.dtypes import check_fits
from nfuser.host.call.reuse_slots import reuse_slots
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.fusion import Fusion
from nfuser.ir.tensor import TensorView
from nfuser.runtime.build_program import with_frees

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from nfuser.host.ir.host_ir import HostProgram
    from nfuser.ir.scalar import Scalar
    from nfuser.runtime.executor_cache import FusionExecutorCache
    from nfuser.runtime.place import Place
    from nfuser.runtime.plan import Plan


MOST_STATEMENTS = 512
"""How long the straight line may be that loops become."""


class NotLinkedError(Exception):
    """The program does more than kernels do; an evaluator runs it."""


@node
class Location:
    """Where a tensor lies: in the memory of ``slot``, ``offset`` bytes on."""

    slot: flat.Slot
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    offset: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is what the slot is."""
        own = self.slot.shape, self.slot.strides, 0
        return (self.shape, self.strides, self.offset) == own


def link(
    program: HostProgram,
    place: Place,
    inputs: Mapping[TensorView, Descriptor],
    values: Mapping[Scalar, int],
    cache_of: Callable[[Fusion], FusionExecutorCache],
) -> flat.CallProgram:
    """Return ``program`` for inputs like these; its inputs are in their order.

    ``values`` are sizes and integers of the call.
    """
    if program.aliases:
        raise NotLinkedError
    return _Linker(program, place, inputs, values, cache_of).run()


class _Linker:
    def __init__(
        self,
        program: HostProgram,
        place: Place,
        inputs: Mapping[TensorView, Descriptor],
        values: Mapping[Scalar, int],
        cache_of: Callable[[Fusion], FusionExecutorCache],
    ) -> None:
        self.program = program
        self.place = place
        self.values = dict(values)
        self.cache_of = cache_of
        self.count = 0  # of statements met
        self.plans: dict[Hashable, tuple[Plan, dict[int, Any]]] = {}
        self.body: list[flat.HostStmt] = []
        self.locations: dict[TensorView, Location] = {}
        self.skew: dict[flat.Slot, int] = {}  # of inputs: address modulo 16
        for number, (tensor, d) in enumerate(inputs.items()):
            slot = flat.Slot(f"in{number}", d.shape, d.strides, d.dtype)
            self.skew[slot] = d.pointer & 15
            self.locations[tensor] = Location(slot, d.shape, d.strides)

    def run(self) -> flat.CallProgram:
        inputs = tuple(self.skew)
        self._block(self.program.body)
        outputs: list[flat.Slot] = []
        for tensor in self.program.outputs:
            found = self._found(tensor)
            if not found.is_whole:
                raise NotLinkedError
            outputs.append(found.slot)
        body = with_frees(self.body, (*inputs, *outputs))
        return reuse_slots(flat.CallProgram(inputs, tuple(outputs), tuple(body)))

    def _block(self, body: Sequence[st.Statement]) -> None:
        for stmt in body:
            self.count += 1
            if self.count > MOST_STATEMENTS:
                raise NotLinkedError
            self._add(self.count - 1, stmt)

    def _add(self, number: int, stmt: st.Statement) -> None:
        match stmt:
            case st.Allocate(result):
                self._made(result, f"t{number}")
            case st.Free():
                pass  # memory is held as long as it is used, and no longer
            case st.Launch():
                self._launch(number, stmt)
            case st.MatmulOp():
                self._multiply(number, stmt)
            case st.SelectOp() | st.AliasSelect() | st.SliceOp() | st.PermuteOp():
                self._name(stmt.result, self._view(stmt))
            case st.ReshapeOp(source, result):
                self._name(result, self._reshaped(source, result))
            case st.IfThenElse(condition, body, orelse):
                self._block(body if self._numbers([condition])[0] else orelse)
            case st.ForLoop():
                self._loop(stmt)
            case (
                st.GetStream()
                | st.SetStream()
                | st.Synchronize()
                | st.RecordEvent()
                | st.Wait()
            ) if not self.place.device.is_cuda:
                pass  # what a CPU was given before is done
            case _:
                raise NotLinkedError

    def _loop(self, loop: st.ForLoop) -> None:
        """Write the body again and again; what an iteration defines ends with it."""
        start, stop = self._numbers([loop.start, loop.stop])
        inside = [t for s in st.walk(loop.body) for t in st.writes(s)]
        own = [t for t in dict.fromkeys(inside) if t not in self.locations]
        for index in range(start, stop, loop.step):
            self.values[loop.index] = index
            self._block(loop.body)
            for tensor in own:
                self.locations.pop(tensor, None)

    # -- where tensors lie ---------------------------------------------------

    def _found(self, tensor: TensorView) -> Location:
        if tensor not in self.locations:
            raise NotLinkedError
        return self.locations[tensor]

    def _name(self, tensor: TensorView, location: Location) -> None:
        """Let ``tensor`` lie there, unless it has memory of its own."""
        if tensor in self.locations or location.shape != self._shape(tensor):
            raise NotLinkedError
        self.locations[tensor] = location

    def _made(self, tensor: TensorView, name: str) -> Location:
        shape = self._shape(tensor)
        slot = flat.Slot(name, shape, c_strides(shape), tensor.dtype)
        self.body.append(flat.AllocateSlot(slot))
        self._name(tensor, Location(slot, shape, slot.strides))
        return self.locations[tensor]

    def _shape(self, tensor: TensorView) -> tuple[int, ...]:
        return tuple(self._numbers(tensor.shape))

    def _numbers(self, scalars: Sequence[Scalar]) -> list[int]:
        return scalar_walk.evaluate_all(scalars, self.values)

    def _described(self, location: Location) -> Descriptor:
        slot, place = location.slot, self.place
        pointer = (self.skew.get(slot, 0) + location.offset) & 15
        return Descriptor(
            place.library,
            place.device,
            slot.dtype,
            location.shape,
            location.strides,
            pointer,
            writable=True,
        )

    # -- views ---------------------------------------------------------------

    def _view(
        self, stmt: st.SelectOp | st.AliasSelect | st.SliceOp | st.PermuteOp
    ) -> Location:
        source = self._found(stmt.source)
        shape, strides = list(source.shape), list(source.strides)
        skipped = 0
        match stmt:
            case st.PermuteOp(_, order):
                shape = [shape[k] for k in order]
                strides = [strides[k] for k in order]
            case st.SliceOp(_, starts, stops, steps):
                first, last = self._numbers(starts), self._numbers(stops)
                bounds = zip(first, last, shape, steps, strict=True)
                if not all(0 <= a <= b <= n and c > 0 for a, b, n, c in bounds):
                    raise NotLinkedError
                skipped = sum(a * s for a, s in zip(first, strides, strict=True))
                spans = zip(first, last, steps, strict=True)
                shape = [len(range(a, b, c)) for a, b, c in spans]
                strides = [s * c for s, c in zip(strides, steps, strict=True)]
            case _:
                (at,) = self._numbers([stmt.index])
                if not 0 <= at < shape.pop(stmt.axis):
                    raise NotLinkedError
                skipped = at * strides.pop(stmt.axis)
        offset = source.offset + skipped * source.slot.dtype.itemsize
        return Location(source.slot, tuple(shape), tuple(strides), offset)

    def _reshaped(self, source: TensorView, result: TensorView) -> Location:
        """Return the same memory, where C order says it all."""
        found, shape = self._found(source), self._shape(result)
        pairs = zip(found.shape, found.strides, c_strides(found.shape), strict=True)
        is_dense = all(n == 1 or a == b for n, a, b in pairs)
        if not is_dense or prod(shape) != prod(found.shape):
            raise NotLinkedError
        return Location(found.slot, shape, c_strides(shape), found.offset)

    # -- what computes -------------------------------------------------------

    def _launch(self, number: int, stmt: st.Launch) -> None:
        if not isinstance(stmt.function, Fusion):
            raise NotLinkedError
        read = [self._operand(x) for x in stmt.operands]
        given = [self._described(x) if isinstance(x, Location) else x for x in read]
        ready = {
            k: self.locations[t]
            for k, t in enumerate(stmt.results)
            if t in self.locations
        }
        used = [*(x.slot for x in read if isinstance(x, Location)), *self.skew]
        written = [x.slot for x in ready.values()]
        if len({*used, *written}) < len({*used}) + len(written):
            raise NotLinkedError  # a kernel might read what it has overwritten
        outs = {k: self._described(x) for k, x in ready.items()}
        plan, numbers = self._plan(stmt.function, given, outs)
        outputs = plan.program.outputs
        for tensor, slot in zip(stmt.results, outputs, strict=True):
            if (slot.shape, slot.dtype) != (self._shape(tensor), tensor.dtype):
                raise NotLinkedError
        places = {
            plan.inputs[k]: x for k, x in enumerate(read) if isinstance(x, Location)
        }
        places |= {outputs[k]: x for k, x in ready.items()}
        inserted = _Inserted(plan, numbers, places, number)
        self.body += inserted.run()
        for tensor, slot in zip(stmt.results, outputs, strict=True):
            if tensor not in self.locations:
                self._name(tensor, inserted.location(slot))

    def _plan(
        self, function: Fusion, given: Sequence[Any], outs: Mapping[int, Descriptor]
    ) -> tuple[Plan, dict[int, Any]]:
        """Return what iterations have in common that launch the same in one form."""
        # Numbers by their text: -0.0, 0.0, 0 and False are equal.
        forms = (x if isinstance(x, Descriptor) else repr(x) for x in given)
        key = function, (*forms,), (*outs.items(),)
        if key not in self.plans:
            found = self.cache_of(function).plan_like(self.place, given, outs)
            self.plans[key] = found
        return self.plans[key]

    def _operand(self, x: st.Operand) -> Any:
        if isinstance(x, TensorView):
            return self._found(x)
        if isinstance(x, bool | int | float | complex):
            return x
        return self._numbers([x])[0]

    def _multiply(self, number: int, stmt: st.MatmulOp) -> None:
        read = [self._found(t) for t in (stmt.lhs, stmt.rhs)]
        if stmt.result in self.locations or not all(x.is_whole for x in read):
            raise NotLinkedError
        made = self._made(stmt.result, f"t{number}").slot
        operands = tuple(flat.Operand(flat.SlotPart(x.slot)) for x in read)
        if 0 not in made.shape:
            self.body.append(flat.CallLibrary("matmul", operands, made, stmt.line))


class _Inserted:
    """The program of one launch, with arrays and numbers of the whole in place."""

    def __init__(
        self,
        plan: Plan,
        numbers: Mapping[int, Any],
        places: dict[flat.Slot, Location],
        number: int,
    ) -> None:
        self.plan = plan
        self.numbers = numbers
        self.places = places
        self.number = number
        self.symbols: dict[Scalar, int] = {
            scalar_symbols.scalar_input(slot): n
            for slot, n in numbers.items()
            if type(n) is int
        }

    def run(self) -> list[flat.HostStmt]:
        """Return the statements; when memory is freed is decided for the whole."""
        found: list[flat.HostStmt] = []
        for stmt in self.plan.program.body:
            match stmt:
                case flat.FreeSlot():
                    pass
                case flat.LaunchKernel(arguments=arguments):
                    own = tuple(self._argument(a) for a in arguments)
                    found.append(replace(stmt, arguments=own))
                case flat.CallLibrary(_, operands, result):
                    target = self.location(result)
                    if not target.is_whole:
                        raise NotLinkedError
                    own = tuple(map(self._operand, operands))
                    found.append(replace(stmt, operands=own, result=target.slot))
                case flat.Repeat():
                    raise NotLinkedError
                case _:
                    found.append(replace(stmt, slot=self.location(stmt.slot).slot))
        return found

    def location(self, slot: flat.Slot) -> Location:
        """Return where a slot of the launch lies; new ones get names of their own."""
        if slot not in self.places:
            own = replace(slot, name=f"{slot.name}_{self.number}")
            self.places[slot] = Location(own, own.shape, own.strides)
        return self.places[slot]

    def _operand(self, operand: flat.Operand) -> flat.Operand:
        if isinstance(operand.part, flat.ProgramNumber):
            return operand
        if not self.location(operand.part.slot).is_whole:
            raise NotLinkedError
        return replace(operand, part=self._part(operand.part))

    def _part(self, part: flat.SlotPart) -> flat.SlotPart:
        location = self.location(part.slot)
        return flat.SlotPart(location.slot, location.offset + part.offset)

    def _argument(self, argument: flat.Argument) -> flat.Argument:
        match argument:
            case flat.SlotPart():
                return self._part(argument)
            case flat.ByValue(slot, dtype, part):
                number = self.numbers[slot]
                number = getattr(number, part) if part else number
                value = float(number) if dtype.is_float else int(number)
                return flat.HostScalar(sc.const(0), value, False, dtype)
            case flat.HostScalar(scalar, _, True, dtype):
                value = scalar_walk.evaluate(scalar, self.symbols)
                if not dtype.is_float:
                    check_fits(value, dtype, "a number passed to a launch")
                return replace(argument, value=value, is_dynamic=False)
            case _:
                return argument
