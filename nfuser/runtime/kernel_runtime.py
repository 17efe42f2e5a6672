# SPDX-License-Identifier: Apache-2.0
"""One concretization of one fusion, segmented, scheduled and compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import nfuser.config as config
from nfuser.debug import dump, timing
from nfuser.ir.base import node
from nfuser.lower.build import lower
from nfuser.lower.text import text as kernel_text
from nfuser.lower.verify import verify_kernel
from nfuser.runtime.executable import KERNELS, print_kernel
from nfuser.schedule.text import text as schedule_text

if TYPE_CHECKING:
    from nfuser.codegen.source import Source
    from nfuser.schedule.facts import Facts, Target
    from nfuser.schedule.scheduled import Heuristic, Scheduled, Scheduler
    from nfuser.segment import Segment, Segmented


@node
class CompiledSegment:
    """A segment with its schedule and its kernel."""

    segment: Segment
    scheduled: Scheduled
    source: Source
    executable: object


@node
class FusionKernelRuntime:
    """The kernels of one segmented fusion, for all calls with its heuristics."""

    segmented: Segmented
    heuristics: tuple[Heuristic, ...]
    segments: tuple[CompiledSegment, ...]
    compiled: int  # kernels that were compiled for this runtime
    reused: int  # kernels that were there already


def heuristics_for(segmented: Segmented, facts: Facts) -> tuple[Heuristic, ...]:
    """Return the heuristic of each segment: what a runtime is looked up by."""
    with timing.timed("schedule"):
        return tuple(
            _scheduler(s).heuristic(s.fusion, facts) for s in segmented.segments
        )


def build_runtime(
    segmented: Segmented,
    heuristics: tuple[Heuristic, ...],
    target: Target,
    backend: str,
    device: int,
) -> FusionKernelRuntime:
    """Schedule, lower, print and compile every segment."""
    made: list[CompiledSegment] = []
    compiled = 0
    for segment, heuristic in zip(segmented.segments, heuristics, strict=True):
        with timing.timed("schedule"):
            scheduled = _scheduler(segment).apply(segment.fusion, heuristic, target)
        if dump.wants("schedule"):
            dump.dump("schedule", schedule_text(scheduled))
        with timing.timed("lower"):
            kernel = lower(scheduled)
        if config.current().verify:
            verify_kernel(kernel)
        if dump.wants("kernel"):
            dump.dump("kernel", kernel_text(kernel))
        source = print_kernel(kernel)
        executable, is_new = KERNELS.get(source, backend, device)
        compiled += is_new
        made.append(CompiledSegment(segment, scheduled, source, executable))
    return FusionKernelRuntime(
        segmented, heuristics, tuple(made), compiled, len(made) - compiled
    )


def _scheduler(segment: Segment) -> Scheduler:
    """Return the scheduler of a segment with all that this room knows of it."""
    return cast("Scheduler", segment.scheduler)
