# SPDX-License-Identifier: Apache-2.0
"""One concretization of one fusion, segmented, scheduled and compiled."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import nfuser.config as config
from nfuser.base.debug import dump, progress, timing
from nfuser.base.locks import cached_property
from nfuser.codegen.printers.source import KnownSource
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.identity import spelled, structure
from nfuser.compiler.ir.scalars.scalar import KEPT
from nfuser.compiler.lower.kernel.kernel_ir import kernel_name
from nfuser.compiler.lower.kernel.text import text as kernel_text
from nfuser.compiler.lower.lowering import lower
from nfuser.compiler.schedule.printed import text as schedule_text
from nfuser.execution.device.cpu.threads import prepare_callers
from nfuser.execution.runtime.compile.executable import KERNELS, print_kernel
from nfuser.execution.runtime.disk.plans import find_plan, keep_plans
from nfuser.execution.runtime.tables.memo import Memo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from nfuser.codegen.printers.source import KernelForm, Source
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.schedule.facts.target import Target
    from nfuser.compiler.schedule.heuristics.heuristics import Heuristic
    from nfuser.compiler.schedule.scheduled import Schedule, Scheduler
    from nfuser.compiler.segment import Segment, Segmented
    from nfuser.execution.runtime.compile.executable import Origin
    from nfuser.execution.runtime.pieces.concretized import Concretization
    from nfuser.execution.runtime.place import Place


# By what a piece says: pieces that a new concretization left as they were keep their
# schedule and are not lowered again, and so are those that say what another one says.
LOWERED: Memo[Hashable, Source] = Memo()
_Written: TypeAlias = "tuple[tuple[str, ...], str, KernelForm]"


@node
class CompiledSegment:
    """A segment with its kernel."""

    segment: Segment
    source: Source
    executable: object

    @property
    def scheduled(self) -> Schedule:
        """The loops that the kernel was made of."""
        return self.source.kernel.scheduled


@node
class FusionKernelRuntime:
    """The kernels of one segmented fusion, for all calls with its heuristics.

    ``FusionExecutorCache.kernel_runtime_for(inputs)`` finds or makes it. ``segments``
    are the kernels in the order in which they run, each with its ``scheduled`` loops
    and its ``source``; ``compiled``, ``loaded`` and ``reused`` count the
    kernels that were made for this runtime, those that another process had left on
    disk, and those that were there already.

    >>> import numpy as np
    >>> import nfuser
    >>> with nfuser.FusionDefinition() as fd:
    ...     x = fd.define_tensor(shape=[-1])
    ...     fd.add_output(fd.ops.neg(x))
    >>> cache = nfuser.FusionExecutorCache(fd.fusion)
    >>> runtime = cache.kernel_runtime_for([np.ones(3, np.float32)])
    >>> [str(h) for h in runtime.heuristics]
    ['pointwise(pieces, streams=2)']
    >>> runtime is cache.kernel_runtime_for([np.ones(999, np.float32)])
    True
    """

    segmented: Segmented
    heuristics: tuple[Heuristic, ...]
    segments: tuple[CompiledSegment, ...]
    compiled: int
    loaded: int
    reused: int

    @property
    def kernels(self) -> tuple[tuple[Source, object], ...]:
        """The source and the executable of each kernel."""
        return tuple((made.source, made.executable) for made in self.segments)


class KnownRuntime(FusionKernelRuntime):
    """A runtime whose kernels were all found: its pieces are cut where one is read."""

    def __init__(
        self,
        found: Concretization,
        heuristics: tuple[Heuristic, ...],
        kernels: tuple[tuple[Source, object], ...],
        counts: Mapping[str, int],
    ) -> None:
        for name in ("compiled", "loaded", "reused"):
            object.__setattr__(self, name, counts[name])
        object.__setattr__(self, "heuristics", heuristics)
        vars(self).update(_found=found, _kernels=kernels)

    @property
    def kernels(self) -> tuple[tuple[Source, object], ...]:
        """The source and the executable of each kernel."""
        return self._kernels

    @cached_property
    def made(self) -> tuple[CompiledSegment, ...]:
        """The pieces with their kernels."""
        pairs = zip(self.segmented.kernels, self._kernels, strict=True)
        return tuple(CompiledSegment(piece, *kernel) for piece, kernel in pairs)

    def __getattr__(self, name: str) -> Any:
        if name == "segmented":
            return vars(self)["_found"].segmented
        if name == "segments":
            return self.made
        raise AttributeError(name)


def heuristics_for(segmented: Segmented, facts: Facts) -> tuple[Heuristic, ...]:
    """Return the heuristic of each kernel: what a runtime is looked up by."""
    with timing.timed("schedule"):
        return tuple(
            _scheduler(s).heuristic(s.fusion, facts) for s in segmented.kernels
        )


def build_runtime(
    segmented: Segmented, heuristics: tuple[Heuristic, ...], place: Place
) -> FusionKernelRuntime:
    """Schedule, lower, print and compile every segment that nobody has yet.

    The longest is begun first: LLVM, which finishes one while others are begun, has
    least to do when the last one is.
    """
    kernels = segmented.kernels
    lengths = {k: len(segment.fusion.exprs) for k, segment in enumerate(kernels)}
    begun: dict[int, tuple[Source, Callable[[], tuple[Any, Origin]]]] = {}
    written: list[_Written] = []
    for number in sorted(lengths, key=lengths.__getitem__, reverse=True):
        progress.kernels(len(begun), len(kernels))
        given = kernels[number], heuristics[number], place.target
        source = _source(*given, written)
        _dump(source)
        wait = KERNELS.begin(source, place.backend, place.device.index)
        begun[number] = source, wait
    # LLVM is still at work, mostly.
    if place.backend == "cpu":
        prepare_callers(source.kinds for source, _ in begun.values())
    keep_plans(written)
    made: list[CompiledSegment] = []
    origins: Counter[str] = Counter()
    for number, segment in enumerate(kernels):
        source, wait = begun[number]
        executable, origin = wait()
        origins[origin] += 1
        made.append(CompiledSegment(segment, source, executable))
    counts = (origins[origin] for origin in ("compiled", "loaded", "reused"))
    return FusionKernelRuntime(segmented, heuristics, tuple(made), *counts)


def known_runtime(
    found: Concretization,
    heuristics: tuple[Heuristic, ...],
    place: Place,
    forms: Sequence[tuple[str, KernelForm]],
    name: str,
) -> KnownRuntime:
    """Return the runtime whose kernels have these forms.

    Beside each stands what its name has after that of the whole fusion.
    """
    kernels: list[tuple[Source, object]] = []
    origins: Counter[str] = Counter()
    for number, (end, form) in enumerate(forms):
        write = partial(_written_piece, found, number, heuristics, place.target)
        source = KnownSource(form, kernel_name(name + end), write)
        executable, origin = KERNELS.get(source, place.backend, place.device.index)
        origins[origin] += 1
        kernels.append((source, executable))
    return KnownRuntime(found, heuristics, tuple(kernels), origins)


def _written_piece(
    found: Concretization,
    number: int,
    heuristics: tuple[Heuristic, ...],
    target: Target,
) -> Source:
    piece = found.segmented.kernels[number]
    return _written(piece.fusion, _scheduler(piece), heuristics[number], target)


def outlined(
    segmented: Segmented, heuristics: tuple[Heuristic, ...], place: Place
) -> FusionKernelRuntime:
    """Return what ``build_runtime`` would, but nothing of it is compiled yet."""
    written: list[_Written] = []
    made: list[CompiledSegment] = []
    for segment, heuristic in zip(segmented.kernels, heuristics, strict=True):
        source = _source(segment, heuristic, place.target, written)
        made.append(CompiledSegment(segment, source, None))
    keep_plans(written)
    return FusionKernelRuntime(segmented, heuristics, tuple(made), 0, 0, 0)


def _source(
    segment: Segment, heuristic: Heuristic, target: Target, written: list[_Written]
) -> Source:
    """Return the kernel of a segment, written once for all that say the same.

    What is to be kept of one that was ``written`` just now is added there.
    """
    fusion, scheduler = segment.fusion, _scheduler(segment)
    name = kernel_name(fusion.name)

    def write() -> Source:
        return _written(fusion, scheduler, heuristic, target)

    def find() -> Source:
        said = structure(fusion).digest, spelled((heuristic, target))
        depends = ("kernel", scheduler.name, *said)
        known = find_plan(depends, lambda form: KnownSource(form, name, write))
        if known is None:
            known = write()
            written.append((depends, name, known.form))
        return known

    meaning = config.current().of_kernels
    key = (structure(fusion), scheduler.name, heuristic, target, meaning)
    return LOWERED.get(key, find)[0].named(fusion.name, name)


def _written(
    fusion: Fusion, scheduler: Scheduler, heuristic: Heuristic, target: Target
) -> Source:
    """Schedule, lower and print.

    Sums and products of its indices name its variables: they go when it is done.
    """
    with timing.timed("schedule"):
        scheduled = scheduler.apply(fusion, heuristic, target)
    with timing.timed("lower"):
        kernel = lower(scheduled)
    printed = print_kernel(kernel)
    for kept in KEPT:
        kept.cache_clear()
    return printed


def _dump(source: Source) -> None:
    name = source.entry
    if dump.wants("schedule"):
        dump.dump("schedule", schedule_text(source.kernel.scheduled), name)
    if dump.wants("kernel"):
        dump.dump("kernel", kernel_text(source.kernel), name)
    if dump.wants("source"):
        dump.dump("source", source.text, name)


def _scheduler(segment: Segment) -> Scheduler:
    """Return the scheduler of a segment with all that this room knows of it."""
    return cast("Scheduler", segment.scheduler)
