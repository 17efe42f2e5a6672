# SPDX-License-Identifier: Apache-2.0
"""Give what is stored, an output or an operand of a product, an expression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    VIEWS,
    Argument,
    Assign,
    Constant,
    FromScalar,
    Iota,
    Loop,
    Pointwise,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild, with_sources
from nfuser.compiler.ir.point_op import COPY

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def copy_leaf_outputs(fusion: Fusion) -> Fusion:
    """Copy outputs that are arguments or constants, or that come twice.

    No kernel stores those; each output is a buffer of its own. So is what a loop
    carries, before it and after. What was assigned to comes last, and is no copy.
    """
    fusion = _with_stored_operands(fusion)
    if fusion.loops:
        fusion = _with_own_carried(fusion)
    exprs: list[Expr] = list(fusion.exprs)
    outputs: list[TensorView] = []
    for number, tensor in enumerate(fusion.outputs, 1):
        expr = fusion.definition[tensor]
        is_leaf = isinstance(expr, (Argument, Constant, FromScalar, Iota))
        if isinstance(expr, Loop):
            is_leaf = tensor in expr.results[: expr.carried]
        others = fusion.outputs[number:] if isinstance(expr, Assign) else outputs
        own = tensor
        if is_leaf or tensor in others:
            own = replace(tensor)
            exprs.append(Pointwise(COPY, (tensor,), own))
        outputs.append(own)
    if tuple(outputs) == fusion.outputs:
        return fusion
    return Fusion(fusion.name, exprs, outputs)


def _with_stored_operands(fusion: Fusion) -> Fusion:
    """Copy indices along an axis, and numbers, for a library: it reads arrays only."""
    leaves = {
        e.result
        for e in fusion.exprs
        if isinstance(e, (FromScalar, Iota)) or (isinstance(e, Argument) and e.by_value)
    }

    def change(expr: Expr) -> Replacement | None:
        if not isinstance(expr, LIBRARY_CALLS) or leaves.isdisjoint(sources(expr)):
            return None
        own = {t: replace(t) for t in sources(expr) if t in leaves}
        copies = (Pointwise(COPY, (t,), made) for t, made in own.items())
        read = with_sources(expr, [own.get(t, t) for t in sources(expr)])
        return Replacement((*copies, read), results(expr))

    return rebuild(fusion, change)


def _with_own_carried(fusion: Fusion) -> Fusion:
    """Let each carried value begin in memory that only its loop reads and writes.

    What else a loop reads lies in memory, too, or is a number of the call.
    """
    outputs = set(fusion.outputs)

    def change(expr: Expr) -> Replacement | None:
        if not isinstance(expr, Loop):
            return None
        numbers = {a.slot for a in expr.body.arguments if a.by_value}
        read = list(expr.operands)
        copies: list[Expr] = []
        for k, tensor in enumerate(expr.operands):
            definition = defined.get(tensor, expr)  # else of a loop before
            is_stored = not isinstance(definition, (Constant, FromScalar, Iota, *VIEWS))
            if isinstance(definition, Argument):
                is_stored = definition.by_value == (k in numbers)
            if k < expr.carried:
                is_stored &= not isinstance(
                    definition, (Argument, Loop, *LIBRARY_CALLS)
                )
                is_stored &= tensor not in outputs and read.count(tensor) == 1
                is_stored &= users.get(tensor) == 1
            if not is_stored:
                read[k] = replace(tensor)
                copies.append(Pointwise(COPY, (tensor,), read[k]))
        # What lies in the memory of the loop is no output, however alike they look.
        own = tuple(replace(t) for t in expr.results)
        made = replace(expr, operands=tuple(read), results=own)
        return Replacement((*copies, made), own)

    defined = dict(fusion.definition)
    users = {t: len(found) for t, found in fusion.users.items()}
    return rebuild(fusion, change)
