# SPDX-License-Identifier: Apache-2.0
"""What ``nfuser.fuse`` returns: a function that runs as few kernels."""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, overload

import nfuser.config as config
import nfuser.frontend.fuse.dynamo as dynamo
from nfuser.errors import ArgumentError
from nfuser.execution.runtime.tables.counters import Counters
from nfuser.frontend.call.first_use import FirstUse
from nfuser.frontend.call.line import telling, told
from nfuser.frontend.fuse.pickling import envoy_of, reduced
from nfuser.frontend.fuse.readying import P, R, Readying

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.concretize import ResizePolicy
    from nfuser.compiler.segment import ShouldMerge
    from nfuser.execution.chunks import Rechunk
    from nfuser.frontend.call import parts
    from nfuser.frontend.call.inputs.arguments import Arguments
    from nfuser.frontend.call.plan_table import Entry
    from nfuser.frontend.call.ready import Ready
    from nfuser.frontend.explain.explain import Seen
    from nfuser.frontend.explain.explanation import Explanation
    from nfuser.frontend.explain.kernels import KernelView
    from nfuser.frontend.fuse.bound import Bound
    from nfuser.frontend.fuse.capture import GraphedCall
    from nfuser.frontend.fuse.stages import Lowered
    from nfuser.frontend.report.report import Report
else:
    parts = FirstUse("nfuser.frontend.call.parts")


class Fused(Readying[P, R]):
    """A function that is traced, compiled and run fused.

    Attribute ``__wrapped__`` is the plain function.
    """

    __slots__ = ()

    def _anew(
        self,
        backend: str | None,
        resize: ResizePolicy | None,
        dialect: str | None,
        should_merge: ShouldMerge | None,
        rechunk: Rechunk | None = None,
    ) -> Fused[P, R]:
        """Return the same function fused again; what is None stays as it is."""
        backend = self._backend if backend is None else backend
        kept = self._resize if resize is None else resize
        spoken = self._dialect if dialect is None else dialect
        merge = self._should_merge if should_merge is None else should_merge
        moved = self._rechunk if rechunk is None else rechunk
        return Fused(self._function, backend, kept, spoken, merge, moved)

    # -- calls ---------------------------------------------------------------

    @dynamo.left_alone
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the fused function."""
        if dynamo.is_compiling():
            return dynamo.in_graph(self, args, kwargs)
        try:
            return self._called(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 (all are raised again)
            __tracebackhide__ = True  # in IPython and pytest
            raise told(error)  # NFUSER_TRACEBACK=full shows what lies between

    @dynamo.graph_break
    def _called(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if dynamo.tell():
            return self._called(*args, **kwargs)
        if parts.current_tracer() is not None:
            return self._function(*args, **kwargs)
        if config.current().disable_all and not self.is_of_nfuser:
            return parts.call_unfused(self._function, args, kwargs, self._dialect)
        given: tuple[Any, ...] = args
        named: Mapping[str, Any] = kwargs
        try:
            if named:
                given, named = self._normalised(given, named)
            arguments = parts.Arguments(given, named, self._function)
            self._counters.counts["calls"] += 1
            ready, arrays, entry = self._plans.find(arguments, given, named)
            if ready is None:
                if parts.any_asks(arguments.arrays.values()):
                    return parts.recorded(self, given, named)
                try:
                    ready, arrays = self._prepare(arguments, given, named, runs=True)
                except parts.GradientAskedError:
                    return parts.recorded(self, given, named)
                self._widen(arguments, ready, args, kwargs)
            else:
                self._counters.counts["hits"] += 1
                # Native code reads arrays where they lie.
                if entry is not None and entry.may_record and arguments.is_as_given:
                    self._record(arguments.key, entry, ready, args, kwargs)
            self._counters.counts["copied"] += arguments.copies
            return ready.run(arguments, arrays)
        except parts.ChunkedError:
            return self._chunked(args, kwargs)

    @telling
    def _chunked(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], explains: bool = False
    ) -> Any:
        from nfuser.frontend.fuse.chunked import call_chunked  # noqa: PLC0415 (it imports Dask)

        given, named = self._normalised(args, kwargs) if kwargs else (args, kwargs)
        found = self._function, self._traced_call
        return call_chunked(*found, given, named, self._rechunk, explains=explains)

    def _record(
        self,
        key: tuple[object, ...],
        entry: Entry,
        ready: Ready,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Let native code serve calls like this one, if it can."""
        with self._lock, self._serving.noting(self._calls):
            # Forgotten meanwhile, nobody would ever discard it; or none is asked now.
            if not self._plans.holds(key, entry) or config.is_left_to_python():
                return
            if not _has_native_calls():
                entry.may_record = False
                return
            self._serving.record(entry, ready, args, kwargs)
            self._native = self._serving.owned

    def _widen(
        self,
        arguments: Arguments,
        ready: Ready,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Let native code serve calls of other sizes, where these keep changing."""
        with self._lock, self._serving.noting(self._calls):
            wants = arguments.is_as_given and self._serving.wants(ready)
            if wants and _has_native_calls():
                self._serving.widen(arguments, ready, args, kwargs)
                self._native = self._serving.owned

    @dynamo.graph_break
    @telling
    def bind(self, *args: Any, out: Any = None, **kwargs: Any) -> Bound[R]:
        """Return a call whose arguments have the forms of these.

        Called without arguments it runs with these; their elements are read anew each
        time. With ``out``, an array or a tuple of arrays in the order of the results,
        the results are written there, and returned.

        >>> import nfuser, numpy as np
        >>> x, total = np.ones((2, 3)), np.empty(2)
        >>> sums = nfuser.fuse(lambda x: x.sum(axis=1)).bind(x, out=total)
        >>> x[0] = 2
        >>> sums()
        array([6., 3.])
        >>> sums() is total
        True
        """
        from nfuser.frontend.fuse.bound import Bound  # noqa: PLC0415 (few ask for it)

        arguments, given, named = self._arguments(args, kwargs)
        ready = self._prepare(arguments, given, named)[0]
        outputs = None if out is None else tuple(parts.trees.flatten(out)[0])
        native = _has_native_calls() and arguments.is_as_given
        return Bound(self, ready, given, named, outputs, native=native)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> GraphedCall[R]:
        """Return this call as a CUDA graph: one launch, whatever it takes.

        Arrays stay where they are; what their elements are is read at each call.
        """
        from nfuser.frontend.fuse.capture import GraphedCall  # noqa: PLC0415 (few ask for it)

        if kwargs:
            given, named = self._normalised(args, kwargs)
            if named:
                message = f"{self._name}.graph takes arguments by position only"
                raise ArgumentError(message)
            return GraphedCall(self, given)
        return GraphedCall(self, args)

    # -- compiling without a call --------------------------------------------

    @telling
    def lower(self, *args: Any, **kwargs: Any) -> Lowered[P, R]:
        """Write the kernels of a call, after ``jax.jit``; ``compile`` them next.

        Arguments are as in a call; ``nfuser.Spec`` may stand for an array.

        >>> import numpy as np, nfuser
        >>> scaled = nfuser.fuse(lambda x, a: x * a)
        >>> compiled = scaled.lower(nfuser.Spec((2, 3)), 2.0).compile()
        >>> compiled(np.ones((2, 3), np.float32), 3.0)
        array([[3., 3., 3.],
               [3., 3., 3.]], dtype=float32)
        """
        given, named = parts.with_arrays((args, kwargs))
        form = parts.CompiledForm(given, named)
        arguments, given, named = self._arguments(given, named)
        with self._lock, parts.unrecorded():
            (variant, captured), described = self._traced(arguments, given, named)
            asked = self._asked(variant, captured, described)
            sources = variant.cache.outline(
                *asked, self._counters, variant.trace.fusion
            ).sources

        def prepare() -> None:
            if parts.has_phantoms((given, named)):
                raise parts.no_device(self._name)
            self._prepare(arguments, given, named)

        return parts.Lowered(self._name, asked[0].backend, sources, form, prepare, self)

    @telling
    def warmup(self, specs: Iterable[Any], *, progress: bool = False) -> None:
        """Compile for calls to come, of which nothing is run.

        Each of ``specs`` is what a call is given: a tuple of arguments, or the only
        one; ``nfuser.Spec`` may stand for an array. Many kernels are compiled in
        several processes. ``progress`` draws a bar where standard error is a terminal.

        >>> import nfuser
        >>> doubled = nfuser.fuse(lambda x: x * 2)
        >>> doubled.warmup([nfuser.Spec((8, 8)), nfuser.Spec((1, 8))])
        >>> info = doubled.cache_info()
        >>> info.calls, info.traces
        (0, 1)
        """
        from nfuser.frontend.fuse.warmup import warm_up  # noqa: PLC0415 (subprocess is slow)

        calls: list[tuple[Any, ...]]
        calls = [s if isinstance(s, tuple) else (s,) for s in specs]
        lowered = [self.lower(*call) for call in calls]
        warm_up(self._name, lowered, progress=progress)

    # -- looking inside ------------------------------------------------------

    @telling
    def kernels(self, *args: P.args, **kwargs: P.kwargs) -> list[KernelView]:
        """Return the kernels that a call with these arguments runs.

        ``nfuser.Spec`` may stand for an array.
        """
        given, named = parts.with_arrays((args, kwargs))
        if parts.has_phantoms((given, named)):
            return [
                parts.KernelView(source)
                for source in self.lower(*given, **named).sources
            ]
        launches = self._plan_of(given, named).program.launches
        return [parts.KernelView(launch.source, launch) for launch in launches]

    @telling
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """Say how a call is fused: its kernels, the bytes they move, why they are so.

        Arguments are as in a call; ``nfuser.Spec`` may stand for an array. Nothing is
        compiled, and nothing runs. A notebook shows a table; chunks give their tasks.

        >>> import nfuser, numpy as np
        >>> means = nfuser.fuse(lambda x: (x - x.mean(1, keepdims=True)).sum(0))
        >>> told = means.explain(np.ones((100, 8)))
        >>> told.operations, told.kernels, told.fused.reads, told.unfused.reads
        (4, 2, 6848, 20800)
        >>> for cut in told.cuts:
        ...     print(cut.reasons[0].operation.name, cut.reasons[0].text)
        sum it reduces other axes than the rest
        """
        try:
            return self._look(args, kwargs).explanation
        except parts.ChunkedError:
            return self._chunked(args, kwargs, explains=True)

    @telling
    def report(self, *args: Any, **kwargs: Any) -> Report:
        """Return a page of how a call is fused: save it, or let a notebook show it.

        Arguments are as for ``explain``; nothing is compiled, and nothing runs.

        >>> import nfuser, numpy as np
        >>> halves = nfuser.fuse(lambda x: np.exp(x) / 2)
        >>> halves.report(np.ones((100, 8)))
        <nfuser.Report lambda: save(path) writes the page>
        """
        from nfuser.frontend.report.gather import report_of  # noqa: PLC0415 (few ask for it)

        return report_of(self._function, self, self._look(args, kwargs))

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Seen:
        arguments, given, named = self._arguments(*parts.with_arrays((args, kwargs)))
        with self._lock, parts.unrecorded():
            found, described = self._traced(arguments, given, named)
            seen = self._seen(*found, described)
        copies = arguments.copies_told(described.names)
        told = seen.explanation
        return replace(seen, explanation=replace(told, notes=(*told.notes, *copies)))

    def cache_clear(self) -> None:
        """Forget all traces, plans and counts."""
        with self._lock:
            self._variants.clear()
            self._plans.clear()
            self._serving.clear()
            self._counters = Counters()
            self._new_at = self._calls()

    # -- behaving like a function --------------------------------------------

    @overload
    def __get__(self, instance: None, owner: type) -> Fused[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> MethodType: ...
    @dynamo.graph_break
    def __get__(
        self, instance: object, owner: type | None = None
    ) -> Fused[P, R] | MethodType:
        """Bind to an instance as functions do."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        try:
            given = str(inspect.signature(self._function))
        except (TypeError, ValueError):
            given = "(...)"
        traces, kernels = len(self._variants.all()), self._counters.info().compiled
        many = f"{traces} trace{'s' * (traces != 1)}, {kernels} compiled"
        done = many if traces else "not called yet"
        name = getattr(self, "__qualname__", self._name)
        return f"<nfuser.fuse {name}{given}: {done}>"

    def __copy__(self) -> Fused[P, R]:
        return self

    def __deepcopy__(self, memo: object) -> Fused[P, R]:
        return self

    @property
    def _envoy(self) -> FunctionType:
        return envoy_of(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as the plain function would: by name, or its code and globals."""
        if self.made_by:
            return self.made_by
        options: tuple[Any, ...] = self._backend, self._resize, self._dialect
        options += self._should_merge, self._rechunk
        return reduced(self, options, protocol)


@functools.cache
def _has_native_calls() -> bool:
    """Give fused functions their native entry, where this Python can have one."""
    from nfuser.frontend.native.entry import install  # noqa: PLC0415 (it compiles)

    return install(Fused) and dynamo.follow(Fused)
