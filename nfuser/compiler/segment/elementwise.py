# SPDX-License-Identifier: Apache-2.0
"""What one kernel runs element by element, as can be told without a scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import Pointwise, Slice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def is_elementwise(exprs: Sequence[Expr]) -> bool:
    """Tell whether every result is of one shape, and none is read beside its place.

    Slices of what others leave may lie anywhere: each axis runs along the same axis of
    all results.
    """
    first = exprs[0]
    if not isinstance(first, (Pointwise, Slice)):
        return False
    shape = first.result.shape
    own: set[TensorView] = set()  # in the order of the program
    for expr in exprs:
        if not isinstance(expr, (Pointwise, Slice)) or expr.result.shape != shape:
            return False
        if isinstance(expr, Slice) and expr.source in own:
            return False
        own.add(expr.result)
    return True
