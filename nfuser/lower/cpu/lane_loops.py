# SPDX-License-Identifier: Apache-2.0
"""The lane loops of a CPU kernel: in several places of memory at once, or bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.lower import fold
from nfuser.lower.cpu.bounded import bounded, has_angles
from nfuser.lower.cpu.interleaved_loops import Folded, in_pieces
from nfuser.lower.cpu.split_ranges import at_seams
from nfuser.lower.cpu.unwrap_modulo import in_periods
from nfuser.lower.kernel.kernel_ir import For, Stmt, Var

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.ir.expr import Reduce
    from nfuser.lower.values import Values


def in_streams(
    body: Iterable[Stmt], values: Values, folding: Mapping[Reduce, fold.State]
) -> list[Stmt]:
    """Let the lane loops of a CPU go through several places of memory at once."""
    lane, walk = values.nest.lane, values.scheduled.walk
    if lane is None or not values.scheduled.target.has_vectors:
        return list(body)
    if any(len(state) > 1 for state in folding.values()):
        return list(body)
    folded: dict[Var, Folded] = {}
    for reduce, (state,) in folding.items():
        assert isinstance(state, Var)
        begin, *_ = fold.initial(reduce)
        join = fold.joiner(reduce, state.dtype, reassociate=True)
        folded[state] = Folded(begin, join)

    extents = {x for t in values.definition for x in t.shape}

    def pieces(whole: For) -> list[Stmt]:
        loops, made = at_seams(whole, extents), list[Stmt]()
        # What is in several pieces gains nothing where these go side by side, too.
        plain = walk if len(loops) == 1 else replace(walk, streams=1)
        for loop in loops:
            # Nor does what computes sines; and loops of one place can look at angles.
            ways = (
                replace(plain, streams=1, bypass=False) if has_angles(loop) else plain
            )
            for part in in_pieces(loop, ways, folded, values):
                made += bounded(part) if isinstance(part, For) else (part,)
        return made

    made: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For) and stmt.index is lane.index:
            made += in_periods(stmt, pieces)
        else:
            made.append(stmt)
    return made
