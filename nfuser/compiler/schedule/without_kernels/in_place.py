# SPDX-License-Identifier: Apache-2.0
"""Assignments: what stores the value has put it where it belongs, and nothing runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Argument
from nfuser.compiler.segment.segmented import IN_PLACE, Rejection

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion


class InPlace:
    """One assignment of what others leave in memory, to what they leave there."""

    name = IN_PLACE

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take an assignment by itself."""
        assign, *others = fusion.assignments
        rest = (e for e in fusion.exprs if e is not assign)
        if not others and all(isinstance(e, Argument) for e in rest):
            return None
        reason = "the value is stored in the array before anything reads it there"
        return Rejection(self.name, reason, assign.result)
