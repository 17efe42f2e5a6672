# SPDX-License-Identifier: Apache-2.0
"""Arrays that a loop goes on with in the memory where they were computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.loops.one_by_one import one_by_one
from nfuser.compiler.domains.space import Mismatch
from nfuser.compiler.ir.expr import Argument, Pointwise
from nfuser.compiler.ir.point_op import is_copy
from nfuser.compiler.schedule.registry import SERIAL

if TYPE_CHECKING:
    from collections.abc import Collection

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts
    from nfuser.compiler.segment import Segment


def taken_over(
    piece: Segment, fusion: Fusion, facts: Facts, placed: Collection[TensorView]
) -> dict[int, tuple[TensorView, TensorView]]:
    """Return the arrays that a loop of single elements need not copy, by their number.

    Each is one that a kernel computes for the loop alone, with what the loop leaves of
    it, which lies alike and nowhere yet: not among what is ``placed``.
    """
    if piece.scheduler is not SERIAL:
        return {}
    steps = one_by_one(piece.fusion)
    assert not isinstance(steps, Mismatch)
    return {
        number: (before, left)
        for number, (before, left) in enumerate(steps.copied)
        if isinstance(fusion.definition[before], Pointwise)
        and len(fusion.users[before]) == 1
        and before not in fusion.outputs
        and left not in placed
        and facts.layouts[before].strides == facts.layouts[left].strides
    }


def is_copied(fusion: Fusion) -> bool:
    """Tell whether what a kernel does is to copy an array, as it is."""
    given, *others = fusion.exprs
    return (
        isinstance(given, Argument)
        and not given.by_value
        and len(others) == 1
        and isinstance(others[0], Pointwise)
        and is_copy(others[0].op)
    )
