# SPDX-License-Identifier: Apache-2.0
"""From a runtime and the numbers of one call to a host program."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.domains.unset import is_unset
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir import expr as ex
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.open_integer import OpenInteger, closed
from nfuser.compiler.ir.scalars.scalar import ScalarInput, const
from nfuser.compiler.ir.scalars.symbols import stride
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.scheduled import copies_knob, phase_knob
from nfuser.execution.device.allocate import ALIGNMENT
from nfuser.execution.host.call.loops_in_place import loops_in_place
from nfuser.execution.host.call.program import (
    AllocateSlot,
    Argument,
    ByValue,
    CallLibrary,
    CallProgram,
    Clear,
    FreeSlot,
    HostScalar,
    HostStmt,
    LaunchKernel,
    LibraryFunction,
    Operand,
    ProgramNumber,
    Repeat,
    Scattered,
    Slot,
    SlotPart,
    Turn,
    ViewOf,
    slots_of,
)
from nfuser.execution.host.call.reuse_slots import reuse_slots
from nfuser.execution.runtime.compile.scatters import scatter_kernels
from nfuser.execution.runtime.outputs.assigned import first_byte, owners
from nfuser.execution.runtime.outputs.swaps import swaps_after
from nfuser.execution.runtime.outputs.taken_over import is_copied, taken_over
from nfuser.execution.runtime.planning.cost import cost_of
from nfuser.execution.runtime.planning.fit_clusters import fit_clusters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.expr import Home, Loop
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.segment import Segment, Segmented
    from nfuser.execution.runtime.kernel_runtime import (
        CompiledSegment,
        FusionKernelRuntime,
    )

    _Own: TypeAlias = tuple[CompiledSegment, Heuristic]


def build_program(
    runtime: FusionKernelRuntime,
    facts: Facts,
    places: Mapping[TensorView, SlotPart],
    inputs: tuple[Slot, ...],
    outputs: tuple[Slot, ...],
    heuristics: tuple[Heuristic, ...] | None = None,
    decided: AbstractSet[Scalar] = frozenset(),
    ready: AbstractSet[int] = frozenset(),
    *,
    reuses: bool = True,
) -> CallProgram:
    """Return the program of one call; ``places`` says where tensors lie.

    It ``reuses`` memory between kernels, which takes sizes that are known. Outputs
    whose numbers are in ``ready`` are there when the program runs. ``heuristics`` are
    the call's own: they equal the runtime's but for what is given at each launch.
    Integers in ``decided`` are the same whenever the program runs.
    """
    made = {*inputs, *(outputs[k] for k in ready)}
    unmade = tuple(slot for slot in outputs if slot not in made)
    builder = _Program(runtime, facts, dict(places), decided, unmade)
    own = zip(runtime.segments, heuristics or runtime.heuristics, strict=True)
    body = builder.pieces(runtime.segmented, own)
    body += [AllocateSlot(slot) for slot in builder.unmade]  # those without elements
    body = with_frees(body, (*inputs, *outputs))
    program = CallProgram(inputs, outputs, tuple(body))
    if not reuses:
        return program
    pairs = ((part.slot, facts.layouts[t]) for t, part in places.items())
    odd = {slot for slot, layout in pairs if layout.alignment < ALIGNMENT}
    return reuse_slots(loops_in_place(program, odd))


class _Program:
    def __init__(
        self,
        runtime: FusionKernelRuntime,
        facts: Facts,
        places: dict[TensorView, SlotPart],
        decided: AbstractSet[Scalar],
        unmade: tuple[Slot, ...],
    ) -> None:
        self.decided = decided
        self.unmade = dict.fromkeys(unmade)
        self.fusion = runtime.segmented.fusion
        self.facts = facts
        self.places = places
        self.temporaries = 0
        self.loops: list[Loop] = []  # those around what is built
        self.homes: dict[Home, SlotPart] = {}  # what they have made of arguments
        self.assigned: dict[TensorView, ex.Assign] = {}  # values, and where they go
        self.before: dict[TensorView, TensorView] = {}  # what assignments begin with
        # What arguments of their bodies are outside, and at what depth they count.
        self._outside: dict[TensorView, TensorView | Turn] = {}

    def pieces(self, segmented: Segmented, own: Iterator[_Own]) -> list[HostStmt]:
        """Return the statements of all pieces; kernels run those in ``own``."""
        self.assigned |= {a.value: a for a in segmented.fusion.assignments}
        self.before |= {a.result: a.source for a in segmented.fusion.assignments}
        body: list[HostStmt] = []
        for piece in segmented.segments:
            if piece.body is not None:
                body.extend(self._loop(piece, piece.body, own))
            elif piece.is_library_call:
                body.extend(self.call(piece))
            elif not piece.is_kernel:
                self.assign(piece)
            else:
                compiled, heuristic = next(own)
                knobs = {**heuristic.knobs, **self._take_over(piece, segmented.fusion)}
                body.extend(self.run(compiled, knobs))
        return body

    def _take_over(self, piece: Segment, fusion: Fusion) -> dict[Scalar, int]:
        """Leave arrays where a loop changes them in place; return what it is told."""
        found = taken_over(piece, fusion, self.facts, {*self.places, *self.assigned})
        found = {k: pair for k, pair in found.items() if pair[0] not in self.assigned}
        for before, left in found.values():
            self.places[left] = self.places[before]
        return {copies_knob(k): 0 for k in found}

    def _loop(
        self, piece: Segment, segmented: Segmented, own: Iterator[_Own]
    ) -> list[HostStmt]:
        """Return the statements of a loop: what it needs is allocated before it."""
        (loop,) = piece.fusion.loops
        depth = len(self.loops)
        slots = [self.places[before].slot for before, _, _ in loop.pairs]
        fresh: list[Slot] = []
        sources = [
            number if number in loop.in_place else source
            for number, source in enumerate(loop.forwarded)
        ]
        for slot, source, pair in zip(slots, sources, loop.pairs, strict=True):
            _, after, result = pair
            self.places[result] = SlotPart(slot)
            if source is None:
                fresh.append(self._slot(after))
                self.places[after] = SlotPart(fresh[-1])
        body: list[HostStmt] = [AllocateSlot(slot) for slot in fresh]
        body += self._allocated(piece)
        for row, result in loop.added:
            self.places[row] = self._row(loop, result, depth)
        owner = owners(segmented.fusion)
        for left in segmented.fusion.outputs:
            if left in owner and left in self.places:
                self.places[owner[left]] = self.places[left]
        for inner, operand in loop.given:
            self._outside[inner] = operand
            if operand in self.places:
                self.places[inner] = self.places[operand]
        if loop.turn is not None:
            self._outside[loop.turn] = Turn(depth)
        homes = self._homes(loop, slots)
        around, self.homes = self.homes, self.homes | homes
        self.loops.append(loop)
        inside = self.pieces(segmented, own)
        self.loops.pop()
        self.homes = around
        runs = tuple(s for s in inside if not isinstance(s, AllocateSlot))
        body += [s for s in inside if isinstance(s, AllocateSlot)]
        trips = (
            None if loop.trips is None else self._scalar(loop.trips, self.facts.sizes)
        )
        flag = None if loop.flag is None else slots[loop.flag]
        swaps = swaps_after(slots, fresh, sources)
        line = loop.result.source
        saved = tuple((part.slot, self._home(home)) for home, part in homes.items())
        return [*body, Repeat(runs, swaps, trips, flag, depth, line, saved)]

    def _homes(self, loop: Loop, slots: Sequence[Slot]) -> dict[Home, SlotPart]:
        """Return where turns leave what belongs in arrays of the caller's."""
        given = {a.slot: a.home for a in loop.body.arguments}
        found = ((given.get(k), slot) for k, slot in enumerate(slots))
        return {home: SlotPart(slot) for home, slot in found if home is not None}

    def _home(self, home: Home) -> SlotPart:
        """Return an array of the caller's, or what a loop around has made of it."""
        if home in self.homes:
            return self.homes[home]
        arguments = self.fusion.arguments
        found = (
            a.result for a in arguments if (a.slot, a.part) == (home.slot, home.part)
        )
        return self.places[next(found)]

    def _row(self, loop: Loop, result: TensorView, depth: int) -> SlotPart:
        """Return where the iterations of ``loop`` leave their part of a result."""
        whole = self.places[result]
        step = whole.slot.dtype.itemsize * (whole.slot.strides or (0,))[0]
        if not loop.backwards:
            return replace(whole, step=step, depth=depth)
        last = whole.offset + step * (whole.slot.shape[0] - 1)
        return replace(whole, offset=last, step=-step, depth=depth)

    def _slot(self, tensor: TensorView) -> Slot:
        self.temporaries += 1
        strides = self.facts.layouts[tensor].strides
        return Slot(f"t{self.temporaries}", self._shape(tensor), strides, tensor.dtype)

    def _allocated(self, piece: Segment) -> list[HostStmt]:
        """Make what ``piece`` stores."""
        body: list[HostStmt] = []
        for tensor in piece.fusion.outputs:
            if tensor in self.assigned:
                assign = self.assigned[tensor]
                whole = self._whole(assign)
                offset = whole.offset + self._skipped(assign)
                self.places[tensor] = replace(whole, offset=offset)
            elif tensor not in self.places:
                slot = self._slot(tensor)
                self.places[tensor] = SlotPart(slot)
                body.append(AllocateSlot(slot))
            elif (slot := self.places[tensor].slot) in self.unmade:
                del self.unmade[slot]
                body.append(AllocateSlot(slot))
        return body

    def _whole(self, assign: ex.Assign) -> SlotPart:
        """Return the array that is assigned to, and that others may assign to before.

        Values that lie apart in it may be stored in any order.
        """
        source = assign.source
        while source not in self.places:
            source = self.before[source]
        return self.places[source]

    def assign(self, piece: Segment) -> None:
        """Let what was assigned to stand for what it has become."""
        (assign,) = piece.fusion.assignments
        self.places[assign.result] = self.places[assign.source]

    def _skipped(self, assign: ex.Assign) -> int:
        """Return how many bytes lie before the first element that is assigned."""
        steps = self.facts.layouts[assign.source].strides
        return first_byte(assign, steps, self.facts.sizes)

    def call(self, piece: Segment) -> list[HostStmt]:
        """Return the statements of what the array library computes."""
        body = self._allocated(piece)
        (call,) = piece.fusion.library_calls
        is_empty = all(0 in self._shape(t) for t in piece.fusion.outputs)
        if is_empty and not isinstance(call, ex.Scatter):  # whose index is looked at
            return body
        read: dict[TensorView, Operand] = {}
        for expr in piece.fusion.exprs:
            if isinstance(expr, ex.Argument):
                read[expr.result] = Operand(self.places[expr.result])
            elif isinstance(expr, ex.Constant):
                number = ProgramNumber(expr.value.real, expr.result.dtype)
                read[expr.result] = Operand(number)
            elif isinstance(expr, ex.VIEWS):
                source = read[expr.source]
                views = (*source.views, self._view(expr))
                read[expr.result] = Operand(source.part, views)
        operands = tuple(read[t] for t in ex.sources(call))
        if isinstance(call, ex.Called):
            body.append(self._called(call, operands, set(piece.fusion.outputs)))
            return body
        place = self.places[call.result]
        made = CallLibrary(call.name, operands, place.slot, call.result.source)
        made = replace(made, offset=place.offset)
        if isinstance(call, ex.Sort):
            made = replace(made, axis=call.axis, stable=call.stable, kth=call.kth)
        if isinstance(call, ex.Scatter):
            kernels = partial(scatter_kernels, call.op, call.result.dtype)
            scattered = Scattered(call.op, call.lead, kernels, call.complaint)
            made = replace(made, scattered=scattered)
        body.append(made)
        return body

    def _called(
        self,
        call: ex.Called,
        operands: tuple[Operand, ...],
        stored: AbstractSet[TensorView],
    ) -> CallLibrary:
        """Return the call of a function, which stores what is read of its results."""
        tensors = iter(call.results)
        groups = tuple(
            tuple(
                self.places[t] if t in stored else None
                for t in islice(tensors, 1 + kind.is_complex)
            )
            for kind in call.made
        )
        shape = closed(self._shape(call.result))
        function = LibraryFunction(call.given, groups, call.options, shape)
        (first, *_) = function.parts
        line = call.result.source
        return CallLibrary(call.name, operands, first.slot, line, function=function)

    def _view(self, expr: ex.View) -> ViewOf:
        shape = self._shape(expr.result)
        match expr:
            case ex.Permute(_, _, order):
                return ViewOf("permute", order)
            case ex.Expand():
                return ViewOf("expand", closed(shape))
            case ex.Slice(_, _, starts, steps):
                first = map(int, scalar_walk.evaluate_all(starts, self.facts.sizes))
                spans = zip(first, steps, shape, strict=True)
                bounds = [(at, at + step * n, step) for at, step, n in spans]
                return ViewOf("slice", closed(tuple(x for b in bounds for x in b)))
            case _:
                return ViewOf("reshape", closed(shape))

    def run(
        self, compiled: CompiledSegment, knobs: Mapping[Scalar, int]
    ) -> list[HostStmt]:
        """Return the statements of one segment."""
        form = compiled.source.form
        body = self._allocated(compiled.segment)
        fusion = compiled.segment.fusion
        is_empty = all(0 in self._shape(t) for t in fusion.outputs)
        if is_empty or is_unset(fusion):
            return body
        places: list[Argument] = []
        values = {**self._values(compiled), **knobs}
        values |= fit_clusters(compiled, values)
        tensors = iter(memory_tensors(compiled.segment.fusion))
        for buffer in form.buffers:
            if buffer.size is None:
                places.append(self.places[next(tensors)])
                continue
            size = scalar_walk.evaluate(buffer.size, values)
            self.temporaries += 1
            name = f"{buffer.role}{self.temporaries}"
            slot = Slot(name, (size,), (1,), buffer.dtype)
            body.append(AllocateSlot(slot))
            if buffer.role in ("tickets", "boxes"):
                body.append(Clear(slot))
            places.append(SlotPart(slot))
        places += self._by_value(compiled)
        for phase in range(form.launch.phases):
            now = {**values, phase_knob(): phase}
            body.append(self._launch(compiled, places, now, phase))
        return body

    def _launch(
        self,
        compiled: CompiledSegment,
        places: list[Argument],
        values: Mapping[Scalar, int],
        phase: int,
    ) -> LaunchKernel:
        form = compiled.source.form
        launch = form.launch
        whole = [self._scalar(x, values, dtype) for dtype, x in form.integers]
        sizes = [self._scalar(x, values) for x in form.scalars]
        grid = scalar_walk.evaluate_all((*launch.grid, *launch.block), values)
        return LaunchKernel(
            compiled.source,
            compiled.executable,
            (grid[0], grid[1]),
            (grid[2], grid[3]),
            (*places, *whole, *sizes),
            cost_of(compiled, self.facts),
            launch.is_cooperative,
            launch.shared_bytes,
            phase,
            is_copied(compiled.segment.fusion),
        )

    def _shape(self, tensor: TensorView) -> tuple[int, ...]:
        return tuple(self.facts.size(x) for x in tensor.shape)

    def _by_value(self, compiled: CompiledSegment) -> list[Argument]:
        arguments = compiled.segment.fusion.arguments
        return [self._number(a.result) for a in arguments if a.by_value]

    def _number(self, tensor: TensorView) -> Argument:
        """Return where a number comes from: the call, or a loop that counts."""
        outside: TensorView | Turn = tensor
        while not isinstance(outside, Turn) and outside in self._outside:
            outside = self._outside[outside]
        if isinstance(outside, Turn):
            return outside
        parent = self.fusion.definition[outside]
        assert isinstance(parent, ex.Argument)
        part = parent.part.value.removeprefix(".")
        return ByValue(parent.slot, tensor.dtype, part)

    def _values(self, compiled: CompiledSegment) -> dict[Scalar, int]:
        """Return sizes and numbers of the call, and the strides of this segment."""
        values = dict(self.facts.sizes)
        fusion = compiled.segment.fusion
        for number, tensor in enumerate(memory_tensors(fusion)):
            for axis, step in enumerate(self.facts.layouts[tensor].strides):
                values[stride(number, axis)] = step
        return values

    def _scalar(
        self, x: Scalar, values: Mapping[Scalar, int], dtype: DType = DType.I64
    ) -> HostScalar:
        today = scalar_walk.evaluate(x, values)
        if isinstance(today, OpenInteger):
            return HostScalar(today.scalar, today.today, True, dtype)
        symbols = scalar_walk.symbols([x])
        inputs = [s for s in symbols if isinstance(s, ScalarInput)]
        given = [s for s in inputs if s not in self.decided]
        if given:  # all else stays as it is as long as the plan serves
            known = {s: const(values[s]) for s in symbols if s not in given}
            (x,) = scalar_walk.substitute([x], known)
        return HostScalar(x, today, bool(given), dtype)


def with_frees(body: Sequence[HostStmt], kept: tuple[Slot, ...]) -> list[HostStmt]:
    """Let go of each temporary after the last statement that names it."""
    seen: set[Slot] = set(kept)
    result: list[HostStmt] = []
    for stmt in reversed(body):
        fresh = [s for s in dict.fromkeys(slots_of(stmt)) if s not in seen]
        seen.update(fresh)
        result.extend(FreeSlot(s) for s in fresh)
        result.append(stmt)
    result.reverse()
    return result
