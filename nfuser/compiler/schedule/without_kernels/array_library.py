# SPDX-License-Identifier: Apache-2.0
"""What the array library computes, instead of a kernel: products, and sorts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import VIEWS, Argument, Constant, Remap, Slice, results
from nfuser.compiler.ir.scalars.scalar import ScalarInput
from nfuser.compiler.ir.scalars.scalar_walk import symbols
from nfuser.compiler.segment import Rejection

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion


class LibraryCalls:
    """One call of the library on arrays as they lie in memory, or on views of them."""

    name = "library"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take a call alone with the views that it reads."""
        call, *others = fusion.library_calls
        if others:
            reason = "the library computes one thing at a time"
            return Rejection(others[0].name, reason, others[0].result)
        for expr in fusion.exprs:
            if expr is not call and not _is_read_in_place(expr):
                reason = f"the library computes the {call.noun}, and nothing else"
                return Rejection(call.name, reason, call.result)
        if not set(fusion.outputs) <= set(results(call)):
            reason = f"the library stores the {call.noun}, and nothing else"
            return Rejection(call.name, reason, call.result)
        return None


def _is_read_in_place(expr: Expr) -> bool:
    """Tell whether array libraries give ``expr`` without a kernel of ours.

    Numbers of the program are. Not all of them have negative steps, and a start that
    the caller passes is another one in each call.
    """
    if isinstance(expr, Argument):
        return not expr.by_value
    if isinstance(expr, Constant):
        return True
    if isinstance(expr, Slice):
        moving = (isinstance(s, ScalarInput) for s in symbols(expr.starts))
        return min(expr.steps, default=1) > 0 and not any(moving)
    return isinstance(expr, VIEWS) and not isinstance(expr, Remap)
