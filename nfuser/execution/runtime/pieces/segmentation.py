# SPDX-License-Identifier: Apache-2.0
"""The pieces of a fusion: found by some process, and told to all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import nfuser.compiler.segment as room
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.identity import structure
from nfuser.compiler.schedule.registry import (
    IN_PLACE,
    LIBRARY,
    LOOPS,
    SCHEDULERS,
    SERIAL,
    SWEEPS,
    find_scheduler,
)
from nfuser.compiler.segment.asked_once import asked_once
from nfuser.compiler.segment.kept import from_numbers, to_numbers
from nfuser.execution.runtime.disk.plans import find_plan, keep_plan

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Loop
    from nfuser.compiler.segment import KnownScheduler, Segmented, ShouldMerge

_BY_NAME: dict[str, KnownScheduler] = {
    s.name: s for s in (*SCHEDULERS, LIBRARY, SWEEPS, SERIAL, LOOPS, IN_PLACE)
}
# What a new concretization leaves as it was is not asked again.
_FIND = asked_once(find_scheduler)


def segment(fusion: Fusion, should_merge: ShouldMerge | None) -> Segmented:
    """Return ``fusion`` cut into pieces.

    What ``should_merge`` decides is decided in each process: nothing is known of it.
    """
    found = _segmented(fusion, should_merge)
    if not fusion.loops:
        return found
    pieces = (
        replace(piece, body=segment(_computed(loop), should_merge))
        for piece in found.segments
        for loop in piece.fusion.loops
        if piece.scheduler is LOOPS
    )
    by_loop = {piece.fusion: piece for piece in pieces}
    own = tuple(by_loop.get(piece.fusion, piece) for piece in found.segments)
    return replace(found, segments=own)


def _computed(loop: Loop) -> Fusion:
    """Return the body without what it hands on as it was."""
    body, handed = loop.body, loop.forwarded
    if all(source is None for source in handed):
        return body
    pairs = zip(body.outputs, handed, strict=False)
    computed = [tensor for tensor, source in pairs if source is None]
    outputs = (*computed, *body.outputs[loop.carried :])
    return Fusion(body.name, body.exprs, outputs)


def _segmented(fusion: Fusion, should_merge: ShouldMerge | None) -> Segmented:
    if should_merge is not None:
        return room.segment(fusion, _FIND, should_merge)
    depends = ("segments", structure(fusion).digest)
    known = find_plan(depends, lambda kept: from_numbers(fusion, kept, _BY_NAME))
    if known is None:
        known = room.segment(fusion, _FIND)
        keep_plan(depends, fusion.name, to_numbers(known))
    return known
