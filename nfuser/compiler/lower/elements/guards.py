# SPDX-License-Identifier: Apache-2.0
"""What the conditions of a kernel's reads have to do with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads, roots
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.schedule.scheduled import Scheduled


def exclusive_reads(scheduled: Scheduled) -> dict[Read, Read]:
    """Return the reads of one tensor of which exactly one is made, each by the other.

    Both halves of ``concatenate([x[h:], x[:h]])`` read ``x``, the one where the other
    does not: one access, whose address is chosen, serves both.
    """
    fusion = scheduled.fusion
    waiting: dict[object, Read] = {}
    found: dict[Read, Read] = {}
    for read in reads(fusion, roots(fusion, scheduled.space)):
        tensor, point = read
        expr = fusion.definition[tensor]
        if not isinstance(expr, Argument) or expr.by_value or data_of(point):
            continue
        for condition in point.guard:
            if not (isinstance(condition, Binary) and condition.op is Op.LT):
                continue
            rest = frozenset(point.guard) - {condition}
            gap = condition.rhs - condition.lhs  # above 0 where the condition holds
            other = waiting.get((tensor, rest, 1 - gap))
            if other is not None and read not in found and other not in found:
                found[read], found[other] = other, read
            waiting[tensor, rest, gap] = read
    return found


def even_conditions(scheduled: Scheduled) -> frozenset[Scalar]:
    """Return the conditions that hold for all lanes of a packet or for none."""
    if scheduled.nest.leaf(Binding.PACKET) is None:
        return frozenset()
    return frozenset(c for _, point in scheduled.packed for c in point.guard)
