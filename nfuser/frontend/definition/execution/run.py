# SPDX-License-Identifier: Apache-2.0
"""Run a definition: check the inputs of a call, find or make its plan, launch."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.base.debug.progress import watching
from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.errors import ArgumentError, DeviceError, ShapeError
from nfuser.execution.runtime.caches.shared_cache import shared_cache
from nfuser.execution.runtime.call import (
    DescribedCall,
    as_array,
    as_read,
    call_symbols,
    describe_call,
    make_call,
    run_call,
    symbols_of,
)
from nfuser.execution.runtime.place import common_place, find_place
from nfuser.execution.runtime.tables.memo import Memo
from nfuser.frontend.call.inputs.scalar_checks import check_scalars
from nfuser.frontend.definition.alias import check_aliases, write_aliases
from nfuser.frontend.definition.inputs import DerivedInput, NumberInput, TensorInput
from nfuser.frontend.definition.operations.stored import Float8, floats_of
from nfuser.frontend.explain.dump_call import dump_call

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.ops import ScalarFits
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.execution.runtime.tables.counters import CacheInfo, Counters
    from nfuser.frontend.definition.draft import Requirement
    from nfuser.frontend.definition.inputs import Input
    from nfuser.frontend.explain.explain import Seen

    Asked = tuple[Place, dict[int, Descriptor], dict[int, int]]


_NOTHING: Mapping[int, Float8] = MappingProxyType({})


@value
class DefinitionCounts:
    """What calls of a definition found, and what was built for them."""

    runner: Runner
    counters: Counters

    def why(self) -> str:
        """Say what was new about the last call that compiled."""
        return self.counters.reason

    def cache_table(self) -> str:
        """Return a table of what was concretized, scheduled and compiled."""
        return self.runner.cache_table(self.counters)

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked and had to work."""
        return self.counters.info()


class Runner:
    """A complete definition with its plans; safe under threads.

    Definitions that record the same calls share it, and each counts its own.
    """

    def __init__(
        self,
        fusion: Fusion,
        inputs: Sequence[Input],
        requirements: Sequence[Requirement],
        fits: Sequence[ScalarFits],
        backend: str | None,
        resize: ResizePolicy,
        aliases: Mapping[int, int],
        should_merge: ShouldMerge | None = None,
        stored: Mapping[int, Float8] = _NOTHING,
    ) -> None:
        self.fusion = fusion
        self._resize: ResizePolicy = resize
        self._aliases = dict(aliases)
        self._written = frozenset(aliases.values())
        shown = [k for k in range(len(fusion.outputs)) if k not in self._aliases]
        self._stored = {n: stored[k] for n, k in enumerate(shown) if k in stored}
        self._inputs = tuple(inputs)
        numbered = list(enumerate(inputs))
        self._derived = [(k, x) for k, x in numbered if isinstance(x, DerivedInput)]
        self._given = [
            (k, x) for k, x in numbered if isinstance(x, TensorInput | NumberInput)
        ]
        self._positions = {slot: k for k, (slot, _) in enumerate(self._given)}
        self._requirements = tuple(requirements)
        self._fits = tuple(fits)
        self._backend = backend
        self._cache = shared_cache(fusion, resize, should_merge)
        self._plans: Memo[tuple[Hashable, ...], Plan] = Memo()
        asked = scalar_walk.symbols(self._cache.questions.scalars)
        self._shaping = tuple(s.slot for s in asked if isinstance(s, sc.ScalarInput))
        self._has_integers = any(
            isinstance(s, sc.ScalarInput)
            for s in scalar_walk.symbols(c.scalar for c in (*requirements, *fits))
        )

    def run(self, inputs: Sequence[Any], counters: Counters) -> list[Any]:
        """Return the outputs for ``inputs``."""
        call = self._call(inputs, counters)
        counters.add("calls")
        plan, is_new = self._plans.get(call.key, lambda: self._made(call, counters))
        if not is_new:
            counters.add("hits")
        # What sizes alone decide was checked when the plan was made.
        if self._has_integers:
            self._check(call_symbols(plan, call.numbers))
        outputs = run_call(plan, call)
        if self._aliases:
            outputs = write_aliases(self._aliases, plan, outputs, call.arrays)
        for number, form in self._stored.items():
            outputs[number] = floats_of(outputs[number], form)
        return outputs

    def plan(self, inputs: Sequence[Any], counters: Counters) -> Plan:
        """Return the plan that a call with ``inputs`` follows."""
        call = self._call(inputs)
        return self._plans.get(call.key, lambda: self._made(call, counters))[0]

    def has_plan(self, inputs: Sequence[Any]) -> bool:
        """Tell whether a call with ``inputs`` finds its plan."""
        return self._plans.peek(self._call(inputs).key) is not None

    def alone(self) -> Runner:
        """Return what runs each operation in a kernel of its own, and writes no input.

        What would be written is left out, as it is in the outputs of this one.
        """
        written = self._aliases.keys()
        shown = [t for k, t in enumerate(self.fusion.outputs) if k not in written]
        return Runner(
            Fusion(self.fusion.name, self.fusion.exprs, shown),
            self._inputs,
            self._requirements,
            self._fits,
            self._backend,
            self._resize,
            aliases={},
            should_merge=_never,
            stored=self._stored,
        )

    def look(self, inputs: Sequence[Any], counters: Counters) -> Seen:
        """Look at a call with ``inputs``; nothing is compiled, and nothing runs."""
        return self._seen(self._asked(self._call(inputs)), counters)

    def _seen(self, asked: Asked, counters: Counters) -> Seen:
        from nfuser.frontend.explain.explain import explain  # noqa: PLC0415 (few ask for it)

        names = {slot: defined.name for slot, defined in enumerate(self._inputs)}
        given = (self._cache, self.fusion, *asked, counters, names, self._aliases)
        return explain(*given)

    def cache_table(self, counters: Counters) -> str:
        """Return a table of what calls that ``counters`` count used."""
        rows = self._cache.rows(counters)
        return "\n".join(["concretization  runtime  kernels", *rows])

    # -- one call ------------------------------------------------------------

    def _call(
        self, inputs: Sequence[Any], counters: Counters | None = None
    ) -> DescribedCall:
        if not isinstance(inputs, list | tuple):
            message = f"execute: expected a list of inputs, found {_type(inputs)}"
            raise ArgumentError(message)
        if len(inputs) != len(self._given):
            names = ", ".join(x.name for _, x in self._given)
            message = (
                f"execute: expected {len(self._given)} inputs ({names}), found "
                f"{len(inputs)}"
            )
            raise ArgumentError(message)
        arrays: dict[int, Any] = {}
        numbers: dict[int, Any] = {}
        for position, item in enumerate(inputs):
            slot, defined = self._given[position]
            if isinstance(defined, TensorInput):
                if slot in self._written and isinstance(item, np.generic):
                    message = f"{self._name(slot)}: a NumPy scalar is never written"
                    raise ArgumentError(message)
                given = as_array(defined.taken(position, item), self._name(slot))
                arrays[slot] = given if slot in self._written else as_read(given)
                if counters is not None and arrays[slot] is not given:
                    counters.add("copied")
            else:
                numbers[slot] = defined.read(position, item)
        if self._derived:
            self._derive(arrays, numbers)
        return make_call(arrays, numbers, self._shaping)

    def _derive(self, arrays: Mapping[int, Any], numbers: dict[int, Any]) -> None:
        """Work the integers out that nobody passes."""
        shapes = {slot: tuple(array.shape) for slot, array in arrays.items()}
        for slot, derived in self._derived:
            numbers[slot] = derived.read(symbols_of(shapes, numbers), numbers)

    def _name(self, slot: int) -> str:
        return f"input {self._positions[slot]} ({self._inputs[slot].name})"

    def _asked(
        self, call: DescribedCall
    ) -> tuple[Place, dict[int, Descriptor], dict[int, int]]:
        """Return where a call runs, and what its arrays and its integers are."""
        described = describe_call(call, self._name)
        for slot, d in described.items():
            defined = self._inputs[slot]
            assert isinstance(defined, TensorInput)
            defined.check(self._positions[slot], d)
        place = self._place(described)
        shapes = {slot: d.shape for slot, d in described.items()}
        self._check(symbols_of(shapes, call.numbers))
        integers = {s: n for s, n in call.numbers.items() if type(n) is int}
        return place, described, integers

    def _made(self, call: DescribedCall, counters: Counters) -> Plan:
        asked = self._asked(call)
        if counters.meet(self):
            counters.reason = "the definition was called for the first time"
            if counters.counts["calls"] > 1:  # an equal definition's plans served them
                counters.meet(self._cache)
        known = counters.counts["concretizations"]
        with watching(self.fusion.name) as told:
            plan = self._cache.plan(*asked, counters, self.fusion)
            told["why"] = counters.reason
        check_aliases(self._aliases, plan, asked[1], self._name)
        if counters.counts["concretizations"] > known:
            look = partial(self._seen, asked, counters)
            dump_call(self.fusion.name, None, DefinitionCounts(self, counters), look)
        return plan

    def _check(self, values: Mapping[sc.Scalar, int]) -> None:
        for needed in self._requirements:
            if (number := scalar_walk.evaluate(needed.scalar, values)) < 0:
                raise ShapeError(needed.message.replace("{}", str(number), 1))
        check_scalars(self._fits, values)

    def _place(self, arrays: Mapping[int, Descriptor]) -> Place:
        named = {self._name(slot): d for slot, d in arrays.items()}
        try:
            library, device = common_place("execute", named)
        except DeviceError as error:
            hint = (
                ". An array without axes may stay on the CPU if it is defined with "
                "is_cpu=True"
            )
            scalars = any(not d.shape and not d.device.is_cuda for d in arrays.values())
            if scalars:
                error.args = (f"{error}{hint}",)
            raise
        return find_place(library, device, self._backend, has_arrays=bool(arrays))


def _never(*_: object) -> bool:
    return False


def _type(item: object) -> str:
    return type(item).__name__
