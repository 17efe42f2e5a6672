# SPDX-License-Identifier: Apache-2.0
"""How a fused function makes ready for a call: its state, its traces and its plans."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from nfuser.base.collector import count_as_old, no_collection
from nfuser.base.locks import ForkSafeLock, cached_property
from nfuser.errors import ArgumentError
from nfuser.execution.runtime.tables.counters import CacheInfo, Counters
from nfuser.frontend.call.first_use import FirstUse
from nfuser.frontend.fuse.way_back import Keeping, asked_with_arguments
from nfuser.frontend.native.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.compiler.trace import Trace
    from nfuser.execution.chunks import Rechunk
    from nfuser.execution.device.describe.descriptor import Descriptor
    from nfuser.execution.runtime.place import Place
    from nfuser.execution.runtime.planning.plan import Plan
    from nfuser.frontend.call import parts
    from nfuser.frontend.call.inputs.arguments import Arguments, Described
    from nfuser.frontend.call.plan_table import PlanTable
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.explain.explain import Seen
    from nfuser.frontend.fuse.variants import Variant, Variants
else:
    parts = FirstUse("nfuser.frontend.call.parts")


P = ParamSpec("P")
R = TypeVar("R")

_planned: list[None] = []  # whether anything was, in this process


class Readying(Keeping, Generic[P, R]):
    """What a fused function holds, and how it finds or makes the plan of a call."""

    __slots__ = ("__dict__", "__weakref__", "_native")
    __qualname__: str
    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        backend: str | None,
        resize: ResizePolicy | None = None,
        dialect: str | None = None,
        should_merge: ShouldMerge | None = None,
        rechunk: Rechunk | None = None,
    ) -> None:
        if resize is not None:
            parts.check_policy(resize)
        if dialect is not None:
            parts.check_dialect(dialect)
        me: Any = self
        functools.update_wrapper(me, function)
        self.__nfuser_wrapped__ = function
        self._function = function
        self._backend = backend
        self._resize: ResizePolicy | None = resize
        self._dialect = dialect
        self._should_merge = should_merge
        self._rechunk: Rechunk | None = rechunk
        self._name = getattr(function, "__name__", "function")
        self._lock = ForkSafeLock()
        self._counters = Counters()
        self._serving = Serving(function)
        self._new_at = 0  # the number of calls when something was made for one
        self.is_of_nfuser = False  # fused always, and traced as often as it takes
        self.goes_back = False  # from the last rows, which the way there left behind
        self.made_by: tuple[Any, ...] = ()  # what makes it anew from what, if not fuse
        self._native: object = None  # where native code looks: what the state owns

    @cached_property
    def _variants(self) -> Variants:
        resize = self._resize or parts.DEFAULT_RESIZE
        merge = self._should_merge
        made = parts.Variants(self._function, self._name, resize, self._dialect, merge)
        made.warns = not self.is_of_nfuser
        return made

    @cached_property
    def _plans(self) -> PlanTable:
        return parts.PlanTable()

    def _traced_call(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Trace, tuple[Any, ...]]:
        """Return the trace that serves a call, and what it captures."""
        with self._lock:
            (variant, captured), described = self._traced(arguments, args, kwargs)
            self._asked(variant, captured, described)
            return variant.trace, captured

    def _arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Arguments, tuple[Any, ...], Mapping[str, Any]]:
        """Return the arguments of a call, and how they are passed."""
        given, named = self._normalised(args, kwargs) if kwargs else (args, kwargs)
        return parts.Arguments(given, named, self._function), given, named

    def _normalised(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Pass by position what can be, so that spelling makes no difference."""
        signature = inspect.signature(self._function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            reason = parts.unknown_keyword(signature, kwargs) or error
            message = f"{self._name}() {reason}; expected {self._name}{signature}"
            raise ArgumentError(message) from None
        return bound.args, bound.kwargs

    def _prepare(
        self,
        arguments: Arguments,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        runs: bool = False,
    ) -> tuple[Ready, tuple[Any, ...]]:
        """Return the plan of a call, and what it captures.

        Where the function raises while it is traced, that is raised; of a call that
        ``runs``, once the statements before have been carried out.
        """
        with self._lock:
            ready, arrays, _ = self._plans.find(arguments, args, kwargs)
            if ready is not None:
                return ready, arrays
            known = self._counters.counts["concretizations"]
            made = self._counters.made()
            with parts.watching(self._name) as told:
                found, described = self._begun(arguments, args, kwargs)
                raised = found[0].trace.raised
                if raised is not None and not runs:
                    raise raised.taken()
                ready = self._ready(*found, described)
                if self._counters.made() > made:
                    told["why"] = self._counters.reason
                    self._new_at = self._calls()
            if self._counters.counts["concretizations"] > known:
                look = functools.partial(self._seen, *found, described)
                parts.dump_call(self._name, self._function, self, look)
            if raised is None:
                self._serving.discard(self._plans.add(arguments.key, ready))
                return ready, found[1]
        ready.run(arguments, found[1])
        raise raised.taken()

    def _traced(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Variant, tuple[Any, ...]], Described]:
        """Return what ``_begun`` does; raise what the function raises."""
        found, described = self._begun(arguments, args, kwargs)
        if found[0].trace.raised is not None:
            raise found[0].trace.raised.taken()
        return found, described

    def _begun(
        self, arguments: Arguments, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Variant, tuple[Any, ...]], Described]:
        """Return the trace that serves a call, with what it captures; and the call.

        The function may have raised in it.
        """
        described = parts.Described(arguments, self._function)
        call = (arguments, described, args, kwargs)
        found = self._variants.find(*call)
        if found is None:
            self._serving.discard(self._plans.drop_dead())
            found = self._variants.trace(*call, self._counters)
        return found, described

    @no_collection()
    def _ready(
        self, variant: Variant, arrays: tuple[Any, ...], described: Described
    ) -> Ready:
        """Return the plan of a call that ``variant`` serves; it captures ``arrays``."""
        place, descriptors, given = self._asked(variant, arrays, described)
        asked, decide = parts.Asked(), parts.shaping(variant)
        integers = {
            slot: n if slot in decide else asked.open(parts.scalar_input(slot), n)
            for slot, n in given.items()
        }
        plan = variant.cache.plan(
            place, descriptors, integers, self._counters, variant.trace.fusion
        )
        ready = parts.make_ready(variant, plan, place, described, arrays, asked, decide)
        if not _planned:  # with it come Numba, and tables that last
            _planned.append(None)
            count_as_old()
        return ready

    def _asked(
        self, variant: Variant, arrays: tuple[Any, ...], described: Described
    ) -> tuple[Place, dict[int, Descriptor], dict[int, int]]:
        """Return where a call runs, and what its arrays and its integers are."""
        trace = variant.trace
        descriptors = dict(described.arrays)
        named = described.named(descriptors)
        for captured, array in zip(trace.captured.arrays, arrays, strict=True):
            if parts.any_asks((array,)):
                raise parts.GradientAskedError
            name = f"captured {captured.origin}"
            d = parts.describe(array, f"{name} of {self._name}")
            named[name] = descriptors[captured.slot] = d
        library, device = parts.common_place(self._name, named)
        integers = {
            s: int(n) for s, n in described.numbers.items() if parts.is_integer(n)
        }
        parts.check_scalars(trace.checks, parts.symbol_values(descriptors, integers))
        place = parts.find_place(
            library, device, self._backend, has_arrays=bool(descriptors)
        )
        if self.goes_back:
            place = place.from_last
        return place, descriptors, integers

    def _seen(
        self, variant: Variant, arrays: tuple[Any, ...], described: Described
    ) -> Seen:
        from nfuser.frontend.explain.look import look  # noqa: PLC0415 (few ask for it)

        asked = self._asked(variant, arrays, described)
        return look(variant, asked, described, self._counters)

    def _plan_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plan:
        with parts.unrecorded():
            return self._prepare(*self._arguments(args, kwargs))[0].plan

    @property
    def native_calls(self) -> int:
        """The number of calls that native code served."""
        return self._serving.calls

    def _calls(self) -> int:
        return self._counters.counts["calls"] + self.native_calls

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked and had to work."""
        served, info = self.native_calls, self._counters.info()
        return info._replace(calls=info.calls + served, hits=info.hits + served)

    def why(self, *args: object, **kwargs: object) -> str:
        """Say what was new about the last call that compiled.

        With arguments, for which it has no use, it raises an error that says what has.
        """
        if args or kwargs:
            raise ArgumentError(asked_with_arguments(self._name))
        if self._calls() <= self._new_at:
            return self._counters.reason
        nothing = "nothing was new about the last call"
        new = self._serving.compiled_by(self._calls()) or nothing
        return f"{self._counters.reason}; {new}"

    def cache_table(self) -> str:
        """Return a table of what was traced, concretized and compiled."""
        return self._variants.table(self._counters)
