# SPDX-License-Identifier: Apache-2.0
"""Verbs that multiply matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops.elementwise.logic as logic
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Matmul
from nfuser.compiler.ops.mismatch import no_product
from nfuser.errors import ShapeError

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder, Operand


def matmul(b: Builder, x: Operand, y: Operand) -> TensorView:
    """Return the product of matrices, or of stacks of them, as ``numpy.matmul``."""
    given = b.tensor(x), b.tensor(y)
    shapes = [[b.today(n) for n in t.shape] for t in given]
    if problem := no_product(*shapes):
        raise ShapeError(problem)
    dtype = b.promote(x, y)
    if dtype.is_bool:
        # Libraries multiply floats fast, and a sum of ones never rounds down to 0.
        parts = [b.cast(t, DType.F32) for t in given]
        return logic.not_equal(b, matmul(b, *parts), 0)
    lhs, rhs = (b.convert(t, dtype) for t in given)
    result = b.new(_shape(b, lhs, rhs), dtype)
    b.emit(Matmul(lhs, rhs, result))
    return result


def _shape(b: Builder, lhs: TensorView, rhs: TensorView) -> list[Scalar]:
    rows = lhs.shape[-2:-1]
    columns = rhs.shape[-1:] if rhs.ndim > 1 else ()
    return [*stack_of(b, lhs.shape[:-2], rhs.shape[:-2]), *rows, *columns]


def stack_of(
    b: Builder, lhs: tuple[Scalar, ...], rhs: tuple[Scalar, ...]
) -> list[Scalar]:
    """Return the shape in which stacks meet, which ``no_product`` found to fit."""
    found: list[Scalar] = []
    for back in range(max(len(lhs), len(rhs)), 0, -1):
        own = [shape[-back] for shape in (lhs, rhs) if len(shape) >= back]
        meet = b.meet(own)
        if meet is None:
            message = "matmul: the stacks of matrices do not meet"
            raise ShapeError(message)
        found.append(meet)
    return found
