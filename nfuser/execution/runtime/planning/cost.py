# SPDX-License-Identifier: Apache-2.0
"""How much a kernel has to do, as the launcher weighs it against its threads."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.open_integer import OpenInteger
from nfuser.compiler.schedule.facts.memory import memory_tensors
from nfuser.compiler.schedule.registry import SERIAL

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Loop
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.execution.runtime.kernel_runtime import CompiledSegment


def cost_of(compiled: CompiledSegment, facts: Facts) -> int:
    """Count the elements that the kernel touches, costly operations weighted."""
    cost = 0
    for tensor in memory_tensors(compiled.segment.fusion):
        cost = max(cost, prod(map(facts.size, tensor.shape)))
    is_serial = compiled.segment.scheduler is SERIAL
    for loop in compiled.segment.fusion.loops:
        carried = (map(facts.size, t.shape) for t in loop.operands[: loop.carried])
        each = 1 if is_serial else max(map(prod, carried), default=1)
        cost = max(cost, _turns(loop, facts) * each)
    return cost * (1 + 2 * compiled.source.form.costly)


def _turns(loop: Loop, facts: Facts) -> int:
    """Count the turns of a loop, and of those inside of it, as far as is known."""
    inside = max((_turns(x, facts) for x in loop.body.loops), default=1)
    if loop.trips is None:
        return inside
    turns = scalar_walk.evaluate(loop.trips, facts.sizes)
    return inside * (turns.today if isinstance(turns, OpenInteger) else turns)
