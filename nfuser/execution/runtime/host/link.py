# SPDX-License-Identifier: Apache-2.0
"""A host program, for inputs of one exact form, as one program of numbers.

All that its statements leave open is decided once here: which kernels run, where each
array lies, which numbers they are given. All its integers are known, so loops and
conditions become a straight line. One that is too long is linked, and run, in pieces.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import nfuser.execution.host.call.program as flat
import nfuser.execution.host.ir.statements as st
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.tensor import tensor as new_tensor
from nfuser.errors import HostError
from nfuser.execution.device.allocate import ALIGNMENT
from nfuser.execution.device.describe.libraries import Descriptor, Library
from nfuser.execution.host.call.reuse_slots import reuse_slots
from nfuser.execution.host.mesh.communicator import exchange
from nfuser.execution.runtime.host.exact_operations import as_launch
from nfuser.execution.runtime.host.inserted import Inserted, NotLinkedError
from nfuser.execution.runtime.host.library_statements import (
    given_shape,
    operands_of,
    operation_of,
)
from nfuser.execution.runtime.host.locations import Location
from nfuser.execution.runtime.host.places import Places, check_shape
from nfuser.execution.runtime.host.turns import (
    LONG,
    NotRepeatedError,
    TurnWritten,
    is_computed_with,
    is_linear,
    repeated,
    turn_of,
)
from nfuser.execution.runtime.planning.build_program import with_frees

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.execution.host.ir.host_ir import HostProgram
    from nfuser.execution.runtime.host.places import Linking
    from nfuser.execution.runtime.planning.plan import Plan

MOST_STATEMENTS = 512
"""How long a line may be that is run in one piece, and kept."""


class TooLongError(Exception):
    """The line is too long for one piece."""


def link(
    program: HostProgram,
    linking: Linking,
    arrays: Mapping[TensorView, Descriptor],
    values: Mapping[Scalar, int],
    run: Callable[[flat.CallProgram], None] | None = None,
) -> flat.CallProgram:
    """Return ``program`` for arrays like these, which are its inputs in their order.

    Behind the inputs come outputs that are written where they lie. ``values`` are sizes
    and integers of the call. Pieces of a long line are run by ``run``; what is returned
    is the last one.
    """
    return _Linker(program, linking, arrays, values, run).run()


class _Linker(Places):
    def __init__(
        self,
        program: HostProgram,
        linking: Linking,
        arrays: Mapping[TensorView, Descriptor],
        values: Mapping[Scalar, int],
        run: Callable[[flat.CallProgram], None] | None,
    ) -> None:
        super().__init__(program, linking, arrays, values)
        self.program = program
        self.run_piece = run
        self.place = 0  # in the body of the program
        self.beside: dict[Hashable, tuple[Any, ...]] = {}
        self.plans: dict[Hashable, tuple[Plan, dict[int, Any]]] = {}
        self.depth = 0  # of loops around that are repeated
        self.alive = tuple(self.skew)  # the caller's, and what pieces before have left

    def run(self) -> flat.CallProgram:
        for place, stmt in enumerate(self.program.body):
            self.place = place
            self._block((stmt,))
        outputs = [self._output(t) for t in self.program.outputs]
        return self._piece(outputs)

    def _output(self, tensor: TensorView) -> flat.Slot:
        found = self.found(tensor)
        if found.is_whole:
            return found.slot
        slot = flat.Slot("view", found.shape, found.strides, tensor.dtype)
        self.body.append(flat.ViewSlot(found.slot, slot, found.views))
        return slot

    def _piece(self, kept: Sequence[flat.Slot]) -> flat.CallProgram:
        """Return what was written since the last piece; ``kept`` are its outputs."""
        body, self.body = self.body, []
        named = {slot for stmt in body for slot in flat.slots_of(stmt)}
        gone = [s for s in self.alive if s not in named | self.skew.keys() | {*kept}]
        body = [*map(flat.FreeSlot, gone), *with_frees(body, (*self.skew, *kept))]
        piece = flat.CallProgram(self.alive, tuple(kept), tuple(body))
        is_kept = self.run_piece is None and not self.linking.ordered
        return reuse_slots(piece) if is_kept else piece

    def _block(self, body: Sequence[st.Statement]) -> None:
        for stmt in body:
            self._count()
            self.body.append(flat.Begin(stmt))
            try:
                self._add(stmt)
            except (HostError, TooLongError):
                raise
            except Exception as error:
                raise self.linking.fault(stmt, error) from error
            if self.linking.timed:
                self.body.append(flat.End(stmt))

    def _count(self) -> None:
        self.count += 1
        if self.run_piece is None:
            if self.count > MOST_STATEMENTS:
                raise TooLongError
        elif len(self.body) > MOST_STATEMENTS:
            self._forget_the_past()
            slots = (x.slot for x in self.locations.values())
            kept = tuple(dict.fromkeys((*self.skew, *slots)))
            self.run_piece(self._piece(kept))
            self.alive = kept

    def _forget_the_past(self) -> None:
        """Forget tensors that nothing names from here on, so that memory goes."""
        left = st.walk(self.program.body[self.place :])
        named = {self.key(t) for s in left for t in (*st.reads(s), *st.writes(s))}
        named.update(map(self.key, self.program.outputs))
        self.forget([t for t in self.locations if t not in named])

    def _add(self, stmt: st.Statement) -> None:
        match stmt:
            case st.Allocate(result):
                if self.key(result) not in self.locations:
                    self.made(result)
            case st.Free(source):
                self.free(source)
            case st.Launch():
                self._launch(stmt)
            case st.Set() | st.UnaryOp() | st.BinaryOp():
                self._operate(stmt)
            case st.ReductionOp() | st.MatmulOp():
                self._call(stmt)
            case st.Communicate():
                self._python(stmt, partial(exchange, stmt))
            case st.IfThenElse(condition, body, orelse):
                self._block(body if self.numbers([condition])[0] else orelse)
            case st.ForLoop():
                self._loop(stmt)
            case (
                st.SelectOp()
                | st.AliasSelect()
                | st.SliceOp()
                | st.PermuteOp()
                | st.ReshapeOp()
            ):
                self.name(stmt, self.view(stmt))
            case st.SetStream() if self.linking.meet:
                pass  # which statement waits for which was decided as if none met
            case _:
                self._order(stmt)

    def _order(self, stmt: st.Order) -> None:
        if self.linking.ordered:  # what a CPU was given before is done
            is_named = isinstance(stmt, st.SetStream | st.Synchronize)
            index = stmt.stream.index if is_named else None
            number = None if index is None else self.numbers([index])[0]
            self.body.append(flat.OrderStreams(stmt, number))

    def _loop(self, loop: st.ForLoop) -> None:
        """Write the body again and again; what an iteration defines ends with it."""
        start, stop = self.numbers([loop.start, loop.stop])
        inside = (self.key(t) for s in st.walk(loop.body) for t in st.writes(s))
        own = [t for t in dict.fromkeys(inside) if t not in self.locations]
        turns = range(start, stop, loop.step)
        if self._repeat(loop, turns, own):
            return
        is_ordered = loop.parallel and self.linking.ordered
        if is_ordered:
            self.body.append(flat.OrderStreams(loop))
        for index in turns:
            self._count()
            self.turn(loop.index, index)
            self._block(loop.body)
            self.forget(own)
        if is_ordered:
            self.body.append(flat.OrderStreams(loop, ends=True))

    def _repeat(
        self, loop: st.ForLoop, turns: range, own: Sequence[TensorView]
    ) -> bool:
        """Write a long loop as one, if its turns differ in where rows lie alone."""
        size = len(turns) * sum(1 for _ in st.walk(loop.body))
        if not self.linking.repeats or size < LONG or len(turns) < 3:
            return False
        if is_computed_with(loop.body, loop.index):
            return False
        before, state = self.body, (self.locations, self.count, self.is_loose)
        made: list[flat.HostStmt] = []
        self.depth += 1
        for is_loose in (False, True):
            self.is_loose |= is_loose
            # What fails in a turn fails where it belongs, turn by turn.
            with suppress(HostError, TooLongError, NotRepeatedError):
                made = self._repeated(loop, turns, own, *state[:2])
                break
        self.depth -= 1
        self.locations, count, self.is_loose = state
        self.count = self.count if made else count
        self.body = before + made
        return bool(made)

    def _repeated(
        self,
        loop: st.ForLoop,
        turns: range,
        own: Sequence[TensorView],
        locations: Mapping[TensorView, Location],
        count: int,
    ) -> list[flat.HostStmt]:
        found: list[TurnWritten] = []
        for index in (turns[0], turns[1], turns[-1]):
            self.body, self.locations, self.count = [], dict(locations), count
            self.turn(loop.index, index)
            self._block(loop.body)
            self.forget(own)
            found.append(turn_of(self.body, locations, self.locations, self.skew))
        moving = [x for x, is_moved in self.moves.items() if is_moved]
        if not all(is_linear(x, loop.index) for x in moving):
            raise NotRepeatedError
        alignment = 1 if self.is_loose else ALIGNMENT
        return repeated(found, len(turns), self.depth - 1, alignment)

    # -- what computes -------------------------------------------------------

    def _launch(self, stmt: st.Launch) -> None:
        for tensor in stmt.results:
            if (found := self.locations.get(self.key(tensor))) is not None:
                check_shape(found.shape, self.shape(tensor))
        if isinstance(stmt.function, Fusion) and not self.linking.records:
            try:
                self._insert(stmt, stmt.function)
            except NotLinkedError:
                pass
            else:
                return
        function, call = stmt.function, self.linking.call
        self._python(stmt, lambda _, read: call(function, read))

    def _python(
        self,
        stmt: st.Launch | st.Communicate,
        call: Callable[[Any, list[Any]], Sequence[Any]],
    ) -> None:
        """Let Python compute results; those that have memory are copied there."""
        late = [self.key(t) for t in st.writes(stmt)]
        late = [t for t in late if t in self.locations]
        if late:
            self._write_late(stmt, late)
            return
        given = stmt.operands if isinstance(stmt, st.Launch) else (stmt.source,)
        read: list[Any] = [self.operand(x) for x in given]
        own = tuple(x.operand if isinstance(x, Location) else x for x in read)
        made = [(t, self.new(self.shape(t), t.dtype)) for t in st.writes(stmt)]
        self.locations |= {self.key(t): location for t, location in made}
        self.body.append(flat.CallPython(call, own, tuple(x.slot for _, x in made)))

    def _insert(self, stmt: st.Launch, function: Fusion) -> None:
        """Insert the program of a fusion, whose kernels write where results lie."""
        keys = [self.key(t) for t in stmt.results]
        read = [self.operand(x) for x in stmt.operands]
        given = [self.described(x) if isinstance(x, Location) else x for x in read]
        used = {x.slot for x in read if isinstance(x, Location)}
        ready = {k: self.locations[t] for k, t in enumerate(keys) if self._has(t, used)}
        late = [t for k, t in enumerate(keys) if k in ready]
        late = [t for t in late if self.meets(self.locations[t], used)]
        if late:  # a kernel might read what it has overwritten
            self._write_late(stmt, late)
            return
        self._refuse_shared(list(ready.values()))
        outs = {k: self.described(x) for k, x in ready.items()}
        plan, numbers = self._plan(function, given, outs)
        outputs = plan.program.outputs
        for tensor, slot in zip(stmt.results, outputs, strict=True):
            check_shape(slot.shape, self.shape(tensor))
            if slot.dtype is not tensor.dtype:
                raise NotLinkedError
        moved = [
            (t, s)
            for k, (t, s) in enumerate(zip(keys, outputs, strict=True))
            if k not in ready
        ]
        for tensor, slot in moved:
            found = self.locations.get(tensor)
            if found is not None and found.strides != slot.strides:
                raise NotLinkedError
        places = {
            plan.inputs[k]: x for k, x in enumerate(read) if isinstance(x, Location)
        }
        places |= {outputs[k]: x for k, x in ready.items()}
        own = Inserted(plan, numbers, places, self.count - 1)
        self.body += own.run()
        self.locations |= {t: own.location(slot) for t, slot in moved}

    def _has(self, key: TensorView, used: AbstractSet[flat.Slot]) -> bool:
        """Tell whether a result has memory that it has to be written to.

        One that is read may lie elsewhere where nothing else lies in its memory, which
        is not the caller's.
        """
        if (found := self.locations.get(key)) is None:
            return False
        if found.slot not in used or found.slot in self.skew or not found.is_whole:
            return True
        others = (x.slot for t, x in self.locations.items() if t is not key)
        return found.slot in others

    def _refuse_shared(self, written: Sequence[Location]) -> None:
        """Leave to a call by itself results that may lie in one another."""
        slots = {x.slot for x in written}
        given = slots & self.skew.keys() if self.linking.meet else ()
        steps = [p for x in written for p in zip(x.shape, x.strides, strict=True)]
        is_repeated = any(n > 1 and step == 0 for n, step in steps)
        if len(slots) < len(written) or len(given) > 1 or is_repeated:
            raise NotLinkedError

    def _write_late(
        self, stmt: st.Launch | st.Compute, late: Sequence[TensorView]
    ) -> None:
        """Compute some results beside the memory that they have; then copy them."""
        key = stmt, *late
        if key not in self.beside:  # iterations have it in common
            self.beside[key] = self._beside(stmt, late)
        own, *copies = self.beside[key]
        for part in (own, *copies):
            self._add(part)
        self.forget(copy.source for copy in copies)

    def _beside(
        self, stmt: st.Launch | st.Compute, late: Sequence[TensorView]
    ) -> tuple[st.Launch | st.Compute, ...]:
        written = {self.key(t): t for t in st.writes(stmt)}
        own = {t: new_tensor(written[t].shape, written[t].dtype) for t in late}
        copies = [st.Set(x, t, stmt.line) for t, x in own.items()]
        if isinstance(stmt, st.Launch):
            results = (own.get(self.key(t), t) for t in stmt.results)
            return replace(stmt, results=tuple(results)), *copies
        return replace(stmt, result=own[self.key(stmt.result)]), *copies

    def _operate(self, stmt: st.Set | st.UnaryOp | st.BinaryOp) -> None:
        """Let a kernel do what the library does with the same bits."""
        launch = as_launch(stmt) if self.linking.compiles else None
        if launch is None or self._is_long(launch) or self.is_in_place(stmt):
            self._call(stmt)
        else:
            self._launch(launch)

    def _is_long(self, launch: st.Launch) -> bool:
        """Tell whether an integer is rounded twice by libraries: to 64 bits first."""
        numbers = [x for x in launch.operands if not isinstance(x, TensorView)]
        return any(abs(self.operand(x)) > 1 << 53 for x in numbers)

    def _plan(
        self, function: Fusion, given: Sequence[Any], outs: Mapping[int, Descriptor]
    ) -> tuple[Plan, dict[int, Any]]:
        """Return what iterations have in common that launch the same in one form."""
        # Numbers by their text: -0.0, 0.0, 0 and False are equal.
        forms = (x if isinstance(x, Descriptor) else repr(x) for x in given)
        key = function, (*forms,), (*outs.items(),)
        if key not in self.plans:
            self.plans[key] = self.linking.plan(key, function, given, outs)
        return self.plans[key]

    def _call(self, stmt: st.Compute) -> None:
        """Let the library write what it computes into new memory, or where it is to."""
        operands = operands_of(stmt)
        read = [self.operand(x) for x, _ in operands]
        shape = given_shape(stmt, [x.shape for x in read if isinstance(x, Location)])
        target = self.locations.get(self.key(stmt.result))
        if target is None:
            check_shape(shape, self.shape(stmt.result))
            target = self.made(stmt.result)
        else:
            check_shape(target.shape, shape)
        if self._reads_late(stmt, target, read):
            self._write_late(stmt, [self.key(stmt.result)])
            return
        is_known = shape is not None and not isinstance(stmt, st.ReductionOp)
        if 0 in target.shape and is_known:  # else the library says what it refuses
            return
        given = tuple(
            x.operand
            if isinstance(x, Location)
            else flat.Operand(flat.ProgramNumber(x, dtype))
            for x, (_, dtype) in zip(read, operands, strict=True)
        )
        name, operation = operation_of(stmt, target.views, self.linking.library)
        call = flat.CallLibrary(
            name, given, target.slot, stmt.line, operation=operation
        )
        self.body.append(call)

    def _reads_late(
        self, stmt: st.Compute, target: Location, read: Sequence[Any]
    ) -> bool:
        """Tell whether the library could read what it has overwritten.

        NumPy reads an element before it writes over it, whatever overlaps. Others
        refuse, or multiply and fold what they have written already.
        """
        is_product = isinstance(stmt, st.MatmulOp)
        if is_product and not target.is_whole:
            return True
        meeting = [
            x for x in read if isinstance(x, Location) and self.meets(target, {x.slot})
        ]
        if not is_product:
            if self.linking.library is Library.NUMPY:
                return False
            if not isinstance(stmt, st.ReductionOp):
                meeting = [x for x in meeting if not x.is_at(target)]
        return bool(meeting)
