# SPDX-License-Identifier: Apache-2.0
"""What the conditions of a kernel's reads have to do with each other."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of
from nfuser.compiler.domains.space import reads, roots
from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.ir.scalars.operators import Op
from nfuser.compiler.ir.scalars.scalar import Binary, Scalar
from nfuser.compiler.schedule.nest import Binding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.domains.maps import Read
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.scheduled import Scheduled


def exclusive_reads(scheduled: Scheduled) -> dict[Read, Read]:
    """Return the reads of one tensor of which exactly one is made, each by the other.

    Both halves of ``concatenate([x[h:], x[:h]])`` read ``x``, the one where the other
    does not: one access, whose address is chosen, serves both.
    """
    fusion = scheduled.fusion
    made: dict[tuple[TensorView, frozenset[Scalar], Scalar], list[Read]] = {}
    for read in reads(fusion, roots(fusion, scheduled.space)):
        tensor, point = read
        expr = fusion.definition[tensor]
        if not isinstance(expr, Argument) or expr.by_value or data_of(point):
            continue
        for condition in point.guard:
            if isinstance(condition, Binary) and condition.op is Op.LT:
                rest = frozenset(point.guard) - {condition}
                gap = condition.rhs - condition.lhs  # above 0 where the condition holds
                made.setdefault((tensor, rest, gap), []).append(read)
    found: dict[Read, Read] = {}
    for (tensor, rest, gap), own in made.items():
        _pair(own, made.get((tensor, rest, 1 - gap), []), found)
    return found


def _pair(own: Sequence[Read], others: Sequence[Read], found: dict[Read, Read]) -> None:
    """Pair reads with others: those of one place first, whose address is not chosen."""
    for may_differ in (False, True):
        for read, other in product(own, others):
            if (may_differ or read[1].index == other[1].index) and not (
                read in found or other in found
            ):
                found[read], found[other] = other, read


def even_conditions(scheduled: Scheduled) -> frozenset[Scalar]:
    """Return the conditions that hold for all lanes of a packet or for none."""
    if scheduled.nest.leaf(Binding.PACKET) is None:
        return frozenset()
    return frozenset(c for _, point in scheduled.packed for c in point.guard)
