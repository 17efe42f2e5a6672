# SPDX-License-Identifier: Apache-2.0
"""When the turns of a loop have come to rest: no later one changes anything.

A turn that chooses between a new value and the one that it was given changes nothing
where its condition says so. If all that is carried is chosen like this, and no
condition hangs on the number of the turn, then a turn in which no condition holds is
like all turns after it. The points of a set that have escaped are at rest, and so are
numbers that an iteration no longer improves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.maps import data_of, datum_point, source_points
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Pointwise
from nfuser.compiler.ir.point_op import SELECT, is_copy
from nfuser.compiler.ir.tensor import TensorView

if TYPE_CHECKING:
    from nfuser.compiler.domains.loops.first_turn import FirstTurn, HeldState
    from nfuser.compiler.domains.maps import Read


@node
class Change:
    """A truth value of a turn: what is carried may change where it is ``when``."""

    read: Read
    when: bool


def changes(turn: FirstTurn) -> tuple[Change, ...] | None:
    """Return when a turn changes anything; None where turns never come to rest.

    Each turn stores its row, whatever it holds: a loop with rows runs to its end.
    """
    if turn.rows or not turn.states:
        return None
    found: dict[tuple[Read, bool], None] = {}
    for state in turn.states:
        own = _changes_of(turn, state)
        if own is None:
            return None
        found.update(dict.fromkeys(own))
    if any(_counts(turn, read) for read, _ in found):
        return None
    return tuple(Change(read, when) for read, when in found)


def _changes_of(turn: FirstTurn, state: HeldState) -> list[tuple[Read, bool]] | None:
    """Return the conditions of which one holds wherever ``state`` changes."""
    definition = turn.fusion.definition
    found: list[tuple[Read, bool]] = []
    held, at = (state.held, state.point), (state.after, state.point)
    while at != held:
        expr = definition[at[0]]
        if not isinstance(expr, Pointwise):
            return None
        read = source_points(expr, at[1])
        if is_copy(expr.op):
            (at,) = read
        elif expr.op is SELECT:
            condition, one, other = read
            kept = _leads_to(turn, other, held)
            if not kept and not _leads_to(turn, one, held):
                return None
            found.append((condition, kept))
            at = other if kept else one
        else:
            return None
    return found


def _leads_to(turn: FirstTurn, at: Read, held: Read) -> bool:
    """Tell whether choices lead from ``at`` to what a turn was given."""
    definition = turn.fusion.definition
    stack = [at]
    while stack:
        at = stack.pop()
        if at == held:
            return True
        expr = definition[at[0]]
        if isinstance(expr, Pointwise) and (is_copy(expr.op) or expr.op is SELECT):
            stack += source_points(expr, at[1])[-2:]
    return False


def _counts(turn: FirstTurn, read: Read) -> bool:
    """Tell whether ``read`` hangs on the number of the turn."""
    held = {state.held for state in turn.states}
    seen: set[Read] = set()
    stack = [read]
    while stack:
        tensor, point = at = stack.pop()
        if tensor is turn.turn:
            return True
        if at in seen or tensor in held:
            continue
        seen.add(at)
        stack += source_points(turn.fusion.definition[tensor], point)
        for chosen in data_of(point):
            assert isinstance(chosen.tensor, TensorView)
            stack.append((chosen.tensor, datum_point(chosen, point)))
    return False
