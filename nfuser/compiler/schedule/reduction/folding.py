# SPDX-License-Identifier: Apache-2.0
"""What a fusion folds, as far as schedules of any target ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import loops_of
from nfuser.compiler.domains.space import space_of
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import ReduceOp
from nfuser.compiler.schedule.reduction.rewritten.expand import takes_one_pass

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion


def is_single_pass(fusion: Fusion) -> bool:
    """Tell whether one pass over the rows is enough: one level, row outputs only."""
    space = space_of(fusion)
    rows_only = all(
        not set(space.reduced) & set(loops_of(space.points[t])) for t in fusion.outputs
    )
    in_two = any(
        r.op is ReduceOp.MOMENTS and not takes_one_pass(r) for r in fusion.reductions
    )
    return rows_only and not in_two and max(space.levels.values(), default=0) == 0


def sums_in_f64(fusion: Fusion) -> bool:
    """Tell whether sums run in the widest type there is, where long chains tell."""
    adds = (ReduceOp.SUM, ReduceOp.MOMENTS)
    return any(r.op in adds and r.source.dtype is DType.F64 for r in fusion.reductions)


def has_moments(fusion: Fusion) -> bool:
    """Tell whether a mean and a variance are folded at once."""
    return any(r.op is ReduceOp.MOMENTS for r in fusion.reductions)


def finds_places(fusion: Fusion) -> bool:
    """Tell whether the place of the best element is looked for."""
    places = (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
    return any(r.op in places for r in fusion.reductions)
