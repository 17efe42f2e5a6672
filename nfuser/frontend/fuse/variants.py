# SPDX-License-Identifier: Apache-2.0
"""The traces of one function, found by the structure of its arguments."""

from __future__ import annotations

import logging
import warnings
import weakref
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import nfuser.config as config
from nfuser.base.debug import timing
from nfuser.codegen.numba.compiler_lock import imported
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.trace import Trace, trace_function
from nfuser.compiler.trace.captures.changes import changed_constants
from nfuser.errors import ArgumentError, TraceError
from nfuser.execution.device.move import moved
from nfuser.execution.runtime.call import symbols_of
from nfuser.execution.runtime.tables.eviction import ByUse, Gone
from nfuser.frontend.call.inputs.arguments import same_number
from nfuser.frontend.call.inputs.changes import unchanged_by_tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.runtime.caches.executor_cache import FusionExecutorCache
    from nfuser.execution.runtime.tables.counters import Counters
    from nfuser.frontend.call.inputs.arguments import Arguments, Described

    _Object = weakref.ref[object]
    _Key = tuple[object, ...]
    _Found = tuple["Variant", tuple[Any, ...]]

MOST_VARIANTS = 64  # of one structure of arguments
MANY_TRACES = 8  # for one instance: from here on one warning says why
MOST_COMPARED = 16  # structures, of which the nearest says what is new
MOST_TOLD = 3  # things that are new
MANY_OBJECTS = 64  # instances of a method that were traced, each at least once
_log = logging.getLogger("nfuser")


def check_dialect(dialect: str | None) -> None:
    """Refuse a dialect that there is not; None leaves it to the arrays."""
    if dialect not in (None, "numpy"):
        message = (
            f'write dialect="numpy", or leave it to the arrays: expected one of '
            f"those, found {dialect!r}"
        )
        raise ArgumentError(message)


@node
class Variant:
    """One trace of the function, and all that was built for it."""

    trace: Trace
    cache: FusionExecutorCache


@cache
def _shared_cache() -> Callable[..., FusionExecutorCache]:
    """Import schedules, lowering and codegen: a third of what nfuser would take.

    Forks wait for the lock, as a module must not be half imported. Traces do not: it is
    held while anything is compiled.
    """
    imported("nfuser.execution.runtime.caches.shared_cache")
    from nfuser.execution.runtime.caches.shared_cache import shared_cache  # noqa: PLC0415

    return shared_cache


class Variants:
    """Traces of ``function``; of the structure looked for longest ago goes first."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        resize: ResizePolicy,
        dialect: str | None,
        should_merge: ShouldMerge | None = None,
    ) -> None:
        self._function = function
        self._name = name
        self._resize: ResizePolicy = resize
        self._dialect = dialect
        self._should_merge = should_merge
        self._found: ByUse[_Key, list[Variant]] = ByUse()
        self._gone = Gone()
        self._traced: Counter[_Key] = Counter()
        self._objects_traced = 0
        self._was_cleared = False
        self.warns = True  # once, of many traces

    def find(
        self,
        arguments: Arguments,
        described: Described,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> _Found | None:
        """Return the trace that serves a call, with the arrays that it captures."""
        structure = _structure(arguments, described)
        if structure not in self._found:
            return None
        self._found.move_to_end(structure)
        shapes = {slot: d.shape for slot, d in described.arrays.items()}
        values = symbols_of(shapes, described.numbers)
        for variant in self._found[structure]:
            call = (arguments, described, args, kwargs)
            arrays = _serves(variant.trace, values, *call)
            if arrays is not None:
                return variant, arrays
        return None

    def trace(
        self,
        arguments: Arguments,
        described: Described,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        counters: Counters,
    ) -> _Found:
        """Trace the function anew; return what ``find`` does.

        A trace in which the function raised serves this call alone, if the statements
        before do anything.
        """
        structure = _structure(arguments, described)
        drop_dead(self._found)
        drop_dead(self._traced)
        reason = self._why_traced(structure, described, args, kwargs)
        watched = unchanged_by_tracing(arguments.nest, self._name)
        with timing.timed("trace", self._name), watched:
            trace = trace_function(
                self._function, described.call(arguments, self._dialect)
            )
            trace = _with_tables_there(trace, described)
        found = self._found.get(structure, [])
        counters.add("traces")
        counters.reason = reason
        _log.info("traced %s: %s", self._name, reason)
        if trace.raised is None:
            self._warn_of_many(structure, reason)
        elif not (trace.fusion.outputs or trace.changed or trace.captured.draws):
            raise trace.raised.taken()
        arrays = arguments.read(trace.captured, args, kwargs)
        if arrays is None:
            changed = changed_constants(trace.captured, args, kwargs)
            what = next(changed, "a value")
            message = (
                f"{self._name} changes {what} outside itself that it also reads; a "
                "fused function runs once while it is traced, and not again: pass the "
                "value as an argument and return the new one"
            )
            raise TraceError(message)
        cache = _shared_cache()(trace.fusion, self._resize, self._should_merge)
        variant = Variant(trace, cache)
        if trace.raised is not None:
            return variant, arrays
        # The newest first, and not without bound: each call asks them in turn.
        self._found[structure] = [variant, *found[: MOST_VARIANTS - 1]]
        while (leaving := self._gone.drop(self._found, structure)) is not None:
            del self._found[leaving]
        return variant, arrays

    def table(self, counters: Counters) -> str:
        """Return a table of what was traced, concretized and compiled."""
        rows = ["trace  concretization  runtime  kernels"]
        for t, variant in enumerate(self.all()):
            rows += [f"{t:<6} {row}" for row in variant.cache.rows(counters)]
        return "\n".join(rows)

    def all(self) -> list[Variant]:
        """Return all that is kept, of objects that are alive."""
        drop_dead(self._found)
        return [variant for found in self._found.values() for variant in found]

    def clear(self) -> None:
        """Forget all traces."""
        self._found.clear()
        self._gone.clear()
        self._traced.clear()
        self._was_cleared |= self._objects_traced > 0
        self._objects_traced = 0

    def _why_traced(
        self,
        structure: _Key,
        described: Described,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> str:
        """Say what is new about a call that no trace serves."""
        if not self._objects_traced:
            since = " since cache_clear()" if self._was_cleared else ""
            return f"{self._name} was called for the first time{since}"
        if self._gone.is_back(structure):
            size = config.current().cache_size
            return f"its trace had to go: NFUSER_CACHE_SIZE is {size}"
        if not self._found:
            return "the objects that it was traced for are gone"
        # Whoever never traces twice does not need them.
        from nfuser.frontend.explain.broken_guards import broken_guards  # noqa: PLC0415
        from nfuser.frontend.explain.new_forms import new_forms  # noqa: PLC0415

        if variants := self._found.get(structure, []):
            call = (described, args, kwargs)
            found = min((broken_guards(v.trace, *call) for v in variants), key=len)
        else:
            latest = islice(reversed(self._found), MOST_COMPARED)
            found = new_forms(self._function, structure, latest)
        more = [f"{len(found) - MOST_TOLD} more"] if len(found) > MOST_TOLD else []
        return "; ".join([*found[:MOST_TOLD], *more])

    def _warn_of_many(self, structure: _Key, reason: str) -> None:
        """Warn once, where one instance, or any number of them, is traced again."""
        objects = _objects(structure)
        self._objects_traced += objects not in self._traced
        self._traced[objects] += 1
        traces = self._traced[objects]
        is_many = traces >= MANY_TRACES or self._objects_traced >= MANY_OBJECTS
        if not is_many or not self.warns:
            return
        self.warns = False
        times = f"{traces} times"
        if traces < MANY_TRACES:
            times = f"for {self._objects_traced} objects, each by itself"
        message = f"{self._name} was traced {times}; the last because {reason}"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


def _with_tables_there(trace: Trace, described: Described) -> Trace:
    """Return ``trace`` with its tables where the arrays of the call are."""
    places = [(d.library, d.device) for d in described.arrays.values()]
    there = next((pair for pair in places if pair[1].is_cuda), None)
    if there is None:
        return trace
    return replace(trace, captured=trace.captured.placed(lambda x: moved(x, *there)))


def _structure(arguments: Arguments, described: Described) -> _Key:
    return (*arguments.structure, described.lifted)


def _serves(
    trace: Trace,
    values: Mapping[Scalar, int],
    arguments: Arguments,
    described: Described,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[Any, ...] | None:
    """Return the captured arrays of this call if ``trace`` holds for it."""
    numbers = described.numbers
    if any(not same_number(numbers.get(g.slot), g.value) for g in trace.value_guards):
        return None
    arrays = arguments.read(trace.captured, args, kwargs)
    if arrays is None:
        return None
    known = dict(values)
    for captured, array in zip(trace.captured.arrays, arrays, strict=True):
        known |= symbols_of({captured.slot: tuple(array.shape)}, {})
    conditions = [g.condition for g in trace.guards]
    answers = scalar_walk.evaluate_all(conditions, known)
    pairs = zip(answers, trace.guards, strict=True)
    if any(a != g.answer for a, g in pairs):
        return None
    holds = all(g.holds(known, numbers) for g in trace.outcome_guards)
    return arrays if holds else None


def drop_dead(table: MutableMapping[_Key, Any]) -> None:
    """Forget what was built for objects that are gone (instances of methods)."""
    for key in [k for k in table if _names_the_dead(k)]:
        del table[key]


def _names_the_dead(key: _Key) -> bool:
    bare = cast("list[_Object]", [x for x in key if isinstance(x, weakref.ref)])
    return any(x() is None for x in (*_objects(key), *bare))


def _objects(key: _Key) -> tuple[_Object, ...]:
    """Return the objects among the arguments, ``self`` foremost."""
    pairs = (cast("_Key", x) for x in key if isinstance(x, tuple))
    statics = (x[1] for x in pairs if len(x) == 2)
    return tuple(cast("_Object", x) for x in statics if isinstance(x, weakref.ref))
