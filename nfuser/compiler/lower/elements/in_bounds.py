# SPDX-License-Identifier: Apache-2.0
"""Guards of what has no rows: at the ends of the loops that blocks and threads run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.scalars.functions import less
from nfuser.compiler.lower.kernel.kernel_ir import guarded

if TYPE_CHECKING:
    from nfuser.compiler.lower.kernel.kernel_ir import Stmt
    from nfuser.compiler.schedule.nest import Leaf, Nest


def in_bounds(
    nest: Nest, body: tuple[Stmt, ...], items: Leaf | None, *, inside: bool
) -> tuple[Stmt, ...]:
    """Guard what runs once a thread, or ``inside`` the loop over its ``items``.

    Items whose surplus repeats the last element have their stores guarded alone.
    """
    for bound in nest.kept_bounds:
        if items is not None and bound.is_clamped:
            continue
        loops = scalar_walk.loops_in(bound.index)
        moves = items is not None and items.index in loops
        if moves == inside:
            body = guarded(less(bound.index, bound.extent), body)
    return body
