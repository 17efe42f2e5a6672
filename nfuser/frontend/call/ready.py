# SPDX-License-Identifier: Apache-2.0
"""A plan that is ready to run: what must hold for a call to use it, and the run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.scalar import ScalarInput
from nfuser.compiler.trace.call import tree as trees
from nfuser.errors import BackendError
from nfuser.execution.device.describe.descriptor import (
    address_and_key,
    describe,
    library_of,
    pointer_reader,
)
from nfuser.execution.runtime.call import symbols_of
from nfuser.frontend.call.draws import take_draws
from nfuser.frontend.call.inputs.arguments import host_number, same_number
from nfuser.frontend.call.inputs.changes import change_all, check_passed_once
from nfuser.frontend.call.inputs.scalar_checks import check_scalars
from nfuser.frontend.call.inputs.writes import (
    check_unread,
    check_writes,
    told_of_writes,
)
from nfuser.frontend.call.results import Results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.ir.scalars.open_integer import Asked
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.trace.standins.arithmetic_guards import OutcomeGuard
    from nfuser.execution.host.call.program import Slot
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.frontend.call.inputs.arguments import Arguments, Described
    from nfuser.frontend.fuse.variants import Variant


NOTHING: Mapping[int, Any] = MappingProxyType({})


@node
class Ready:
    """A plan with what must hold for a call to use it."""

    variant: Variant
    plan: Plan
    place: Place
    lifted: tuple[int, ...]
    captured_keys: tuple[object, ...]
    integers: Mapping[int, int]  # values that the plan depends on
    conditions: Mapping[Scalar, int]  # of other integers, each with its answer
    known: Mapping[int, int]  # integers for which the conditions hold
    outcomes: tuple[OutcomeGuard, ...]  # those that other numbers may break
    is_simple: bool  # nothing but the key needs to be looked at

    def still_holds(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...] | None:
        """Return the captured arrays of this call if the plan serves it."""
        numbers = arguments.numbers
        if any(numbers.get(slot) != value for slot, value in self.integers.items()):
            return None
        trace = self.variant.trace
        arrays = arguments.read(trace.captured, args, kwargs)
        if arrays is None or _keys(arrays) != self.captured_keys:
            return None
        guards = trace.value_guards
        if any(not same_number(numbers.get(g.slot), g.value) for g in guards):
            return None
        # Sizes are in the key, so their guards hold; those on integers are asked again.
        is_known = all(numbers.get(slot) == n for slot, n in self.known.items())
        if is_known and not (trace.checks or self.outcomes):
            return arrays
        return self._checked(numbers, arrays)

    @property
    def leaf_slots(self) -> list[Slot]:
        """The outputs of the program that are the leaves of what is returned."""
        outputs = self.plan.program.outputs
        return [outputs[leaf.position] for leaf in self.variant.trace.output_leaves]

    def _checked(
        self, numbers: Mapping[int, Any], arrays: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        shapes = {s: slot.shape for s, slot in self.plan.inputs.items()}
        values = symbols_of(shapes, numbers)
        if self.conditions:
            found = scalar_walk.evaluate_all(self.conditions, values)
            if found != list(self.conditions.values()):
                return None
        if not all(g.holds(values, numbers) for g in self.outcomes):
            return None
        check_scalars(self.variant.trace.checks, values)
        return arrays

    def run(
        self,
        arguments: Arguments,
        captured: tuple[Any, ...],
        into: tuple[Any, ...] = (),
    ) -> Any:
        """Return what the function gives for ``arguments``.

        Arrays ``into`` which it is to be written, one for each leaf of what is
        returned, lie as the results do, and share memory with nothing.
        """
        plan, numbers = self.plan, arguments.numbers
        inputs: dict[Any, tuple[Any, int]] = {}
        for slot, array in arguments.arrays.items():
            if slot in self.lifted:
                d = describe(array, "a scalar")
                numbers[slot] = host_number(array, d)
            else:
                inputs[plan.inputs[slot]] = (array, arguments.pointers[slot])
        trace = self.variant.trace
        for described, array in zip(trace.captured.arrays, captured, strict=True):
            inputs[plan.inputs[described.slot]] = (array, _pointer(array))
        written = [slot for slot, _ in trace.writes]
        outside = self._checked_writes(arguments, captured)
        drawn = trace.captured.streams.drawn
        if drawn:
            keys = [what.slot for what in drawn if what.on_device]
            if len(keys) < len(drawn) and self.place.device.is_cuda:
                _refuse_recorded_draws()
            numbers.update(take_draws(drawn, arguments.streams))
            for key in keys:
                tensor = numbers.pop(key)
                inputs[plan.inputs[key]] = (tensor, _pointer(tensor))

        def sizes() -> dict[Scalar, int]:
            shapes = {s: x.shape for s, x in plan.inputs.items()}
            return symbols_of(shapes, numbers)

        scalars = sizes() if numbers else {}
        given = dict(zip(self.leaf_slots, into, strict=True)) if into else {}
        try:
            outputs, stream = plan.evaluator(inputs, numbers, scalars, given)
        except BaseException:
            told_of_writes(written, arguments, outside)  # of statements before
            raise
        passed = told_of_writes(written, arguments, outside) if written else NOTHING
        results = Results(
            outputs, self.place.library, stream, arguments.nest, passed, sizes
        )
        found = [results.of(leaf) for leaf in trace.output_leaves]
        if trace.changed:
            change_all(trace.changed, arguments.nest, results.of)
        return trees.unflatten(trace.output_tree, found)

    def _checked_writes(
        self, arguments: Arguments, captured: tuple[Any, ...]
    ) -> Mapping[int, Any]:
        """Refuse to change what may not be changed; return what is from outside."""
        trace = self.variant.trace
        name = trace.fusion.name
        if trace.changed:
            check_passed_once(trace.changed, arguments.nest, trace.captured, name)
        if not trace.writes:
            return NOTHING
        pairs = zip(trace.captured.arrays, captured, strict=True)
        outside = {what.slot: array for what, array in pairs}
        written = [slot for slot, _ in trace.writes]
        check_writes(written, arguments, outside, name)
        check_unread(written, arguments, outside, trace)
        return outside


def make_ready(
    variant: Variant,
    plan: Plan,
    place: Place,
    described: Described,
    arrays: tuple[Any, ...],
    asked: Asked,
    decide: Iterable[int],
) -> Ready:
    """Return ``plan`` with what a call must be asked; ``arrays`` are captured.

    ``asked`` is what the plan asked of integers that it left open, ``decide`` the slots
    of those that are not.
    """
    trace = variant.trace
    integers = {s: described.numbers[s] for s in decide}
    conditions = {g.condition: g.answer for g in trace.guards} | asked.answers
    conditions = {
        c: a for c, a in conditions.items() if not integers.keys() >= set(_slots([c]))
    }
    known = {s: described.numbers[s] for s in _slots(conditions)}
    captured = trace.captured
    outcomes = tuple(g for g in trace.outcome_guards if g.depends_on_numbers)
    asks = (
        *(integers, conditions, outcomes, trace.checks, trace.value_guards),
        *(captured.arrays, captured.constants, captured.aliases),
        captured.streams.places,
    )
    return Ready(
        variant,
        plan,
        place,
        described.lifted,
        _keys(arrays),
        integers,
        conditions,
        known,
        outcomes,
        is_simple=not any(asks),
    )


def shaping(variant: Variant) -> list[int]:
    """Return the slots of integers that reach the shape of something."""
    return _slots(variant.cache.questions.extents)


def _slots(scalars: Iterable[Scalar]) -> list[int]:
    """Return the slots of the integers in ``scalars``."""
    found = scalar_walk.symbols(scalars)
    return sorted({s.slot for s in found if isinstance(s, ScalarInput)})


def _refuse_recorded_draws() -> None:
    """Refuse to draw while a graph is recorded, whose replays would draw the same."""
    from nfuser.execution.device.cuda.graphs import is_recording  # noqa: PLC0415 (few draw there)

    if is_recording():
        message = (
            "draw from a generator of torch's on the GPU, or outside of the CUDA graph "
            "into an array that it reads: a graph repeats what was recorded, random "
            "numbers of other generators too"
        )
        raise BackendError(message)


def _pointer(array: object) -> int:
    library = library_of(type(array))
    assert library is not None
    return pointer_reader(library)(array)


def _keys(arrays: tuple[object, ...]) -> tuple[object, ...]:
    found: list[object] = []
    for array in arrays:
        library = library_of(type(array))
        assert library is not None
        found.append(address_and_key(library, array)[1])
    return tuple(found)
