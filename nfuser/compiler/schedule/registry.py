# SPDX-License-Identifier: Apache-2.0
"""All schedulers, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.schedule.pointwise.horizontal import Horizontal
from nfuser.compiler.schedule.pointwise.pointwise import PointwiseScheduler
from nfuser.compiler.schedule.reduction.reduction import Reduction
from nfuser.compiler.schedule.scan.scan import Scans
from nfuser.compiler.schedule.sweep.chain import ChainedSweeps
from nfuser.compiler.schedule.sweep.serial import SerialLoops
from nfuser.compiler.schedule.sweep.sweep import Sweeps
from nfuser.compiler.schedule.without_kernels.array_library import LibraryCalls
from nfuser.compiler.schedule.without_kernels.host_loops import Loops
from nfuser.compiler.schedule.without_kernels.in_place import InPlace
from nfuser.compiler.segment.both_ways import BOTH_WAYS

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.schedule.scheduled import Scheduler
    from nfuser.compiler.segment import KnownScheduler as Finder
    from nfuser.compiler.segment import Rejection

SCHEDULERS: tuple[Scheduler, ...] = (
    PointwiseScheduler(),
    Reduction(),
    Scans(),
    Horizontal(),
)
LIBRARY = LibraryCalls()
SWEEPS = Sweeps()
SERIAL = SerialLoops()
LOOPS = Loops()
IN_PLACE = InPlace()


def find_scheduler(fusion: Fusion) -> Finder | tuple[Rejection, ...]:
    """Return the first scheduler that takes ``fusion``, or every reason against it.

    No kernel multiplies matrices, or sorts: a fusion that does is the array library's,
    or no one's. A loop is one kernel's, or the host program's. No kernel assigns: it
    stores a value where it is told.
    """
    if fusion.loops:
        return _loop_scheduler(fusion)
    if fusion.assignments:
        rejection = IN_PLACE.can_schedule(fusion)
        return IN_PLACE if rejection is None else (rejection,)
    if fusion.library_calls:
        rejection = LIBRARY.can_schedule(fusion)
        return LIBRARY if rejection is None else (rejection,)
    both = BOTH_WAYS.can_schedule(fusion)
    if both is None:
        return BOTH_WAYS  # also where columns alone would do: memory runs along rows
    reasons: list[Rejection] = []
    for scheduler in SCHEDULERS:
        rejection = scheduler.can_schedule(fusion)
        if rejection is None:
            return scheduler
        reasons.append(rejection)
    return tuple(reasons if both.is_other else (*reasons, both))


CHAINS = ChainedSweeps(find_scheduler)
"""Takes pieces together that have schedulers of their own: who asks it says so."""


def _loop_scheduler(fusion: Fusion) -> Finder | tuple[Rejection, ...]:
    sweep = SWEEPS.can_schedule(fusion)
    if sweep is None:
        return SWEEPS
    if SERIAL.can_schedule(fusion) is None:
        return SERIAL
    alone = LOOPS.can_schedule(fusion)
    return LOOPS if alone is None else (sweep, alone)
