# SPDX-License-Identifier: Apache-2.0
"""What runs its body's kernels again and again: a loop of the host program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.segment.segmented import LOOP, Rejection

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion


class Loops:
    """One loop on arrays as they lie in memory; its body is cut by itself."""

    name = LOOP

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take a loop alone."""
        loop = fusion.loops[0]
        for expr in fusion.exprs:
            if expr is not loop and not isinstance(expr, Argument):
                reason = "the kernels of its body run again and again, and no others"
                return Rejection(self.name, reason, loop.result)
        return None
