# SPDX-License-Identifier: Apache-2.0
"""Elements that are written in their array at once, and assigned to it later.

Each turn of ``for v in range(n): x[v] = min(x[v], u + v)`` is independent of the
others, so that the loop gives new elements, which are assigned to a part of the array.
Among loops that run one by one they are written there at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.domains.loops.element_steps import (
    Compute,
    ElementLoop,
    ElementPlace,
    ReadElement,
    Same,
    Write,
    is_number,
)
from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import Assign, Pointwise
from nfuser.compiler.ir.point_op import is_copy
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.domains.loops.element_steps import (
        ArrayPart,
        Coordinate,
        Step,
    )
    from nfuser.compiler.ir.expr import Loop
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


@node
class ElementLine:
    """Elements of an array of one axis, from ``start`` on, ``step`` apart."""

    array: TensorView
    start: Scalar
    step: int


def lines_written(body: Fusion, loop: Loop) -> dict[TensorView, ElementLine]:
    """Return where the results of ``loop``, new elements, come to lie at last.

    A part of an array is assigned them, or they take the place of all of one that the
    loop around carries. They are those of a loop that takes all of its turns.
    """
    if loop.turn is None or loop.flag is not None or loop.backwards:
        return {}
    lines = {
        whole: _line(body, whole)
        for row, whole in loop.added
        if is_number(row) and whole.ndim == 1
    }
    return {whole: line for whole, line in lines.items() if line is not None}


def _line(body: Fusion, tensor: TensorView) -> ElementLine | None:
    """Return where ``tensor`` goes as it is, or a copy of it."""
    while tensor not in body.outputs and len(body.users.get(tensor, ())) == 1:
        (user,) = body.users[tensor]
        match user:
            case Pointwise(op) if is_copy(op):
                tensor = user.result
            case Assign() if user.value is tensor and user.source.ndim == 1:
                return ElementLine(user.source, user.starts[0], user.steps[0])
            case _:
                return None
    if body.outputs.count(tensor) != 1:
        return None
    slot = body.outputs.index(tensor)
    held = next((a.result for a in body.arguments if a.slot == slot), None)
    fits = held is not None and held.shape == tensor.shape
    return ElementLine(held, sc.const(0), 1) if held is not None and fits else None


def writes_in_place(
    loop: Loop, targets: Mapping[TensorView, ArrayPart], steps: Sequence[Step]
) -> list[Write] | None:
    """Return what writes the elements of a turn to ``targets``, after its ``steps``.

    None if a turn reads others of these arrays, which turns before it have written.
    """
    found: list[Write] = []
    for row, whole in loop.added:
        if (part := targets.get(whole)) is None:
            continue
        (at,), turn = part.index, loop.turn
        if turn is None or not _reads_alone(steps, turn, part.array, at):
            return None
        own = replace(at, number=turn, extent=loop.trips, inside=True)
        found.append(Write(ElementPlace(part.array, (own,)), row))
    return found


def is_put_back(
    expr: Assign, part: ArrayPart, source: ArrayPart, written: ArrayPart | None
) -> bool:
    """Tell whether a part that was written in place is assigned to where it is."""
    if written is None or source.version + 1 != part.version:
        return False
    axes = [a for a in part.axes if a >= 0]
    if written.index != part.index or axes != sorted(axes):
        return False
    return all(
        at.number is None
        and at.start is start
        and (at.step == step or axis not in axes)
        for axis, (at, start, step) in enumerate(
            zip(part.index, expr.starts, expr.steps, strict=True)
        )
    )


def _reads_alone(
    steps: Sequence[Step], turn: TensorView, array: TensorView, at: Coordinate
) -> bool:
    """Tell whether a turn reads of ``array`` only the element that it writes, ``at``.

    Turns before it have written others.
    """
    names = {turn}
    for step in steps:
        match step:
            case Same(result, source) if source in names:
                names.add(result)
            case Compute(Pointwise(op, (source,), result)):
                if source in names and is_copy(op):
                    names.add(result)
            case ReadElement(_, place) if place.array is array:
                (own,) = place.index
                is_there = own.start is at.start and own.step == at.step
                if not is_there or own.number not in names:
                    return False
            case ElementLoop(_, _, inner) if not _reads_alone(inner, turn, array, at):
                return False
            case _:
                pass
    return True
