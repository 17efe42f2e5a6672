# SPDX-License-Identifier: Apache-2.0
"""From a fusion and the arrays of one call to a ready plan, through all caches.

Levels, outermost first: plan (exact shapes, strides, alignment), concretization (the
answers), runtime (the heuristics), schedule (the piece and its heuristic), kernel (the
source). Each is bounded, and makes what is missing once, whichever thread asks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partialmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import nfuser.config as config
from nfuser.concretize import (
    DEFAULT_RESIZE,
    answer,
    check_policy,
    concretize,
    policy_in_force,
    questions,
)
from nfuser.debug import dump, timing
from nfuser.device.describe.descriptor import Descriptor, describe
from nfuser.errors import ArgumentError, ShapeError
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.open_integer import closed
from nfuser.ir.scalar import ScalarInput
from nfuser.ir.text import text
from nfuser.rewrite.passes import rewrite
from nfuser.runtime.call import InputReader, describe_call, run_call
from nfuser.runtime.chosen import first_heuristics
from nfuser.runtime.kernel_runtime import (
    FusionKernelRuntime,
    build_runtime,
    heuristics_for,
    sources_for,
)
from nfuser.runtime.place import common_place, find_place
from nfuser.runtime.plan import (
    NOTHING,
    Concretization,
    Plan,
    build_open_program,
    build_plan,
    facts_of,
    symbol_values,
)
from nfuser.runtime.segmentation import segment
from nfuser.runtime.tables.counters import CacheInfo, Counters
from nfuser.runtime.tables.memo import Memo
from nfuser.runtime.whats_new import why_concretized, why_scheduled
from nfuser.segment.segmented import text as segmented_text

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from nfuser.codegen.printers.source import Source
    from nfuser.concretize import Answers, ResizePolicy
    from nfuser.host.call.program import CallProgram, Slot
    from nfuser.ir.fusion import Fusion
    from nfuser.runtime.call import DescribedCall
    from nfuser.runtime.place import Place
    from nfuser.schedule.facts.facts import Facts
    from nfuser.schedule.heuristics.heuristics import Heuristic
    from nfuser.segment import ShouldMerge


T = TypeVar("T")
Ready: TypeAlias = "Mapping[int, tuple[Any, Descriptor]]"
NOTHING_READY: Ready = MappingProxyType({})


@node
class Outline:
    """What is known of a call before any of its kernels is compiled.

    ``heuristics`` and ``sources`` are those of the pieces that kernels run, in order.
    """

    concretization: Concretization
    facts: Facts
    heuristics: tuple[Heuristic, ...]
    sources: tuple[Source, ...]


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
        asked = scalar_walk.symbols(self.questions.scalars)
        self._decided = frozenset(s for s in asked if isinstance(s, ScalarInput))
        self.concretizations: Memo[Hashable, Concretization] = Memo()
        self.runtimes: Memo[Hashable, FusionKernelRuntime] = Memo()
        self._backend = backend
        self._reader = InputReader(fusion, self.questions.scalars)
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
        found, facts, is_new_here, is_first = self._found(
            place, arrays, integers, counters, fusion, outputs
        )
        heuristics = closed(self._heuristics(found, facts, is_first=is_first))
        runtime = self._runtime(found, heuristics, place, counters, is_new_here)
        return build_plan(
            found,
            runtime,
            facts,
            place,
            arrays,
            heuristics,
            self._decided,
            outputs.keys(),
        )

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
        found, facts, is_new, _ = self._found(place, arrays, integers, counters, fusion)
        heuristics = closed(heuristics_for(found.segmented, facts))
        runtime = self._runtime(found, heuristics, place, counters, is_new)
        return build_open_program(found, runtime, facts, arrays, heuristics)

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
        found, facts, *_ = self._found(place, arrays, integers, counters, fusion)
        heuristics = heuristics_for(found.segmented, facts)
        sources = sources_for(found.segmented, heuristics, place)
        return Outline(found, facts, heuristics, sources)

    def alike(self, fusion: Fusion) -> FusionExecutorCache:
        """Return a new cache for ``fusion`` that treats it as this one does its own."""
        return FusionExecutorCache(
            fusion,
            backend=self._backend,
            resize=self._resize,
            should_merge=self._should_merge,
        )

    def _found(
        self,
        place: Place,
        arrays: Mapping[int, Descriptor],
        integers: Mapping[int, int],
        counters: Counters,
        fusion: Fusion | None,
        outputs: Mapping[int, Descriptor] = NOTHING,
    ) -> tuple[Concretization, Facts, bool, bool]:
        """Return also whether the fusion is new to the caller, and what was found."""
        values = symbol_values(arrays, integers)
        policy = policy_in_force(self._resize)
        whose = fusion or self.fusion
        compiled_in = {"static": policy != "dynamic", "exact": policy == "exact"}
        answers = closed(answer(whose, self.questions, values, **compiled_in))
        is_new_here = counters.meet(self)
        found, is_first = self._concretization(answers, counters, is_new_here)
        facts = facts_of(found, place, arrays, values, outputs)
        return found, facts, is_new_here, is_first

    def _heuristics(
        self, found: Concretization, facts: Facts, *, is_first: bool
    ) -> tuple[Heuristic, ...]:
        if is_first and self._should_merge is None:
            return first_heuristics(found, facts)
        return heuristics_for(found.segmented, facts)

    def _concretization(
        self, answers: Answers, counters: Counters, is_new_here: bool
    ) -> tuple[Concretization, bool]:
        key = (answers, config.current().of_kernels)
        found, is_new = self.concretizations.get(key, lambda: self._made(answers))
        if is_new:
            counters.add("concretizations")
        if counters.meet(found) and not is_new_here:  # the first comes with its trace
            known = _others(found, self.concretizations.values(), counters)
            counters.reason = why_concretized(self.fusion, self.questions, found, known)
        return found, is_new

    def _made(self, answers: Answers) -> Concretization:
        with timing.timed("concretize", self.fusion.name):
            concrete = concretize(self.fusion, self.questions, answers)
        with timing.timed("rewrite", self.fusion.name):
            rewritten = rewrite(concrete)
        with timing.timed("segment", self.fusion.name):
            segmented = segment(rewritten.fusion, self._should_merge)
        if dump.wants("concrete"):
            dump.dump("concrete", text(concrete.fusion), self.fusion.name)
        if dump.wants("segments"):
            dump.dump("segments", segmented_text(segmented), self.fusion.name)
        return Concretization(concrete, rewritten, segmented)

    def _runtime(
        self,
        found: Concretization,
        heuristics: tuple[Heuristic, ...],
        place: Place,
        counters: Counters,
        is_new_here: bool,
    ) -> FusionKernelRuntime:
        def build() -> FusionKernelRuntime:
            made = build_runtime(found.segmented, heuristics, place)
            counters.add("runtimes")
            counters.add("compiled", made.compiled)
            counters.add("loaded", made.loaded)
            counters.add("reused", made.reused)
            return made

        key = (found, heuristics, place.target, place.backend, place.device)
        runtime, is_new = self.runtimes.get(key, build)
        if counters.meet(runtime):
            if not is_new:
                counters.add("reused", len(runtime.segments))
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
        ready = _apart(call, outputs)
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


def _apart(call: DescribedCall, outputs: Sequence[Any]) -> Ready:
    """Return the outputs that kernels may write, each with what it is, by number."""
    if all(array is None for array in outputs):
        return NOTHING_READY
    taken = [describe(array, "an input") for array in call.arrays.values()]
    homes = {(d.library, d.device) for d in taken}
    ready: dict[int, tuple[Any, Descriptor]] = {}
    for number, array in enumerate(outputs):
        if array is None:
            continue
        d = describe(array, f"output {number}")
        sizes = zip(d.shape, d.strides, strict=True)
        is_apart = not any(d.meets(other) for other in taken)
        is_apart &= all(n == 1 or step for n, step in sizes)
        if d.writable and is_apart and {(d.library, d.device)} == homes:
            # What the kernel depends on, and no more: the address is another each time.
            ready[number] = array, replace(d, pointer=d.pointer & 15)
        taken.append(d)
    return ready
