# SPDX-License-Identifier: Apache-2.0
"""Passes over few long rows, or tall columns, that parts share: a launch for each.

No part waits for another inside a kernel. Each pass over the parts of a row is a
phase of its own, and all of one are done before the next begins. What lies between
passes is little: every part joins what all have folded, always in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars.functions import equal, less
from nfuser.compiler.lower.kernel.kernel_ir import guarded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nfuser.compiler.ir.expr import Reduce
    from nfuser.compiler.lower.cuda.combine import Combiner
    from nfuser.compiler.lower.elements.values import Values
    from nfuser.compiler.lower.folds import fold
    from nfuser.compiler.lower.kernel.kernel_ir import Stmt


def in_phase(combiner: Combiner, level: int, body: Iterable[Stmt]) -> tuple[Stmt, ...]:
    """Let the launch of the pass ``level`` run ``body``, if passes have their own."""
    phase = combiner.phase
    is_now = sc.const(1) if phase is None else equal(phase, level)
    return guarded(is_now, tuple(body))


def next_phase(
    values: Values, combiner: Combiner, level: int, states: dict[Reduce, fold.State]
) -> None:
    """Store what a part has folded in the pass ``level``; later ones join all parts."""
    assert combiner.phase is not None
    with values.block() as stores:
        combiner.combine(states)
        combiner.share_parts(states)
    values.emit_all(in_phase(combiner, level, stores))
    with values.block() as joins:
        for reduce, state in states.items():
            combiner.join_parts(reduce, state)
    values.emit_all(guarded(less(level, combiner.phase), tuple(joins)))
    for reduce, state in states.items():
        combiner.publish(reduce, state)
