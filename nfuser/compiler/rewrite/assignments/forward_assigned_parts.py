# SPDX-License-Identifier: Apache-2.0
"""Read what was assigned to parts of an array where it was computed.

An array is often made of zeros, so that what is computed of its inner part has a halo
that nothing reads. Without the array nothing has to be filled, and no kernel has to
wait until another has written there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Assign, Slice
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def forward_assigned_parts(fusion: Fusion) -> Fusion:
    """Forward values to their readers where nothing else is read of an array then.

    Elsewhere the value would be stored twice: in the array, and for those who read it
    beside that. Elements of which memory holds fewer bits than kernels compute with
    are read from memory.
    """
    unread = _unread(fusion)
    if not unread:
        return fusion
    forwarded: dict[TensorView, Assign] = {}

    def change(expr: Expr) -> TensorView | Replacement | None:
        if isinstance(expr, Assign) and expr.result in unread:
            forwarded[expr.result] = expr  # whose value may be another by now
        made = forwarded.get(expr.source) if isinstance(expr, Slice) else None
        if made is None or not isinstance(expr, Slice):
            return None
        if expr.result.shape == made.value.shape:
            return made.value
        gaps = (a - b for a, b in zip(expr.starts, made.starts, strict=True))
        part = Slice(made.value, replace(expr.result), tuple(gaps), expr.steps)
        return Replacement((part,), (part.result,))

    return rebuild(fusion, change)


def _unread(fusion: Fusion) -> set[TensorView]:
    """Return the arrays that nobody needs once values are read where they are."""
    unread: set[TensorView] = set()
    for assign in reversed(fusion.assignments):
        made, users = assign.result, fusion.users[assign.result]
        if made in fusion.outputs or made.dtype.compute is not made.dtype:
            continue
        if all(
            user.result in unread
            if isinstance(user, Assign) and user.value is not made
            else _is_inside(user, assign)
            for user in users
        ):
            unread.add(made)
    return unread


def _is_inside(expr: Expr, assign: Assign) -> bool:
    """Tell whether ``expr`` reads nothing but what was assigned."""
    if not isinstance(expr, Slice) or expr.source is not assign.result:
        return False
    steps = zip(expr.steps, assign.steps, strict=True)
    if any(pair != (1, 1) for pair in steps):
        return False
    for k, whole in enumerate(assign.value.shape):
        gap = expr.starts[k] - assign.starts[k]
        rest = whole - gap - expr.result.shape[k]
        if not all(isinstance(x, sc.Const) and x.value >= 0 for x in (gap, rest)):
            return False
    return True
