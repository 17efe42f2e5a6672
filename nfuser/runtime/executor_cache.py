# SPDX-License-Identifier: Apache-2.0
"""From a fusion and the arrays of one call to a ready plan, through all caches.

Levels, outermost first: plan (exact shapes, strides, alignment), concretization (the
answers), runtime (the heuristics), kernel (the source). A plan is looked up by the
caller; this class makes what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.concretize import Answers, Concrete, answer, concretize, questions
from nfuser.debug import dump, timing
from nfuser.device.allocate import output_strides
from nfuser.host.evaluate import Evaluator
from nfuser.host.program import HostProgram, Part, Slot
from nfuser.host.program import text as program_text
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.expr import Part as ArgumentPart
from nfuser.ir.text import text
from nfuser.locks import ForkSafeLock
from nfuser.rewrite.passes import rewrite
from nfuser.runtime.build_program import build_program
from nfuser.runtime.kernel_runtime import (
    FusionKernelRuntime,
    build_runtime,
    heuristics_for,
)
from nfuser.runtime.memory_order import axis_order, dense, strides_of_all
from nfuser.schedule.facts import Facts, Layout, Target
from nfuser.schedule.registry import find_scheduler
from nfuser.segment import Segmented, segment
from nfuser.segment.segmented import text as segmented_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.device.descriptor import Descriptor, Device, Library
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView
    from nfuser.runtime.counters import Counters

ALIGNMENT = 16  # bytes: what every allocator gives, and all that packets need


@node
class Concretization:
    """A concrete fusion before and after the rewrites, and its pieces."""

    concrete: Concrete
    rewritten: Concrete
    segmented: Segmented


@node
class Plan:
    """Everything decided for calls of one exact form."""

    evaluator: Evaluator
    inputs: Mapping[int, Slot]  # by the argument's slot
    runtime: FusionKernelRuntime
    concretization: Concretization
    program: HostProgram


@node
class Place:
    """Where a call runs: the library outputs belong to, the device, the backend."""

    library: Library
    device: Device
    backend: str
    target: Target


class FusionExecutorCache:
    """All that was ever built for one fusion; safe under threads."""

    def __init__(self, fusion: Fusion, counters: Counters) -> None:
        self.fusion = fusion
        self.counters = counters
        self.questions = questions(fusion)
        self.concretizations: dict[Answers, Concretization] = {}
        self.runtimes: dict[tuple[object, ...], FusionKernelRuntime] = {}
        self._lock = ForkSafeLock()

    def plan(
        self,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
    ) -> Plan:
        """Return a plan for arrays and integers like these, by the argument's slot."""
        values = symbol_values(arrays, integers)
        with self._lock:
            found = self._concretization(values)
            facts = self._facts(found, place, arrays, values)
            runtime = self._runtime(found, facts, place)
            return self._plan(found, runtime, facts, place, arrays)

    def _concretization(self, values: Mapping[Scalar, int]) -> Concretization:
        answers = answer(self.fusion, self.questions, values)
        found = self.concretizations.get(answers)
        if found is not None:
            return found
        with timing.timed("concretize"):
            concrete = concretize(self.fusion, self.questions, answers)
        with timing.timed("rewrite"):
            rewritten = rewrite(concrete)
        with timing.timed("segment"):
            segmented = segment(rewritten.fusion, find_scheduler)
        if dump.wants("concrete"):
            dump.dump("concrete", text(concrete.fusion))
        if dump.wants("segments"):
            dump.dump("segments", segmented_text(segmented))
        made = Concretization(concrete, rewritten, segmented)
        self.concretizations[answers] = made
        self.counters.add("concretizations")
        if len(self.concretizations) > 1:  # the first one comes with its trace
            self.counters.reason = self._why_concretized(answers)
        return made

    def _why_concretized(self, answers: Answers) -> str:
        kinds = ("0", "1", "2 or more")
        pairs = zip(self.questions.extents, answers.classes, strict=True)
        classes = [
            f"the size of argument {e.slot} along axis {e.axis} is {kinds[c]}"
            for e, c in pairs
            if isinstance(e, sc.Size) and c < len(kinds) - 1
        ]
        listed = "; ".join(classes) or "no axis has size 0 or 1"
        return f"a new concretization: {listed}"

    # -- numbers of the call -------------------------------------------------

    def _facts(
        self,
        found: Concretization,
        place: Place,
        arrays: Mapping[int, Descriptor],
        values: Mapping[Scalar, int],
    ) -> Facts:
        layouts: dict[TensorView, Layout] = {}
        for fusion in (found.concrete.fusion, found.rewritten.fusion):
            for argument in fusion.arguments:
                if argument.by_value:
                    continue
                layout = _layout(arrays[argument.slot])
                if argument.part is not ArgumentPart.WHOLE:
                    item = argument.result.dtype.itemsize
                    strides = tuple(2 * s for s in layout.strides)
                    layout = Layout(strides, min(layout.alignment, item))
                layouts[argument.result] = layout
        self._lay_out(found, place, layouts, values)
        return Facts(values, layouts, place.target)

    def _lay_out(
        self,
        found: Concretization,
        place: Place,
        layouts: dict[TensorView, Layout],
        values: Mapping[Scalar, int],
    ) -> None:
        """Choose the strides of outputs, and of what one kernel leaves for another."""
        plain = found.concrete.fusion
        shapes = _shapes(plain, values)
        given = {t: layout.strides for t, layout in layouts.items()}
        orders = strides_of_all(plain, shapes, given)
        rewritten = iter(found.rewritten.fusion.outputs)
        for output in plain.outputs:
            strides = self._dense(orders[output], shapes[output], place)
            layouts[output] = Layout(strides, ALIGNMENT)
            if output.dtype.is_complex:
                doubled = tuple(2 * s for s in strides)
                real = output.dtype.real.itemsize
                for _ in range(2):
                    layouts[next(rewritten)] = Layout(doubled, real)
            else:
                layouts[next(rewritten)] = Layout(strides, ALIGNMENT)
        fusion = found.rewritten.fusion
        shapes = _shapes(fusion, values)
        orders = strides_of_all(fusion, shapes, given)
        for piece in found.segmented.segments:
            for tensor in piece.fusion.outputs:
                if tensor not in layouts:
                    strides = dense(
                        shapes[tensor],
                        axis_order(tensor.ndim, [orders[tensor]]),
                    )
                    layouts[tensor] = Layout(strides, ALIGNMENT)

    def _dense(
        self, strides: tuple[int, ...], shape: tuple[int, ...], place: Place
    ) -> tuple[int, ...]:
        own = dense(shape, axis_order(len(shape), [strides]))
        return output_strides(place.library, shape, own)

    # -- runtime and plan ----------------------------------------------------

    def _runtime(
        self, found: Concretization, facts: Facts, place: Place
    ) -> FusionKernelRuntime:
        heuristics = heuristics_for(found.segmented, facts)
        key = (found, heuristics, place.target, place.backend, place.device)
        runtime = self.runtimes.get(key)
        others = [r.segmented for r in self.runtimes.values()]
        if runtime is None:
            runtime = build_runtime(
                found.segmented,
                heuristics,
                place.target,
                place.backend,
                place.device.index,
            )
            self.runtimes[key] = runtime
            self.counters.add("runtimes")
            self.counters.add("compiled", runtime.compiled)
            self.counters.add("reused", runtime.reused)
            listed = ", ".join(str(h) for h in heuristics)
            if found.segmented in others:
                self.counters.reason = f"a new heuristic: {listed}"
        return runtime

    def _plan(
        self,
        found: Concretization,
        runtime: FusionKernelRuntime,
        facts: Facts,
        place: Place,
        arrays: Mapping[int, Descriptor],
    ) -> Plan:
        inputs = {
            slot: Slot(f"in{slot}", d.shape, d.strides, d.dtype)
            for slot, d in arrays.items()
        }
        places: dict[TensorView, Part] = {}
        for argument in found.rewritten.fusion.arguments:
            if not argument.by_value:
                is_imaginary = argument.part is ArgumentPart.IMAG
                offset = argument.result.dtype.itemsize if is_imaginary else 0
                places[argument.result] = Part(inputs[argument.slot], offset)
        outputs: list[Slot] = []
        rewritten = iter(found.rewritten.fusion.outputs)
        for number, tensor in enumerate(found.concrete.fusion.outputs):
            shape = tuple(facts.size(x) for x in tensor.shape)
            strides = facts.layouts[tensor].strides
            slot = Slot(f"out{number}", shape, strides, tensor.dtype)
            outputs.append(slot)
            places[next(rewritten)] = Part(slot)
            if tensor.dtype.is_complex:
                places[next(rewritten)] = Part(slot, tensor.dtype.real.itemsize)
        with timing.timed("host"):
            program = build_program(
                runtime, facts, places, tuple(inputs.values()), tuple(outputs)
            )
        if dump.wants("host"):
            dump.dump("host", program_text(program))
        evaluator = Evaluator(program, place.library, place.device, place.backend)
        return Plan(evaluator, inputs, runtime, found, program)


def symbol_values(
    arrays: Mapping[int, Descriptor], integers: Mapping[int, int]
) -> dict[Scalar, int]:
    """Return the value of every size and integer argument."""
    values: dict[Scalar, int] = {}
    for slot, descriptor in arrays.items():
        for axis, extent in enumerate(descriptor.shape):
            values[sc.size(slot, axis)] = extent
    for slot, number in integers.items():
        values[sc.scalar_input(slot)] = number
    return values


def _layout(descriptor: Descriptor) -> Layout:
    pointer = descriptor.pointer
    alignment = pointer & -pointer or ALIGNMENT
    return Layout(descriptor.strides, min(alignment, ALIGNMENT))


def _shapes(
    fusion: Fusion, values: Mapping[Scalar, int]
) -> dict[TensorView, tuple[int, ...]]:
    extents = list(dict.fromkeys(x for t in fusion.definition for x in t.shape))
    known = dict(zip(extents, scalar_walk.evaluate_all(extents, values), strict=True))
    return {t: tuple(known[x] for x in t.shape) for t in fusion.definition}
