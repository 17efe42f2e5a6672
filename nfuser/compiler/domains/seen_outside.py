# SPDX-License-Identifier: Apache-2.0
"""What a caller sees of its arrays if a call fails half-way.

That is what the statements before have left, and nothing of those after: what may fail
stands in its place among the assignments to arrays that were there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Argument, Assign
from nfuser.compiler.ir.fusion import may_fail, remembered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion


@remembered
def assigned_outside(fusion: Fusion) -> tuple[Assign, ...]:
    """Return the assignments to arrays that ``fusion`` is given, in order."""
    found: dict[Assign, None] = {}
    for assign in fusion.assignments:
        made = fusion.definition[assign.source]
        if isinstance(made, Argument) or made in found:
            found[assign] = None
    return tuple(found)


def in_turn(fusion: Fusion) -> Iterator[tuple[Expr, Expr]]:
    """Return what may fail and what stores a value that is seen, first things first.

    What stores one and may fail itself stores nothing if it does: it keeps its place.
    """
    outside = assigned_outside(fusion) if fusion.failing else ()
    order = {e: k for k, e in enumerate(fusion.exprs)} if outside else {}
    for assign in outside:
        writer = fusion.definition[assign.value]
        at = order[writer if may_fail(writer) else assign]
        for expr in fusion.failing:
            if expr is not writer:
                yield (writer, expr) if at < order[expr] else (expr, writer)


def fails_between(fusion: Fusion, first: Expr, last: Assign) -> bool:
    """Tell whether something may fail between two expressions, and ``last`` be seen."""
    if not fusion.failing or last not in assigned_outside(fusion) or may_fail(first):
        return False
    order = {e: k for k, e in enumerate(fusion.exprs)}
    return any(order[first] < order[e] < order[last] for e in fusion.failing)
