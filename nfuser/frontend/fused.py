# SPDX-License-Identifier: Apache-2.0
"""``nfuser.fuse``: a NumPy-style function becomes one that runs as few kernels."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import warnings
import weakref
from collections import Counter, OrderedDict
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

import nfuser.config as config
from nfuser.concretize import DEFAULT_RESIZE, check_policy
from nfuser.debug import timing
from nfuser.device.allocate import finish
from nfuser.device.descriptor import describe, key_reader, library_of, pointer_reader
from nfuser.errors import ArgumentError, NfuserError, TraceError
from nfuser.frontend.argument_names import unknown_keyword
from nfuser.frontend.arguments import Arguments, Described, host_number
from nfuser.frontend.call_line import name_call
from nfuser.frontend.kernels import KernelView
from nfuser.frontend.scalar_checks import check_scalars
from nfuser.ir import scalar as sc
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.locks import ForkSafeLock
from nfuser.runtime.counters import CacheInfo, Counters
from nfuser.runtime.place import Place, common_place, find_place
from nfuser.runtime.plan import Plan, symbol_values
from nfuser.runtime.registry import shared_cache
from nfuser.trace import Trace, current_tracer, trace_function
from nfuser.trace import tree as trees

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.concretize import ResizePolicy
    from nfuser.ir.scalar import Scalar
    from nfuser.runtime.executor_cache import FusionExecutorCache
    from nfuser.trace.outcomes import OutcomeGuard

    _Object = weakref.ref[object]

P = ParamSpec("P")
R = TypeVar("R")

MOST_PLANS = 1024  # of one function; one that was not used lately goes first
MOST_VARIANTS = 64  # of one structure of arguments
MANY_TRACES = 8  # for one instance: from here on one warning says why
MANY_OBJECTS = 64  # instances of a method that were traced, each at least once
_METHODS: tuple[type[Any], ...] = (classmethod, staticmethod)
_log = logging.getLogger("nfuser")


@node
class Variant:
    """One trace of the function, and all that was built for it."""

    trace: Trace
    cache: FusionExecutorCache


@node
class Ready:
    """A plan with what must hold for a call to use it."""

    variant: Variant
    plan: Plan
    place: Place
    lifted: tuple[int, ...]
    captured_keys: tuple[object, ...]
    integers: Mapping[int, int]  # values that the plan depends on
    outcomes: tuple[OutcomeGuard, ...]  # those that other numbers may break
    is_simple: bool  # nothing but the key needs to be looked at


class Plans:
    """The plans of one key; ``is_used`` since a search for one to forget passed."""

    __slots__ = ("is_used", "ready")

    def __init__(self, ready: list[Ready]) -> None:
        self.ready = ready
        self.is_used = False


class Fused(Generic[P, R]):
    """A function that is traced, compiled and run fused.

    Attribute ``__wrapped__`` is the plain function.
    """

    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        backend: str | None,
        resize: ResizePolicy = DEFAULT_RESIZE,
    ) -> None:
        check_policy(resize)
        functools.update_wrapper(self, function)
        self.__nfuser_wrapped__ = function
        self._function = function
        self._backend = backend
        self._resize: ResizePolicy = resize
        self._name = getattr(function, "__name__", "function")
        self._lock = ForkSafeLock()
        self._counters = Counters()
        self._variants: dict[tuple[object, ...], list[Variant]] = {}
        self._plans: OrderedDict[tuple[object, ...], Plans] = OrderedDict()
        self._traced: Counter[tuple[object, ...]] = Counter()
        self._objects_traced = 0
        self._has_warned = False

    # -- calls ---------------------------------------------------------------

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the fused function."""
        if current_tracer() is not None or config.current().disable_all:
            return self._function(*args, **kwargs)
        given: tuple[Any, ...] = args
        named: Mapping[str, Any] = kwargs
        try:
            if named:
                given, named = self._normalised(given, named)
            arguments = Arguments(given, named, self._function)
            self._counters.counts["calls"] += 1
            ready, arrays = self._find(arguments, given, named)
            if ready is None:
                ready, arrays = self._prepare(arguments, given, named)
            else:
                self._counters.counts["hits"] += 1
            return self._run(ready, arguments, arrays)
        except NfuserError as error:
            name_call(error)
            raise

    def _normalised(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Pass by position what can be, so that spelling makes no difference."""
        signature = inspect.signature(self._function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = unknown_keyword(signature, kwargs) or error
            message = f"{self._name}() {reason}; expected {self._name}{signature}"
            raise ArgumentError(message) from None
        return bound.args, bound.kwargs

    def _find(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Ready | None, tuple[Any, ...]]:
        found = self._plans.get(arguments.key)
        if found is None:
            return None, ()
        found.is_used = True
        for ready in found.ready:
            if ready.is_simple:
                return ready, ()
            arrays = self._still_holds(ready, arguments, args, kwargs)
            if arrays is not None:
                return ready, arrays
        return None, ()

    def _still_holds(
        self,
        ready: Ready,
        arguments: Arguments,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, ...] | None:
        """Return the captured arrays of this call if ``ready`` serves it."""
        numbers = arguments.numbers
        if any(numbers.get(slot) != value for slot, value in ready.integers.items()):
            return None
        trace = ready.variant.trace
        arrays = trace.captured.read(args, kwargs)
        if arrays is None or _keys(arrays) != ready.captured_keys:
            return None
        if any(not _same(numbers.get(g.slot), g.value) for g in trace.value_guards):
            return None
        # Sizes are in the key, so their guards hold; those on integers are asked again.
        if not (trace.checks or ready.outcomes):
            return arrays
        return self._checked(ready, numbers, arrays)

    def _checked(
        self, ready: Ready, numbers: Mapping[int, Any], arrays: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        shapes = {s: slot.shape for s, slot in ready.plan.inputs.items()}
        values = _values(shapes, numbers)
        if not all(g.holds(values, numbers) for g in ready.outcomes):
            return None
        check_scalars(ready.variant.trace.checks, values)
        return arrays

    # -- the slow way --------------------------------------------------------

    def _prepare(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Ready, tuple[Any, ...]]:
        with self._lock:
            ready, arrays = self._find(arguments, args, kwargs)
            if ready is not None:
                return ready, arrays
            described = Described(arguments, self._function)
            variant, arrays = self._variant(arguments, described, args, kwargs)
            trace = variant.trace
            descriptors = dict(described.arrays)
            named = described.named(descriptors)
            for captured, array in zip(trace.captured.arrays, arrays, strict=True):
                name = f"captured {captured.origin}"
                d = describe(array, f"{name} of {self._name}")
                named[name] = descriptors[captured.slot] = d
            library, device = common_place(self._name, named)
            integers = {s: n for s, n in described.numbers.items() if type(n) is int}
            check_scalars(trace.checks, symbol_values(descriptors, integers))
            place = find_place(
                library, device, self._backend, has_arrays=bool(descriptors)
            )
            plan = variant.cache.plan(
                place, descriptors, integers, self._counters, trace.fusion
            )
            ready = self._ready(variant, plan, place, described, arrays)
            self._remember(arguments.key, ready)
            return ready, arrays

    def _variant(
        self,
        arguments: Arguments,
        described: Described,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[Variant, tuple[Any, ...]]:
        structure = (*arguments.structure, described.lifted)
        found = self._variants.get(structure, [])
        shapes = {slot: d.shape for slot, d in described.arrays.items()}
        values = _values(shapes, described.numbers)
        for variant in found:
            arrays = self._serves(variant.trace, values, described, args, kwargs)
            if arrays is not None:
                return variant, arrays
        self._drop_dead()
        with timing.timed("trace"):
            trace = trace_function(self._function, described.call(arguments))
        self._counters.add("traces")
        self._counters.reason = self._why_traced(found)
        _log.info("traced %s: %s", self._name, self._counters.reason)
        self._warn_of_many(structure)
        arrays = trace.captured.read(args, kwargs)
        if arrays is None:
            message = (
                f"{self._name} changes a value outside itself that it also reads; a "
                "fused function runs once while it is traced, and not again: pass the "
                "value as an argument and return the new one"
            )
            raise TraceError(message)
        variant = Variant(trace, shared_cache(trace.fusion, self._resize))
        # The newest first, and not without bound: each call asks them in turn.
        self._variants[structure] = [variant, *found[: MOST_VARIANTS - 1]]
        return variant, arrays

    def _drop_dead(self) -> None:
        """Forget what was built for objects that are gone (instances of methods)."""
        for table in (self._variants, self._plans, self._traced):
            for key in [k for k in table if _names_the_dead(k)]:
                del table[key]

    def _serves(
        self,
        trace: Trace,
        values: Mapping[Scalar, int],
        described: Described,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> tuple[Any, ...] | None:
        numbers = described.numbers
        if any(not _same(numbers.get(g.slot), g.value) for g in trace.value_guards):
            return None
        arrays = trace.captured.read(args, kwargs)
        if arrays is None:
            return None
        known = dict(values)
        for captured, array in zip(trace.captured.arrays, arrays, strict=True):
            known |= _values({captured.slot: tuple(array.shape)}, {})
        conditions = [g.condition for g in trace.guards]
        answers = scalar_walk.evaluate_all(conditions, known)
        pairs = zip(answers, trace.guards, strict=True)
        if any(a != g.answer for a, g in pairs):
            return None
        holds = all(g.holds(known, numbers) for g in trace.outcome_guards)
        return arrays if holds else None

    def _why_traced(self, before: list[Variant]) -> str:
        if not self._variants:
            return f"{self._name} was called for the first time"
        if not before:
            return "arguments of new dtypes, ranks, structure or static values"
        trace = before[0].trace
        guards = [*trace.guards, *trace.value_guards, *trace.outcome_guards]
        lines = [str(g.source) for g in guards if g.source]
        where = f" (a guard at {lines[-1]})" if lines else ""
        return f"a value that Python consumed, or a captured one, changed{where}"

    def _warn_of_many(self, structure: tuple[object, ...]) -> None:
        """Warn once, where one instance, or any number of them, is traced again."""
        objects = _objects(structure)
        self._objects_traced += objects not in self._traced
        self._traced[objects] += 1
        traces = self._traced[objects]
        is_many = traces >= MANY_TRACES or self._objects_traced >= MANY_OBJECTS
        if not is_many or self._has_warned:
            return
        self._has_warned = True
        times = f"{traces} times"
        if traces < MANY_TRACES:
            times = f"for {self._objects_traced} objects, each by itself"
        message = (
            f"{self._name} was traced {times}; the last because of "
            f"{self._counters.reason}"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=5)

    def _ready(
        self,
        variant: Variant,
        plan: Plan,
        place: Place,
        described: Described,
        arrays: tuple[Any, ...],
    ) -> Ready:
        trace = variant.trace
        asked = {
            s.slot
            for e in (
                *variant.cache.questions.scalars,
                *(g.condition for g in trace.guards),
            )
            for s in scalar_walk.symbols([e])
            if isinstance(s, scalar_walk.ScalarInput)
        }
        integers = {s: described.numbers[s] for s in sorted(asked)}
        captured = trace.captured
        outcomes = tuple(g for g in trace.outcome_guards if g.depends_on_numbers)
        is_simple = not (
            integers
            or outcomes
            or trace.checks
            or trace.value_guards
            or captured.arrays
            or captured.constants
            or captured.aliases
        )
        return Ready(
            variant,
            plan,
            place,
            described.lifted,
            _keys(arrays),
            integers,
            outcomes,
            is_simple,
        )

    def _remember(self, key: tuple[object, ...], ready: Ready) -> None:
        found = self._plans.get(key)
        before = found.ready[: MOST_VARIANTS - 1] if found else []
        self._plans[key] = Plans([ready, *before])
        while len(self._plans) > MOST_PLANS:
            # The oldest goes, unless it was used since it was last looked at.
            oldest, plans = self._plans.popitem(last=False)
            if plans.is_used:
                plans.is_used = False
                self._plans[oldest] = plans

    # -- running -------------------------------------------------------------

    def _run(
        self, ready: Ready, arguments: Arguments, captured: tuple[Any, ...]
    ) -> Any:
        plan, place = ready.plan, ready.place
        numbers = arguments.numbers
        inputs: dict[Any, tuple[Any, int]] = {}
        for slot, array in arguments.arrays.items():
            if slot in ready.lifted:
                d = describe(array, "a scalar")
                numbers[slot] = host_number(array, d)
            else:
                inputs[plan.inputs[slot]] = (array, _pointer(array))
        trace = ready.variant.trace
        for described, array in zip(trace.captured.arrays, captured, strict=True):
            inputs[plan.inputs[described.slot]] = (array, _pointer(array))
        scalars = (
            _values({s: x.shape for s, x in plan.inputs.items()}, numbers)
            if numbers
            else {}
        )
        outputs, stream = plan.evaluator(inputs, numbers, scalars)
        results: list[Any] = []
        for leaf in trace.output_leaves:
            array = finish(place.library, outputs[leaf.position], stream=stream)
            results.append(array if leaf.python is None else leaf.python(array.item()))
        return trees.unflatten(trace.output_tree, results)

    # -- looking inside ------------------------------------------------------

    def kernels(self, *args: P.args, **kwargs: P.kwargs) -> list[KernelView]:
        """Return the kernels that a call with these arguments runs."""
        return [
            KernelView(launch)
            for launch in self._plan_of(args, kwargs).program.launches
        ]

    def _plan_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan:
        if kwargs:
            args, kwargs = self._normalised(args, kwargs)
        arguments = Arguments(args, kwargs, self._function)
        return self._prepare(arguments, args, kwargs)[0].plan

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked and had to work."""
        return self._counters.info()

    def why(self) -> str:
        """Say what was new about the last call that compiled."""
        return self._counters.reason

    def cache_table(self) -> str:
        """Return a table of what was traced, concretized and compiled."""
        rows = ["trace  concretization  runtime  kernels"]
        variants = [v for found in self._variants.values() for v in found]
        for t, variant in enumerate(variants):
            used = variant.cache.rows(self._counters)
            rows += [f"{t:<6} {row}" for row in used]
        return "\n".join(rows)

    def cache_clear(self) -> None:
        """Forget all traces, plans and counts."""
        with self._lock:
            self._variants.clear()
            self._plans.clear()
            self._traced.clear()
            self._counters = Counters()

    # -- behaving like a function --------------------------------------------

    @overload
    def __get__(self, instance: None, owner: type) -> Fused[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> MethodType: ...
    def __get__(
        self, instance: object, owner: type | None = None
    ) -> Fused[P, R] | MethodType:
        """Bind to an instance as functions do."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<nfuser.fuse {getattr(self, '__qualname__', self._name)}>"

    def __copy__(self) -> Fused[P, R]:
        return self

    def __deepcopy__(self, memo: object) -> Fused[P, R]:
        return self

    def __reduce__(self) -> Any:
        """Pickle by name, as functions are."""
        return _lookup, (self.__module__, self.__qualname__)


def _objects(key: tuple[object, ...]) -> tuple[_Object, ...]:
    """Return the objects among the arguments, ``self`` foremost."""
    pairs = (cast("tuple[object, ...]", x) for x in key if isinstance(x, tuple))
    statics = (x[1] for x in pairs if len(x) == 2)
    return tuple(cast("_Object", x) for x in statics if isinstance(x, weakref.ref))


def _names_the_dead(key: tuple[object, ...]) -> bool:
    bare = cast("list[_Object]", [x for x in key if isinstance(x, weakref.ref)])
    return any(x() is None for x in (*_objects(key), *bare))


def _lookup(module: str, qualname: str) -> Any:
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _pointer(array: object) -> int:
    library = library_of(type(array))
    assert library is not None
    return pointer_reader(library)(array)


def _keys(arrays: tuple[object, ...]) -> tuple[object, ...]:
    found: list[object] = []
    for array in arrays:
        library = library_of(type(array))
        assert library is not None
        pointer = pointer_reader(library)(array)
        found.append((library, key_reader(library)(array), pointer & 15))
    return tuple(found)


def _same(a: Any, b: Any) -> bool:
    """Tell whether two numbers are alike: NaN equals itself, -0.0 is not 0.0."""
    return type(a) is type(b) and repr(a) == repr(b)


def _values(
    shapes: Mapping[int, tuple[int, ...]], numbers: Mapping[int, Any]
) -> dict[Scalar, int]:
    values: dict[Scalar, int] = {}
    for slot, shape in shapes.items():
        for axis, extent in enumerate(shape):
            values[sc.size(slot, axis)] = int(extent)
    for slot, number in numbers.items():
        if type(number) is int:
            values[sc.scalar_input(slot)] = number
    return values


@overload
def fuse(function: Callable[P, R], /) -> Fused[P, R]: ...
@overload
def fuse(
    *, backend: str | None = None, resize: ResizePolicy = DEFAULT_RESIZE
) -> Callable[[Callable[P, R]], Fused[P, R]]: ...
@overload
def fuse(
    function: Callable[P, R],
    /,
    *,
    backend: str | None = None,
    resize: ResizePolicy = DEFAULT_RESIZE,
) -> Fused[P, R]: ...
def fuse(
    function: Callable[..., Any] | None = None,
    /,
    *,
    backend: str | None = None,
    resize: ResizePolicy = DEFAULT_RESIZE,
) -> Any:
    """Return ``function`` compiled: traced once, few kernels a call.

    As a decorator, with or without arguments. ``backend="interpret"`` runs the CUDA
    kernels of NumPy arrays in the interpreter that checks them. ``resize="static"``
    compiles the extents of slices, pads and concatenations in, once for each new one;
    ``"dynamic"`` passes them to the kernel.

    >>> import numpy as np
    >>> @fuse
    ... def scaled(x, a):
    ...     return x * a + 1
    >>> scaled(np.arange(3, dtype="f4"), 2.0)
    array([1., 3., 5.], dtype=float32)
    """
    if function is None:
        return functools.partial(fuse, backend=backend, resize=resize)
    if isinstance(function, _METHODS):
        method: Any = function
        kind = cast("type[Any]", type(function))
        return kind(fuse(method.__func__, backend=backend, resize=resize))
    if isinstance(function, Fused):
        plain: Callable[..., Any] = function.__wrapped__
        return fuse(plain, backend=backend, resize=resize)
    if not callable(function):
        message = f"fuse expects a function, found {type(function).__name__}"
        raise TypeError(message)
    return Fused(function, backend, resize)
