# SPDX-License-Identifier: Apache-2.0
"""From a call that is explained to all that its page shows."""

from __future__ import annotations

import inspect
import linecache
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import nfuser.config as config
from nfuser.compiler.ir.expr import Argument, results
from nfuser.compiler.ir.text import Names, fusion_lines, text
from nfuser.compiler.lower.kernel.text import text as kernel_text
from nfuser.compiler.rewrite.passes import PASSES, rewrite_bodies
from nfuser.compiler.schedule.printed import text as schedule_text
from nfuser.frontend.report.graph import graph_of, place_of
from nfuser.frontend.report.report import (
    Code,
    Line,
    PassStage,
    Report,
    ReportSection,
    Stored,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nfuser.codegen.printers.source import Source
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.execution.runtime.tables.counters import CacheInfo
    from nfuser.frontend.explain.explain import Seen


class Counted(Protocol):
    """What a report asks a fused function, besides a look at one of its calls."""

    def why(self) -> str:
        """Say what was new about the last call that compiled."""
        ...

    def cache_table(self) -> str:
        """Return a table of what was traced, concretized and compiled."""
        ...

    def cache_info(self) -> CacheInfo:
        """Return how often each level of the caches was asked."""
        ...


def report_of(
    function: Callable[..., Any] | None, fused: Counted, seen: Seen
) -> Report:
    """Return the page of a call of ``function``, ``fused``, that was ``seen``.

    A definition has no function; its lines are those that called operations.
    """
    outline, told = seen.outline, seen.explanation
    segmented = outline.concretization.segmented
    shown = [s for s in segmented.pieces if s.is_kernel or s.is_library_call]
    written = iter(outline.sources)
    sources = [next(written) if s.is_kernel else None for s in shown]
    graph = graph_of([s.fusion for s in shown], outline.facts, seen.names)
    lines = {n.place for n in graph.nodes if n.place}
    return Report(
        told,
        config.VERSION,
        graph,
        tuple(_sections(function, lines)),
        tuple(None if s is None else _code(s) for s in sources),
        tuple(_stored(seen)),
        tuple(_stages(seen.traced, outline.concretization.concrete.fusion)),
        fused.why(),
        fused.cache_table(),
        fused.cache_info()._asdict(),
    )


def _sections(
    function: Callable[..., object] | None, places: set[str]
) -> Iterator[ReportSection]:
    """Yield the source of ``function``, and other lines that take part."""
    rows, first, file = _source(function)
    own = [Line(f"{file}:{first + k}", row.rstrip()) for k, row in enumerate(rows)]
    if own:
        yield ReportSection(Path(file).name, tuple(own))
    others: dict[str, list[int]] = {}
    for place in places - {line.place for line in own}:
        where, _, number = place.rpartition(":")
        others.setdefault(where, []).append(int(number))
    for where, numbers in sorted(others.items()):
        texts = [line.rstrip() for line in linecache.getlines(where)]
        found = [
            Line(f"{where}:{n}", texts[n - 1] if n <= len(texts) else "")
            for n in sorted(numbers)
        ]
        yield ReportSection(Path(where).name, tuple(found))


def _source(function: Callable[..., object] | None) -> tuple[list[str], int, str]:
    """Return the lines of ``function``, the number of the first one, and their file."""
    if function is not None:
        with suppress(OSError, TypeError):  # written where no file is
            rows, first = inspect.getsourcelines(function)
            return rows, first, inspect.getsourcefile(function) or "<unknown>"
    return [], 0, ""


def _code(source: Source) -> Code:
    """Return a kernel's source, and the lines that its names stand for.

    A tensor that is ``T4`` in the comment above a kernel is ``t4`` in it.
    """
    kernel, names = source.kernel, Names()
    fusion = kernel.scheduled.fusion
    fusion_lines(fusion, names)
    places: dict[str, str] = {}
    for expr in fusion.exprs:
        for tensor in () if isinstance(expr, Argument) else results(expr):
            if place := place_of(tensor):
                places[names.tensor(tensor).lower()] = place
    return Code(
        source.entry,
        source.text,
        schedule_text(kernel.scheduled),
        kernel_text(kernel),
        places,
    )


def _stored(seen: Seen) -> Iterator[Stored]:
    """Yield what one piece leaves in memory for others, and how long it lies there."""
    for cut in seen.explanation.cuts:
        if cut.stored_by is not None:
            reads = max(cut.pieces, default=cut.stored_by)
            yield Stored(cut.tensor, cut.bytes, cut.stored_by, reads)


def _stages(traced: Fusion, concrete: Fusion) -> Iterator[PassStage]:
    """Yield the fusion as it was traced, concretized, and after each rewrite."""
    yield PassStage("traced", text(traced))
    if (now := text(concrete)) != text(traced):
        yield PassStage("concretized", now)
    fusion = concrete
    passes: Sequence[Callable[[Fusion], Fusion]] = PASSES
    if fusion.loops:
        passes = (rewrite_bodies, *PASSES)
    for apply in passes:
        fusion = apply(fusion)
        if (after := text(fusion)) != now:
            now = after
            yield PassStage(apply.__name__, now)
