# SPDX-License-Identifier: Apache-2.0
"""Read a row that was assigned to an array where it was computed.

What begins a recurrence, or ends it, is mostly written to the first or last row of an
array, and read from there by the next statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.domains.assigned_rows import are_apart, is_assigned_row
from nfuser.compiler.ir.expr import Assign, Slice
from nfuser.compiler.ir.fusion import Fusion, rebuild

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def forward_assigned_rows(fusion: Fusion) -> Fusion:
    """Forward the value of an assignment to what reads the same row of the array.

    Rows only: they are small beside the array, so that a value which two kernels read
    may well be stored for both. Elements of which memory holds fewer bits than kernels
    compute with are read from memory.
    """
    if not fusion.assignments:
        return fusion
    assigned: dict[TensorView, Assign] = {}

    def change(expr: Expr) -> TensorView | None:
        if isinstance(expr, Assign):
            assigned[expr.result] = expr
        if not isinstance(expr, Slice) or expr.result.dtype.compute is not (
            expr.result.dtype
        ):
            return None
        made = assigned.get(expr.source)
        while made is not None and are_apart(expr, made):
            made = assigned.get(made.source)
        is_row = made is not None and is_assigned_row(expr, made)
        return made.value if made is not None and is_row else None

    return rebuild(fusion, change)
