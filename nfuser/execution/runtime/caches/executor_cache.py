# SPDX-License-Identifier: Apache-2.0
"""From a fusion and the arrays of one call to a ready plan, through all caches.

Levels, outermost first: plan (exact shapes, strides, alignment), concretization (the
answers), runtime (the heuristics), schedule (the piece and its heuristic), kernel (the
source). Each is bounded, and makes what is missing once, whichever thread asks.
"""

from __future__ import annotations

from functools import partial, partialmethod
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import nfuser.config as config
from nfuser.compiler.concretize import (
    DEFAULT_RESIZE,
    check_policy,
    policy_in_force,
    questions,
)
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars.open_integer import closed
from nfuser.errors import ArgumentError, ShapeError
from nfuser.execution.device.cpu.threads import begin_sharing
from nfuser.execution.device.describe.descriptor import Descriptor
from nfuser.execution.runtime.caches.first_calls import find_call, first_call, keep_call
from nfuser.execution.runtime.call import InputReader, describe_call, run_call
from nfuser.execution.runtime.kernel_runtime import (
    FusionKernelRuntime,
    build_runtime,
    heuristics_for,
    known_runtime,
    outlined,
)
from nfuser.execution.runtime.outputs.ready_outputs import NOTHING_READY, Ready, apart
from nfuser.execution.runtime.pieces.concretized import (
    KnownConcretization,
    answers_of,
    concretized,
)
from nfuser.execution.runtime.pieces.whats_new import why_concretized, why_scheduled
from nfuser.execution.runtime.place import common_place, find_place
from nfuser.execution.runtime.planning.chains import KnownChains
from nfuser.execution.runtime.planning.plan import (
    NOTHING,
    Plan,
    build_plan,
    program_of,
    ready_plan,
    symbol_values,
)
from nfuser.execution.runtime.tables.counters import CacheInfo, Counters
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from nfuser.codegen.printers.source import Source
    from nfuser.compiler.concretize import Answers, ResizePolicy
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.host.call.program import CallProgram, Slot
    from nfuser.execution.runtime.caches.first_calls import KeptCall
    from nfuser.execution.runtime.call import DescribedCall
    from nfuser.execution.runtime.pieces.concretized import Concretization
    from nfuser.execution.runtime.place import Place


T = TypeVar("T")


@node
class Outline:
    """What is known of a call before any of its kernels is compiled.

    ``heuristics`` and ``sources`` are those of the pieces that kernels run, in order.
    """

    concretization: Concretization
    facts: Facts
    heuristics: tuple[Heuristic, ...]
    sources: tuple[Source, ...]
    program: CallProgram


class FusionExecutorCache:
    """All that is built for one fusion: run it, and see what running it made.

    Fused functions and definitions find theirs by what the fusion says, so that equal
    ones share it. It can be used by itself for a fusion in nfuser's IR, which takes
    the place of a function; inputs are arrays and numbers in the order of their slots.
    It is safe under threads. ``backend="interpret"`` runs the CUDA kernels of NumPy
    arrays in the interpreter that checks them; ``resize="static"`` compiles the extents
    of resized axes in. ``should_merge`` tells which two groups of expressions may share
    a kernel; without it, all may that one kernel can run.

    >>> import numpy as np
    >>> import nfuser
    >>> with nfuser.FusionDefinition() as fd:
    ...     x = fd.define_tensor(shape=[-1, -1])
    ...     fd.add_output(fd.ops.sum(fd.ops.mul(x, 2.0), 1))
    >>> cache = nfuser.FusionExecutorCache(fd.fusion)
    >>> cache.run([np.ones((2, 3), np.float32)])
    [array([6., 6.], dtype=float32)]
    >>> cache.run([np.ones((5, 3), np.float32)])[0].shape
    (5,)
    >>> cache.cache_info().concretizations, cache.cache_info().runtimes
    (1, 1)
    >>> print(cache.cache_table())  # doctest: +ELLIPSIS
    concretization  runtime  kernels
    0               0        reduction(inner, ...)
    """

    def __init__(
        self,
        fusion: Fusion,
        *,
        backend: str | None = None,
        resize: ResizePolicy = DEFAULT_RESIZE,
        should_merge: ShouldMerge | None = None,
    ) -> None:
        check_policy(resize)
        self.fusion = fusion
        self._should_merge = should_merge
        self._resize: ResizePolicy = resize
        self.questions = questions(fusion)
        self.concretizations: Memo[Hashable, Concretization] = Memo()
        self.runtimes: Memo[Hashable, FusionKernelRuntime] = Memo()
        self._chains = KnownChains()
        self._backend = backend
        self._reader = InputReader(fusion, self.questions)
        self._plans: Memo[Hashable, Plan] = Memo()
        self._counters = Counters()

    # -- plans, for those who keep them themselves ---------------------------

    def plan(
        self,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        counters: Counters,
        fusion: Fusion | None = None,
        outputs: Mapping[int, Descriptor] = NOTHING,
    ) -> Plan:
        """Return a plan for arrays and integers like these, by the argument's slot.

        ``outputs`` are those, by number, that kernels write where they lie. The plan
        serves other integers, too, where they are open.
        ``counters`` are the caller's. So is ``fusion``, which says the same as that of
        this cache: it names the caller's lines if the sizes do not fit.
        """
        answers, first = self._answers(arrays, integers, fusion), None
        is_first = self.concretizations.peek(_key(answers)) is None
        if is_first and self._should_merge is None:
            policy = policy_in_force(self._resize)
            first = first_call(self.fusion, policy, place, arrays, integers, outputs)
        kept = find_call(first)
        if kept is not None and kept.program is not None:
            return self._known_plan(kept, answers, place, arrays, counters)
        if first and place.backend == "cpu":
            begin_sharing(max((prod(d.shape) for d in arrays.values()), default=0))
        given = answers, place, arrays, integers, counters, outputs
        found, facts, is_new_here = self._found(*given)
        chosen = kept.heuristics if kept else heuristics_for(found.segmented, facts)
        heuristics = closed(chosen)
        runtime = self._runtime(found, heuristics, place, counters, is_new_here)
        made = found, runtime, facts, place, arrays, heuristics
        plan = build_plan(*made, self.questions.integers, outputs.keys())
        if first is not None and kept is None:
            keep_call(first, plan.program, runtime, heuristics)
        return plan

    def _known_plan(
        self,
        kept: KeptCall,
        answers: Answers,
        place: Place,
        arrays: Mapping[int, Descriptor],
        counters: Counters,
    ) -> Plan:
        """Return the plan of a call of which some process has kept all."""
        program, name, is_new_here = kept.program, self.fusion.name, counters.meet(self)
        assert program is not None
        known = KnownConcretization(self._concretizing(answers))
        plain = self._concretization(answers, counters, is_new_here, lambda: known)
        found = self._chains.of(plain) if program.has_chains else plain
        given = found, kept.heuristics, place
        build = partial(known_runtime, *given, program.forms, name)
        runtime = self._runtime(*given, counters, is_new_here, build)
        own = found, runtime, place, tuple(arrays), program.launching(runtime.kernels)
        return ready_plan(*own, name)

    def open_program(
        self,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        counters: Counters,
        fusion: Fusion,
    ) -> tuple[CallProgram, Mapping[int, Slot]]:
        """Return the program of a call whose sizes are open, and its inputs by slot.

        It serves all calls that answer what was asked of the sizes alike.
        """
        answers = self._answers(arrays, integers, fusion)
        found, facts, is_new = self._found(answers, place, arrays, integers, counters)
        heuristics = closed(heuristics_for(found.segmented, facts))
        runtime = self._runtime(found, heuristics, place, counters, is_new)
        return program_of(found, runtime, facts, arrays, heuristics, reuses=False)

    def plan_like(
        self,
        place: Place,
        inputs: Sequence[Any],
        outputs: Mapping[int, Descriptor] = NOTHING,
    ) -> tuple[Plan, dict[int, Any]]:
        """Return the plan of ``run`` for what is described, and the numbers by slot."""
        described, numbers = self._reader.sorted(inputs)
        for slot, d in described.items():
            if not isinstance(d, Descriptor):
                message = f"input {slot}: expected an array, found {type(d).__name__}"
                raise ArgumentError(message)
        self._reader.check(described)
        integers = {s: n for s, n in numbers.items() if type(n) is int}
        plan = self.plan(place, described, integers, self._counters, outputs=outputs)
        return plan, numbers

    def outline(
        self,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        counters: Counters,
        fusion: Fusion | None = None,
    ) -> Outline:
        """Return what the plan that ``plan`` would give is made of, not compiled."""
        answers = self._answers(arrays, integers, fusion)
        found, facts, _ = self._found(answers, place, arrays, integers, counters)
        heuristics = heuristics_for(found.segmented, facts)
        runtime = outlined(found.segmented, heuristics, place)
        given = runtime, facts, arrays, heuristics, self.questions.integers
        program, _ = program_of(found, *given)
        sources = tuple(source for source, _ in runtime.kernels)
        return Outline(found, facts, heuristics, sources, program)

    def alike(self, fusion: Fusion) -> FusionExecutorCache:
        """Return a new cache for ``fusion`` that treats it as this one does its own."""
        return FusionExecutorCache(
            fusion,
            backend=self._backend,
            resize=self._resize,
            should_merge=self._should_merge,
        )

    def _answers(
        self,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        fusion: Fusion | None,
    ) -> Answers:
        values, whose = symbol_values(arrays, integers), fusion or self.fusion
        return answers_of(whose, self.questions, values, self._resize)

    def _found(
        self,
        answers: Answers,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        counters: Counters,
        outputs: Mapping[int, Descriptor] = NOTHING,
    ) -> tuple[Concretization, Facts, bool]:
        """Return also whether the fusion is new to the caller."""
        is_new, make = counters.meet(self), self._concretizing(answers)
        found = self._concretization(answers, counters, is_new, make)
        given = found, place, arrays, symbol_values(arrays, integers), outputs
        return *self._chains.chosen(*given), is_new

    def _concretization(
        self,
        answers: Answers,
        counters: Counters,
        is_new_here: bool,
        make: Callable[[], Concretization],
    ) -> Concretization:
        found, is_new = self.concretizations.get(_key(answers), make)
        if is_new:
            counters.add("concretizations")
        if counters.meet(found) and not is_new_here:  # the first comes with its trace
            known = _others(found, self.concretizations.values(), counters)
            counters.reason = why_concretized(self.fusion, self.questions, found, known)
        return found

    def _concretizing(self, answers: Answers) -> Callable[[], Concretization]:
        given = self.fusion, self.questions, answers, self._should_merge
        return partial(concretized, *given)

    def _runtime(
        self,
        found: Concretization,
        heuristics: tuple[Heuristic, ...],
        place: Place,
        counters: Counters,
        is_new_here: bool,
        make: Callable[[], FusionKernelRuntime] | None = None,
    ) -> FusionKernelRuntime:
        def build() -> FusionKernelRuntime:
            made = make() if make else build_runtime(found.segmented, heuristics, place)
            counters.add("runtimes")
            counters.add("compiled", made.compiled)
            counters.add("loaded", made.loaded)
            counters.add("reused", made.reused)
            return made

        key = (found, heuristics, place.target, place.backend, place.device)
        runtime, is_new = self.runtimes.get(key, build)
        if counters.meet(runtime):
            if not is_new:
                counters.add("reused", len(runtime.heuristics))
            known = _others(runtime, self.runtimes.values(), counters)
            if not is_new_here and (why := why_scheduled(runtime, place, known)):
                counters.reason = why
        return runtime

    # -- calls ---------------------------------------------------------------

    def run(self, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> list[Any]:
        """Return the outputs for arrays and numbers, in the order of their slots.

        Kernels write those of ``outputs`` that are arrays and share no memory with
        what is read or with one another; all others are made.
        """
        call = self._reader.read(inputs)
        ready = apart(call, outputs)
        self._counters.add("calls")
        forms = tuple((number, d) for number, (_, d) in ready.items())
        key = (call.key, forms) if forms else call.key
        plan, is_new = self._plans.get(key, lambda: self._plan_of(call, ready))
        if not is_new:
            self._counters.add("hits")
        return run_call(plan, call, {k: array for k, (array, _) in ready.items()})

    execute = run

    def __deepcopy__(self, memo: object) -> FusionExecutorCache:
        """Return a cache of its own for the fusion, in which nothing is built yet."""
        return _cache_of(*self.__reduce__()[1])

    __copy__ = partialmethod(__deepcopy__, None)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Pickle what it is made of; what it built is built again where it is."""
        chosen = self.fusion, self._backend, self._resize, self._should_merge
        return _cache_of, chosen

    def kernel_runtime_for(self, inputs: Sequence[Any]) -> FusionKernelRuntime:
        """Return the kernels that a call with ``inputs`` runs."""
        return self.plan_for(inputs).runtime

    def program_for(self, inputs: Sequence[Any]) -> CallProgram:
        """Return the kernels, allocations and frees of a call with ``inputs``."""
        return self.plan_for(inputs).program

    def plan_for(self, inputs: Sequence[Any]) -> Plan:
        """Return all that is decided for calls of the form of one with ``inputs``."""
        call = self._reader.read(inputs)
        return self._plans.get(call.key, lambda: self._plan_of(call))[0]

    def _plan_of(self, call: DescribedCall, ready: Ready = NOTHING_READY) -> Plan:
        described = describe_call(call, "input {}".format)
        named = {f"input {slot}": d for slot, d in described.items()}
        library, device = common_place("run", named)
        place = find_place(library, device, self._backend, has_arrays=bool(named))
        self._reader.check(described)
        integers = {s: n for s, n in call.numbers.items() if type(n) is int}
        outputs = {k: d for k, (_, d) in ready.items()}
        plan = self.plan(place, described, integers, self._counters, outputs=outputs)
        for number, d in outputs.items():
            slot = plan.program.outputs[number]
            if (slot.shape, slot.dtype) != (d.shape, d.dtype):
                message = (
                    f"output {number}: expected {slot.dtype} of shape {slot.shape}, "
                    f"found {d.dtype} of shape {d.shape}"
                )
                raise ShapeError(message)
        return plan

    # -- looking inside ------------------------------------------------------

    def cache_info(self) -> CacheInfo:
        """Return how often each level had to work for calls of ``run``."""
        return self._counters.info()

    def why(self) -> str:
        """Say what was new about the last call of ``run`` that compiled."""
        return self._counters.reason

    def cache_table(self) -> str:
        """Return a table of what was concretized, scheduled and compiled."""
        return "\n".join(["concretization  runtime  kernels", *self.rows()])

    def rows(self, counters: Counters | None = None) -> list[str]:
        """Return the lines of the table, or those that a caller's calls used."""
        runtimes = self.runtimes.values()
        if counters is not None:
            runtimes = [r for r in runtimes if counters.has_met(r)]
        pieces: dict[object, list[FusionKernelRuntime]] = {}
        for runtime in runtimes:
            pieces.setdefault(runtime.segmented, []).append(runtime)
        return [
            f"{c:<15} {r:<8} {'; '.join(str(h) for h in runtime.heuristics)}"
            for c, found in enumerate(pieces.values())
            for r, runtime in enumerate(found)
        ]

    def clear(self) -> None:
        """Forget everything; kernels stay, for they belong to no fusion."""
        self._plans.clear()
        self.runtimes.clear()
        self.concretizations.clear()
        self._counters = Counters()


def _key(answers: Answers) -> Hashable:
    return answers, config.current().of_kernels


def _others(new: T, found: Iterable[T], counters: Counters) -> list[T]:
    """Return what the caller's calls used before ``new``, or all where that is none."""
    others = [one for one in found if one is not new]
    return [one for one in others if counters.has_met(one)] or others


def _cache_of(
    fusion: Fusion,
    backend: str | None,
    resize: ResizePolicy,
    should_merge: ShouldMerge | None,
) -> FusionExecutorCache:
    return FusionExecutorCache(
        fusion, backend=backend, resize=resize, should_merge=should_merge
    )
