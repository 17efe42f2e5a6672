# SPDX-License-Identifier: Apache-2.0
"""What the body of a loop is rewritten to: what a host program can run in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    VIEWS,
    Argument,
    Assign,
    Expr,
    Loop,
    Pointwise,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.point_op import COPY
from nfuser.compiler.rewrite.types.split_complex import split_complex

if TYPE_CHECKING:
    from collections.abc import Callable

    from nfuser.compiler.ir.tensor import TensorView


def with_bodies(fusion: Fusion, change: Callable[[Fusion], Fusion]) -> Fusion:
    """Return ``fusion`` with the body of each of its loops changed."""

    def changed(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Loop):
            return None
        body = _rewritten(expr, change)
        if body is expr.body:
            return None
        return Replacement((replace(expr, body=body),), expr.results)

    return rebuild(fusion, changed)


def _rewritten(loop: Loop, change: Callable[[Fusion], Fusion]) -> Fusion:
    """Return the body changed; what it hands on as it was is computed by nobody."""
    loop = replace(loop, body=split_complex(loop.body))
    loop = replace(loop, body=_assigned_in_place(loop))
    body, kept = loop.body, _handed_on(loop)
    computed = [k for k in range(len(body.outputs)) if k not in kept]
    before = body
    if kept:
        before = Fusion(body.name, body.exprs, [body.outputs[k] for k in computed])
    after = _with_kernels_last(change(before), loop.carried - len(kept))
    if after is before:
        return loop.body
    made = dict(zip(computed, after.outputs, strict=True))
    outputs = [made.get(k, old) for k, old in enumerate(body.outputs)]
    return Fusion(after.name, after.exprs, outputs)


def _assigned_in_place(loop: Loop) -> Fusion:
    """Let a carried array that is only assigned to be written where it lies.

    The trace assigns to a copy of what was before the iteration. That is needed only
    where the old array is handed on as well.
    """
    body = loop.body
    instead: dict[TensorView, TensorView] = {}
    for number, tensor in enumerate(body.outputs[: loop.carried]):
        copy = _first_of(body, tensor)
        if copy is None or body.outputs.count(tensor) > 1:
            continue
        (before,) = copy.operands
        made = body.definition[before]
        is_own = isinstance(made, Argument) and made.slot == number
        alike = loop.operands[number].shape == copy.result.shape
        if is_own and alike and before not in body.outputs:
            instead[copy.result] = before
    if not instead:
        return body
    return rebuild(body, lambda e: _replaced(e, instead))


def _replaced(expr: Expr, instead: dict[TensorView, TensorView]) -> TensorView | None:
    return instead.get(expr.result) if isinstance(expr, Pointwise) else None


def _first_of(body: Fusion, tensor: TensorView) -> Pointwise | None:
    """Return the copy that a chain of assignments begins with, which ends in tensor."""
    made: Expr = body.definition[tensor]
    if not isinstance(made, Assign):
        return None
    while isinstance(made, Assign):
        made = body.definition[made.source]
    if isinstance(made, Pointwise) and made.op is COPY:
        return made
    return None


def _handed_on(loop: Loop) -> set[int]:
    """Return which carried values are others, or themselves, of before an iteration.

    Memory has one owner, and one form: where two would be the same, one is a copy.
    """
    found: dict[int, int] = {}
    for number, source in enumerate(loop.forwarded):
        if source is None or source in found.values():
            continue
        if loop.operands[number].shape == loop.operands[source].shape:
            found[number] = source
    return set(found)


def _with_kernels_last(body: Fusion, carried: int) -> Fusion:
    """Let kernels write what iterations leave where that is to lie.

    A loop inside has memory of its own, and libraries read and write no row of another
    array.
    """
    exprs: list[Expr] = list(body.exprs)
    outputs: list[TensorView] = []
    for number, tensor in enumerate(body.outputs):
        expr = body.definition[tensor]
        is_apart = isinstance(expr, LIBRARY_CALLS) or _is_read_whole(body, tensor)
        own = tensor
        if (is_apart and number >= carried) or isinstance(expr, Loop):
            own = replace(tensor)
            exprs.append(Pointwise(COPY, (tensor,), own))
        outputs.append(own)
    if tuple(outputs) == body.outputs:
        return body
    return Fusion(body.name, exprs, outputs)


def _is_read_whole(body: Fusion, tensor: TensorView) -> bool:
    """Tell whether a library, or a loop inside, reads ``tensor`` or a view of it.

    What was there before an assignment lies in the same place.
    """
    stack = [tensor]
    while isinstance(assign := body.definition[stack[-1]], Assign):
        stack.append(assign.source)
    seen = set(stack)
    while stack:
        for user in body.users[stack.pop()]:
            if isinstance(user, (*LIBRARY_CALLS, Loop)):
                return True
            if isinstance(user, VIEWS) and user.result not in seen:
                seen.add(user.result)
                stack.append(user.result)
    return False
