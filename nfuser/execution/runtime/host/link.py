# SPDX-License-Identifier: Apache-2.0
"""A host program, for inputs of one exact form, as one program of kernels.

What an evaluator decides at each statement is decided once here: which kernels run,
where each array lies, which numbers they are given. All its integers are known, so
loops and conditions become a straight line. A program does not link that writes into an
input, or exchanges data with other ranks.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import nfuser.execution.host.call.program as flat
import nfuser.execution.host.ir.rules as rules
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.dtypes import check_fits
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.tensor import tensor as new_tensor
from nfuser.execution.device.describe.libraries import Descriptor, Library, c_strides
from nfuser.execution.host.call.reuse_slots import reuse_slots
from nfuser.execution.host.ir.forms import forms_of
from nfuser.execution.runtime.host.exact_operations import as_launch
from nfuser.execution.runtime.host.inserted import Inserted, Location, NotLinkedError
from nfuser.execution.runtime.planning.build_program import with_frees

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.dtypes import DType
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan


MOST_STATEMENTS = 512
"""How long the straight line may be that loops become."""


_ByLibrary: TypeAlias = st.UnaryOp | st.BinaryOp | st.ReductionOp | st.MatmulOp


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
            case st.Set() | st.UnaryOp() | st.BinaryOp():
                self._operate(number, stmt)
            case st.ReductionOp() | st.MatmulOp():
                self._call(number, stmt)
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
        skipped, view = 0, flat.ViewOf("permute", ())
        match stmt:
            case st.PermuteOp(_, order):
                view = flat.ViewOf("permute", order)
                shape = [shape[k] for k in order]
                strides = [strides[k] for k in order]
            case st.SliceOp(_, starts, stops, steps):
                first, last = self._numbers(starts), self._numbers(stops)
                bounds = zip(first, last, shape, steps, strict=True)
                if not all(0 <= a <= b <= n and c > 0 for a, b, n, c in bounds):
                    raise NotLinkedError
                skipped = sum(a * s for a, s in zip(first, strides, strict=True))
                spans = [*zip(first, last, steps, strict=True)]
                view = flat.ViewOf("slice", tuple(n for span in spans for n in span))
                shape = [len(range(a, b, c)) for a, b, c in spans]
                strides = [s * c for s, c in zip(strides, steps, strict=True)]
            case _:
                (at,) = self._numbers([stmt.index])
                view = flat.ViewOf("select", (stmt.axis, at))
                if not 0 <= at < shape.pop(stmt.axis):
                    raise NotLinkedError
                skipped = at * strides.pop(stmt.axis)
        offset = source.offset + skipped * source.slot.dtype.itemsize
        views = (*source.views, view)
        return Location(source.slot, tuple(shape), tuple(strides), offset, views)

    def _reshaped(self, source: TensorView, result: TensorView) -> Location:
        """Return the same memory, where C order says it all."""
        found, shape = self._found(source), self._shape(result)
        if not found.is_dense or prod(shape) != prod(found.shape):
            raise NotLinkedError
        views = (*found.views, flat.ViewOf("reshape", shape))
        return Location(found.slot, shape, c_strides(shape), found.offset, views)

    # -- what computes -------------------------------------------------------

    def _launch(self, number: int, stmt: st.Launch) -> None:
        if not isinstance(stmt.function, Fusion):
            raise NotLinkedError
        read = [self._operand(x) for x in stmt.operands]
        given = [self._described(x) if isinstance(x, Location) else x for x in read]
        used = {x.slot for x in read if isinstance(x, Location)}
        renewed = [t for t in stmt.results if self._may_move(t, used)]
        before = {t: self.locations.pop(t) for t in renewed}
        ready = {
            k: self.locations[t]
            for k, t in enumerate(stmt.results)
            if t in self.locations
        }
        late = [t for t in stmt.results if self._is_among(t, used)]
        if late:  # a kernel might read what it has overwritten
            self.locations |= before
            self._write_late(number, stmt, late)
            return
        written = [x.slot for x in ready.values()]
        if len({*used, *self.skew, *written}) < len({*used, *self.skew}) + len(written):
            raise NotLinkedError
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
        inserted = Inserted(plan, numbers, places, number)
        self.body += inserted.run()
        for tensor, slot in zip(stmt.results, outputs, strict=True):
            if tensor not in self.locations:
                self._name(tensor, inserted.location(slot))
        if any(self.locations[t].strides != x.strides for t, x in before.items()):
            raise NotLinkedError

    def _is_among(self, tensor: TensorView, read: AbstractSet[flat.Slot]) -> bool:
        """Tell whether a tensor lies in memory that is ``read``, and is not given."""
        found = self.locations.get(tensor)
        return found is not None and found.slot in read - self.skew.keys()

    def _write_late(
        self, number: int, stmt: st.Launch | _ByLibrary, late: Sequence[TensorView]
    ) -> None:
        """Compute some results beside the memory that they have; then copy them."""
        beside = {t: new_tensor(t.shape, t.dtype) for t in late}
        if isinstance(stmt, st.Launch):
            results = tuple(beside.get(t, t) for t in stmt.results)
            self._add(number, replace(stmt, results=results))
        else:
            self._add(number, replace(stmt, result=beside[stmt.result]))
        self._block([st.Set(own, t, stmt.line) for t, own in beside.items()])

    def _may_move(self, tensor: TensorView, read: AbstractSet[flat.Slot]) -> bool:
        """Tell whether a result that lies in what is ``read`` may lie elsewhere.

        It may where nothing else lies in its memory, which the caller has not given.
        """
        if not self._is_among(tensor, read):
            return False
        found = self.locations[tensor]
        others = (x.slot for t, x in self.locations.items() if t is not tensor)
        return found.is_whole and found.slot not in others

    def _operate(self, number: int, stmt: st.Set | st.UnaryOp | st.BinaryOp) -> None:
        """Let a kernel do what the library does with the same bits, in C order."""
        launch = as_launch(stmt)
        if not isinstance(stmt, st.Set) and (launch is None or self._is_long(launch)):
            self._call(number, stmt)
            return
        if launch is None:
            raise NotLinkedError
        self._refuse_other_orders(stmt)
        self._launch(number, launch)

    def _is_long(self, launch: st.Launch) -> bool:
        """Tell whether an integer is rounded twice by libraries: to 64 bits first."""
        numbers = [x for x in launch.operands if not isinstance(x, TensorView)]
        return any(abs(self._operand(x)) > 1 << 53 for x in numbers)

    def _refuse_other_orders(self, stmt: st.Compute) -> None:
        """Leave to libraries how they lay out what they make of other orders."""
        has_orders = stmt.result not in self.locations and stmt.result.ndim > 1
        if has_orders and not all(self._found(t).is_dense for t in st.reads(stmt)):
            raise NotLinkedError

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

    def _call(self, number: int, stmt: _ByLibrary) -> None:
        """Let the library write what it computes into new memory, or where it is to."""
        operands, types = _operands(stmt)
        pairs = zip(operands, types, strict=False)
        read = [self._library_operand(x, dtype) for x, dtype in pairs]
        slots = {x.part.slot for x in read if isinstance(x.part, flat.SlotPart)}
        target = self.locations.get(stmt.result)
        is_part = target is not None and not target.is_whole
        if is_part or self._is_among(stmt.result, slots):
            self._write_late(number, stmt, [stmt.result])
            return
        operation = None
        if not isinstance(stmt, st.MatmulOp) or stmt.result.ndim > 2:
            self._refuse_other_orders(stmt)
        if isinstance(stmt, st.ReductionOp):
            operation = flat.LibraryOperation((), stmt.axes)
        elif not isinstance(stmt, st.MatmulOp):
            operation = flat.LibraryOperation(types, ())
        if target is None:
            target = self._made(stmt.result, f"t{number}")
        if target.slot in self.skew or target.shape != self._given_shape(stmt):
            raise NotLinkedError
        if 0 not in target.shape:
            name = "matmul" if isinstance(stmt, st.MatmulOp) else stmt.name
            call = flat.CallLibrary(name, tuple(read), target.slot, stmt.line)
            self.body.append(replace(call, operation=operation))

    def _library_operand(self, x: st.Operand, dtype: DType) -> flat.Operand:
        own = x.dtype if isinstance(x, TensorView) else dtype
        if own.is_complex:  # which a program has in two parts
            raise NotLinkedError
        if isinstance(x, TensorView):
            found = self._found(x)
            return flat.Operand(flat.SlotPart(found.slot), found.views)
        number = self._operand(x)
        if dtype.is_half and self.place.library is Library.TORCH:
            raise NotLinkedError  # torch computes with all digits of the number
        if dtype.is_integer:
            check_fits(number, dtype, "a number of the program")
        return flat.Operand(flat.ProgramNumber(number, dtype))

    def _given_shape(self, stmt: _ByLibrary) -> tuple[int, ...]:
        """Return the shape of what the library computes."""
        shapes = [self._found(t).shape for t in st.reads(stmt)]
        match stmt:
            case st.MatmulOp():
                lhs, rhs = shapes
                if lhs[-1] != rhs[-min(len(rhs), 2)]:
                    raise NotLinkedError
                ((shape, _),) = forms_of(stmt)
                return tuple(self._numbers(shape))
            case st.ReductionOp(axes=axes):
                if 0 in shapes[0]:  # of nothing there is no largest
                    raise NotLinkedError
                return tuple(n for k, n in enumerate(shapes[0]) if k not in axes)
            case _:
                try:
                    return np.broadcast_shapes(*shapes)
                except ValueError as error:
                    raise NotLinkedError from error


def _operands(stmt: _ByLibrary) -> tuple[tuple[st.Operand, ...], tuple[DType, ...]]:
    """Return what the library reads, and the dtypes in which NumPy computes."""
    match stmt:
        case st.UnaryOp(name, source):
            return (source,), rules.loop_types(name, (source,))
        case st.BinaryOp(name, lhs, rhs):
            return (lhs, rhs), rules.loop_types(name, (lhs, rhs))
        case _:
            read = st.reads(stmt)
            return read, tuple(x.dtype for x in read)
