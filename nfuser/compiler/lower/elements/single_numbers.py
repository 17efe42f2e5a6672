# SPDX-License-Identifier: Apache-2.0
"""Single numbers of a kernel: what an operation makes of some, and sizes as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.point_op import CAST, is_copy
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.lower.kernel.kernel_ir import Call, IndexValue, Number, Value, Var

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.expr import Pointwise
    from nfuser.compiler.ir.scalars.scalar import Scalar


def applied(expr: Pointwise, operands: Sequence[Value]) -> Value:
    """Return what ``expr`` makes of its operands; of some it is the first of them."""
    if is_copy(expr.op):
        return operands[0]
    source, target = expr.operands[0].dtype, expr.result.dtype
    name = expr.op.name
    if expr.op is CAST:
        if target.is_half:
            if source.compute is not DType.F32:
                # Rounded to odd first, so that the second rounding is exact.
                is_double = source.compute is DType.F64
                between = "to_f32_odd" if is_double else "to_f32"
                operands = [Call(between, tuple(operands), DType.F32)]
            name = f"round_{target}"
        elif source.compute is target:
            return operands[0]
        else:
            name = f"to_{target}"
    return Call(name, tuple(operands), target.compute)


def from_scalar(
    scalar: Scalar, dtype: DType, integers: dict[tuple[Scalar, DType], Var]
) -> Value:
    """Return a size as an index; anything less plain the host works out.

    What the caller passed may need more than an index's width, and a quotient may
    be negative, which no index is. ``integers`` are what the host gives.
    """
    if dtype.is_bool and isinstance(scalar, sc.Const):
        return Number(bool(scalar.value), dtype)
    parts = scalar_walk.every([scalar])
    if not dtype.is_bool and (
        all(isinstance(x, sc.Const | sc.Size | sc.Poly) for x in parts)
        or _is_part_of_size(scalar)
    ):
        return IndexValue(scalar, dtype)
    wide = DType.F64 if dtype.is_float else DType.I64
    wide = DType.U64 if dtype is DType.U64 else wide
    var = integers.setdefault((scalar, wide), Var(wide))
    return var if dtype is wide else Call(f"to_{dtype}", (var,), dtype)


def _is_part_of_size(scalar: Scalar) -> bool:
    """Tell whether ``scalar`` is a size divided by a constant: no more than the size.

    A quotient is an argument of the kernel, as wide as an index.
    """
    match scalar:
        case sc.Binary(sc.Op.FLOORDIV, sc.Size(), sc.Const(divisor)):
            return divisor > 0
        case _:
            return False
