# SPDX-License-Identifier: Apache-2.0
"""Give what is stored, an output or an operand of a product, an expression."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir.expr import (
    LIBRARY_CALLS,
    Argument,
    Constant,
    FromScalar,
    Iota,
    Pointwise,
    sources,
)
from nfuser.ir.fusion import Fusion, Replacement, rebuild, with_sources
from nfuser.ir.point_op import COPY

if TYPE_CHECKING:
    from nfuser.ir.expr import Expr
    from nfuser.ir.tensor import TensorView


def copy_leaf_outputs(fusion: Fusion) -> Fusion:
    """Copy outputs that are arguments or constants, or that come twice.

    No kernel stores those; each output is a buffer of its own.
    """
    fusion = _with_stored_operands(fusion)
    exprs: list[Expr] = list(fusion.exprs)
    outputs: list[TensorView] = []
    for tensor in fusion.outputs:
        is_leaf = isinstance(
            fusion.definition[tensor], (Argument, Constant, FromScalar, Iota)
        )
        own = tensor
        if is_leaf or tensor in outputs:
            own = replace(tensor)
            exprs.append(Pointwise(COPY, (tensor,), own))
        outputs.append(own)
    if tuple(outputs) == fusion.outputs:
        return fusion
    return Fusion(fusion.name, exprs, outputs)


def _with_stored_operands(fusion: Fusion) -> Fusion:
    """Copy the indices along an axis that a library reads: it reads arrays only."""
    indices = {e.result for e in fusion.exprs if isinstance(e, Iota)}

    def change(expr: Expr) -> Replacement | None:
        if not isinstance(expr, LIBRARY_CALLS) or indices.isdisjoint(sources(expr)):
            return None
        own = {t: replace(t) for t in sources(expr) if t in indices}
        copies = (Pointwise(COPY, (t,), made) for t, made in own.items())
        read = with_sources(expr, [own.get(t, t) for t in sources(expr)])
        return Replacement((*copies, read), (expr.result,))

    return rebuild(fusion, change)
