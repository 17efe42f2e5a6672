# SPDX-License-Identifier: Apache-2.0
"""Take the side of a choice whose condition is a constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Constant, Expand, ExpandDims, Expr, Pointwise
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.point_op import COPY, SELECT

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


def take_known_choices(fusion: Fusion) -> Fusion:
    """Take the operand that a constant condition chooses, and read no other."""
    known: dict[TensorView, bool] = {}
    outputs = set(fusion.outputs)

    def change(expr: Expr) -> Replacement | TensorView | None:
        match expr:
            case Constant(bool() as number, result):
                known[result] = number
            case Expand() | ExpandDims() if expr.source in known:
                known[expr.result] = known[expr.source]
            case Pointwise(op, (condition, yes, no), result) if (
                op is SELECT and condition in known
            ):
                chosen = yes if known[condition] else no
                if chosen.shape != result.shape:
                    return None  # the other operand says how far it is stretched
                if result not in outputs:
                    return chosen
                return Replacement((Pointwise(COPY, (chosen,), result),), (result,))
            case _:
                pass
        return None

    return rebuild(fusion, change)
