# SPDX-License-Identifier: Apache-2.0
"""What the array library computes, instead of a kernel: products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.ir.expr import VIEWS, Argument, Remap, Slice
from nfuser.ir.scalar import ScalarInput
from nfuser.ir.scalar_walk import symbols
from nfuser.segment import Rejection

if TYPE_CHECKING:
    from nfuser.ir.expr import Expr
    from nfuser.ir.fusion import Fusion


class Product:
    """One product of arrays, each as it lies in memory or as a view of it."""

    name = "matmul"

    def can_schedule(self, fusion: Fusion) -> Rejection | None:
        """Take a product alone with the views that it reads."""
        product, *others = fusion.products
        if others:
            reason = "the library computes one product at a time"
            return Rejection(self.name, reason, others[0].result)
        for expr in fusion.exprs:
            if expr is not product and not _is_read_in_place(expr):
                reason = "the library computes the product, and nothing else"
                return Rejection(self.name, reason, product.result)
        if fusion.outputs != (product.result,):
            reason = "the library stores the product, and nothing else"
            return Rejection(self.name, reason, product.result)
        return None


def _is_read_in_place(expr: Expr) -> bool:
    """Tell whether array libraries give ``expr`` without a kernel of ours.

    Not all of them have negative steps, and a start that the caller passes is another
    one in each call.
    """
    if isinstance(expr, Argument):
        return not expr.by_value
    if isinstance(expr, Slice):
        moving = (isinstance(s, ScalarInput) for s in symbols(expr.starts))
        return min(expr.steps, default=1) > 0 and not any(moving)
    return isinstance(expr, VIEWS) and not isinstance(expr, Remap)
