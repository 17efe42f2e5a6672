# SPDX-License-Identifier: Apache-2.0
"""A loop in one kernel that may overwrite the array which it begins with.

A thread has a column of the array for itself, along which its turns write. It reads of
it before them, and no more in its turns: compilers take what is read and what is
written for different memory, and may read later than they are told to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.loops.first_turn import FirstTurn, first_turn
from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    ExpandDims,
    Expr,
    Loop,
    Permute,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import is_copy

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Assign
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def read_in_step(fusion: Fusion, assign: Assign) -> set[Expr]:
    """Return the loop whose turns write the value, and what it is found with.

    Empty if it reads what it has overwritten, or is no loop that one kernel runs.
    """
    chain: list[Expr] = []
    expr = fusion.definition[assign.value]
    while isinstance(expr, (Permute, ExpandDims)) or _is_copy(expr):
        chain.append(expr)
        (source,) = sources(expr)
        if len(fusion.users[source]) > 1 or source in fusion.outputs:
            return set()
        expr = fusion.definition[source]
    if not isinstance(expr, Loop) or not _begins_with(fusion, expr, assign.source):
        return set()
    own = [*_views(fusion, expr, assign.source), expr, *reversed(chain)]
    turn = first_turn(_alone(fusion, own, assign.value))
    if not isinstance(turn, FirstTurn) or not turn.rows:
        return set()
    return set(own) if _is_in_step(turn, assign) else set()


def _is_copy(expr: Expr) -> bool:
    return isinstance(expr, Pointwise) and is_copy(expr.op)


def _base(fusion: Fusion, tensor: TensorView) -> tuple[TensorView, list[Expr]]:
    """Return what ``tensor`` is a view of, or a copy of one, and by what steps."""
    steps: list[Expr] = []
    expr = fusion.definition[tensor]
    while isinstance(expr, VIEWS) or _is_copy(expr):
        steps.insert(0, expr)
        (tensor,) = sources(expr)
        expr = fusion.definition[tensor]
    return tensor, steps


def _begins_with(fusion: Fusion, loop: Loop, whole: TensorView) -> bool:
    """Tell whether turns have what they know of ``whole`` from what is carried."""
    bases = [_base(fusion, t)[0] for t in loop.operands]
    return whole in bases[: loop.carried] and whole not in bases[loop.carried :]


def _views(fusion: Fusion, loop: Loop, whole: TensorView) -> list[Expr]:
    """Return the views of ``whole`` that ``loop`` reads, in order."""
    found: dict[Expr, None] = {}
    for tensor in loop.operands:
        base, steps = _base(fusion, tensor)
        if base is whole:
            found.update(dict.fromkeys(steps))
    return list(found)


def _alone(fusion: Fusion, exprs: list[Expr], output: TensorView) -> Fusion:
    made = {t for e in exprs for t in results(e)}
    read = dict.fromkeys(t for e in exprs for t in sources(e) if t not in made)
    arguments = [Argument(k, t, _is_by_value(fusion, t)) for k, t in enumerate(read)]
    return Fusion(fusion.name, [*arguments, *exprs], [output])


def _is_by_value(fusion: Fusion, tensor: TensorView) -> bool:
    expr = fusion.definition[tensor]
    return isinstance(expr, Argument) and expr.by_value


def _is_in_step(turn: FirstTurn, assign: Assign) -> bool:
    """Tell whether each column of the array is read by who writes it, before that."""
    ((row, place),) = turn.rows.items()
    own = iter(turn.space.points[row])
    written: list[Scalar | None] = []
    for k, (start, step) in enumerate(zip(assign.starts, assign.steps, strict=True)):
        written.append(None if k == place.axis else start + next(own) * step)
    for tensor, point in turn.reads:
        if tensor is not assign.source:
            continue
        pairs = zip(point, written, tensor.axes, strict=True)
        if not all(w is None or a is w or x.is_broadcast for a, w, x in pairs):
            return False
    return True
