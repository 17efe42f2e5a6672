# SPDX-License-Identifier: Apache-2.0
"""Give every output an expression that computes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.ir.expr import Argument, Constant, FromScalar, Iota, Pointwise
from nfuser.ir.fusion import Fusion
from nfuser.ir.point_op import COPY

if TYPE_CHECKING:
    from nfuser.ir.expr import Expr
    from nfuser.ir.tensor import TensorView


def copy_leaf_outputs(fusion: Fusion) -> Fusion:
    """Copy outputs that are arguments or constants, or that come twice.

    No kernel stores those; each output is a buffer of its own.
    """
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
