# SPDX-License-Identifier: Apache-2.0
"""The verb that undoes stretching: the transpose of broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.shapes.views as views
from nfuser.compiler.ir.expr import Reduce, ReduceOp, SumTo
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def sum_to(b: Builder, x: TensorView, shape: Sequence[Scalar]) -> TensorView:
    """Return ``x`` summed over the axes along which ``shape`` stretches to its own.

    Where sizes must be known to tell which these are, each call tells.
    """
    one = sc.const(1)
    lead = x.ndim - len(shape)
    pairs = list(zip(x.shape, [*[one] * lead, *shape], strict=True))
    if any(new is not old and new is not one for old, new in pairs):
        result = b.new(shape, x.dtype)
        b.emit(SumTo(x, result, tuple(range(lead))))
        return result
    axes = [k for k, (old, new) in enumerate(pairs) if k < lead or new is not old]
    if not axes:
        return x
    kept = [extent for k, extent in enumerate(x.shape) if k not in axes]
    found = b.new(kept, x.dtype)
    b.emit(Reduce(ReduceOp.SUM, x, (found,), tuple(axes), is_derived=True))
    return views.expand_dims(b, found, [k - lead for k in axes if k >= lead])
