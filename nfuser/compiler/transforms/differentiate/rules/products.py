# SPDX-License-Identifier: Apache-2.0
"""Cotangents of the operands of a product of matrices: products themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Matmul
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


def of_matmul(b: Builder, expr: Matmul, t: TensorView, place: int) -> TensorView:
    """Return the cotangent of one of the two operands."""
    lhs, rhs = expr.lhs, expr.rhs
    t = b.cast(t, lhs.dtype)
    if rhs.ndim == 1:
        t = ops.expand_dims(b, t, t.ndim)
    if lhs.ndim == 1:
        t = ops.expand_dims(b, t, t.ndim - 1)
    if place == 0:
        other = rhs if rhs.ndim > 1 else ops.expand_dims(b, rhs, 1)
        found = ops.matmul(b, t, _turned(b, other))
        found = ops.squeeze(b, found, found.ndim - 2) if lhs.ndim == 1 else found
        return ops.sum_to(b, found, lhs.shape)
    other = lhs if lhs.ndim > 1 else ops.expand_dims(b, lhs, 0)
    found = ops.matmul(b, _turned(b, other), t)
    found = ops.squeeze(b, found, found.ndim - 1) if rhs.ndim == 1 else found
    return ops.sum_to(b, found, rhs.shape)


def _turned(b: Builder, x: TensorView) -> TensorView:
    return ops.swapaxes(b, x, -1, -2)
