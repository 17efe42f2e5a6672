# SPDX-License-Identifier: Apache-2.0
"""Run a definition: check the inputs of a call, find or make its plan, launch."""

# Arrays of five libraries have no common static type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from nfuser.device.allocate import finish
from nfuser.device.descriptor import (
    CPU,
    Library,
    describe,
    key_reader,
    library_of,
    pointer_reader,
)
from nfuser.errors import ArgumentError, DeviceError, ShapeError
from nfuser.frontend.definition_inputs import TensorInput
from nfuser.frontend.place import BACKENDS, place_of
from nfuser.frontend.scalar_checks import check_scalars
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.locks import ForkSafeLock
from nfuser.runtime.counters import Counters
from nfuser.runtime.executor_cache import FusionExecutorCache, Plan

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from nfuser.device.descriptor import Descriptor
    from nfuser.frontend.definition_draft import Requirement
    from nfuser.frontend.definition_inputs import Input
    from nfuser.ir.fusion import Fusion
    from nfuser.ops import ScalarFits
    from nfuser.runtime.executor_cache import Place

MOST_PLANS = 1024  # of one definition; the oldest goes first


@node
class Call:
    """The inputs of one call: arrays and numbers by slot, and a key of their form."""

    arrays: dict[int, Any]
    pointers: dict[int, int]
    numbers: dict[int, Any]
    key: tuple[Hashable, ...]


class Runner:
    """A complete definition with all that was built for it; safe under threads."""

    def __init__(
        self,
        fusion: Fusion,
        inputs: Sequence[Input],
        requirements: Sequence[Requirement],
        fits: Sequence[ScalarFits],
        backend: str | None,
    ) -> None:
        self.fusion = fusion
        self.counters = Counters()
        self._inputs = tuple(inputs)
        self._requirements = tuple(requirements)
        self._fits = tuple(fits)
        self._backend = backend
        self._cache = FusionExecutorCache(fusion, self.counters)
        self._plans: OrderedDict[tuple[Hashable, ...], tuple[Plan, Place]] = (
            OrderedDict()
        )
        self._lock = ForkSafeLock()
        asked = scalar_walk.symbols(self._cache.questions.extents)
        self._shaping = tuple(s.slot for s in asked if isinstance(s, sc.ScalarInput))
        self._has_integers = any(
            isinstance(s, sc.ScalarInput)
            for s in scalar_walk.symbols(c.scalar for c in (*requirements, *fits))
        )

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs for ``inputs``."""
        call = self._call(inputs)
        self.counters.add("calls")
        found = self._plans.get(call.key)
        if found is None:
            found = self._prepared(call)
        else:
            self.counters.add("hits")
        plan, place = found
        # What sizes alone decide was checked when the plan was made.
        if self._has_integers:
            self._check(_values(plan, call.numbers))
        given = {
            plan.inputs[slot]: (array, call.pointers[slot])
            for slot, array in call.arrays.items()
        }
        scalars = _values(plan, call.numbers) if call.numbers else {}
        outputs, stream = plan.evaluator(given, call.numbers, scalars)
        return [finish(place.library, array, stream=stream) for array in outputs]

    def plan(self, inputs: Sequence[Any]) -> Plan:
        """Return the plan that a call with ``inputs`` follows."""
        return self._prepared(self._call(inputs))[0]

    # -- one call ------------------------------------------------------------

    def _call(self, inputs: Sequence[Any]) -> Call:
        if len(inputs) != len(self._inputs):
            names = ", ".join(x.name for x in self._inputs)
            message = (
                f"execute: expected {len(self._inputs)} inputs ({names}), found "
                f"{len(inputs)}"
            )
            raise ArgumentError(message)
        arrays: dict[int, Any] = {}
        pointers: dict[int, int] = {}
        numbers: dict[int, Any] = {}
        key: list[Hashable] = []
        for slot, (defined, item) in enumerate(zip(self._inputs, inputs, strict=True)):
            if not isinstance(defined, TensorInput):
                numbers[slot] = defined.read(slot, item)
                continue
            library = library_of(type(item))
            if isinstance(item, np.generic):  # NumPy's own form of a 0-d array
                item, library = np.asarray(item), Library.NUMPY
            elif library is None:
                describe(item, f"input {slot} ({defined.name})")
                raise AssertionError(item)
            arrays[slot] = item
            pointers[slot] = pointer = pointer_reader(library)(item)
            key += [library, key_reader(library)(item), pointer & 15]
        key += [numbers[slot] for slot in self._shaping]
        return Call(arrays, pointers, numbers, tuple(key))

    def _prepared(self, call: Call) -> tuple[Plan, Place]:
        with self._lock:
            found = self._plans.get(call.key)
            if found is None:
                found = self._plans[call.key] = self._made(call)
            while len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
            return found

    def _made(self, call: Call) -> tuple[Plan, Place]:
        described: dict[int, Descriptor] = {}
        for slot, array in call.arrays.items():
            defined = self._inputs[slot]
            assert isinstance(defined, TensorInput)
            described[slot] = describe(array, f"input {slot} ({defined.name})")
            defined.check(slot, described[slot])
        place = self._place(described)
        shapes = {slot: d.shape for slot, d in described.items()}
        self._check(_symbols(shapes, call.numbers))
        if not self._plans:
            self.counters.reason = "the definition was called for the first time"
        integers = {s: n for s, n in call.numbers.items() if type(n) is int}
        return self._cache.plan(place, described, integers), place

    def _check(self, values: Mapping[sc.Scalar, int]) -> None:
        for needed in self._requirements:
            if (number := scalar_walk.evaluate(needed.scalar, values)) < 0:
                raise ShapeError(needed.message.replace("{}", str(number), 1))
        check_scalars(self._fits, values)

    def _place(self, arrays: Mapping[int, Descriptor]) -> Place:
        devices = {d.device for d in arrays.values()}
        if len(devices) > 1:
            listed = ", ".join(
                f"input {slot} ({self._inputs[slot].name}) on {d.device}"
                for slot, d in arrays.items()
            )
            message = (
                f"all arrays must be on one device; found {listed}. An array without "
                "axes may stay on the CPU if it is defined with is_cpu=True"
            )
            raise DeviceError(message)
        device = next(iter(devices), CPU)
        libraries = [d.library for d in arrays.values()] or [Library.NUMPY]
        # NumPy arrays beside those of another library are its guests.
        library = next((x for x in libraries if x is not Library.NUMPY), libraries[0])
        natural = "cuda" if device.is_cuda else "cpu"
        chosen = self._backend or natural
        if {chosen, natural} == {"cpu", "cuda"}:
            message = (
                f"backend={chosen!r} was asked for, but the arrays are on {device}"
            )
            raise ArgumentError(message)
        return place_of(library, device, chosen)


def check_backend(backend: str | None) -> None:
    """Refuse a backend that there is not."""
    if backend is not None and backend not in BACKENDS:
        message = f"backend must be one of {BACKENDS}, not {backend!r}"
        raise ArgumentError(message)


def _values(plan: Plan, numbers: Mapping[int, Any]) -> dict[sc.Scalar, int]:
    return _symbols({s: slot.shape for s, slot in plan.inputs.items()}, numbers)


def _symbols(
    shapes: Mapping[int, tuple[int, ...]], numbers: Mapping[int, Any]
) -> dict[sc.Scalar, int]:
    values: dict[sc.Scalar, int] = {}
    for slot, shape in shapes.items():
        for axis, extent in enumerate(shape):
            values[sc.size(slot, axis)] = extent
    for slot, number in numbers.items():
        if type(number) is int:
            values[sc.scalar_input(slot)] = number
    return values
