# SPDX-License-Identifier: Apache-2.0
"""Take out casts that change nothing, and fold casts of constants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import Constant, Expr, Pointwise
from nfuser.compiler.ir.fusion import Fusion, Replacement, rebuild
from nfuser.compiler.ir.point_op import CAST

if TYPE_CHECKING:
    from nfuser.compiler.ir.tensor import TensorView


def simplify_casts(fusion: Fusion) -> Fusion:
    """Drop casts to the same dtype, join exact pairs, fold casts of constants."""
    defined: dict[TensorView, Expr] = {}
    outputs = set(fusion.outputs)

    def change(expr: Expr) -> Replacement | TensorView | None:
        answer = _simplified(expr, defined, outputs)
        made = answer.exprs[-1] if isinstance(answer, Replacement) else expr
        if isinstance(made, (Pointwise, Constant)):
            defined[made.result] = made
        return answer

    return rebuild(fusion, change)


def _simplified(
    expr: Expr, defined: dict[TensorView, Expr], outputs: set[TensorView]
) -> Replacement | TensorView | None:
    if not (isinstance(expr, Pointwise) and expr.op is CAST):
        return None
    if expr.result in outputs:
        return None
    source = expr.operands[0]
    if source.dtype is expr.result.dtype:
        return source
    match defined.get(source):
        case Constant(number) if (folded := _folded(number, source, expr)) is not None:
            return _instead(Constant(folded, expr.result))
        case Pointwise(op, (first,)) if op is CAST and _is_exact(
            first.dtype, source.dtype
        ):
            if first.dtype is expr.result.dtype:
                return first
            return _instead(replace(expr, operands=(first,)))
        case _:
            return None


def _instead(expr: Constant | Pointwise) -> Replacement:
    return Replacement((expr,), (expr.result,))


def _folded(
    number: bool | int | float | complex, source: TensorView, expr: Pointwise
) -> bool | int | float | None:
    target = expr.result.dtype
    if isinstance(number, complex) or source.dtype.is_complex or target.is_half:
        return None
    if not target.is_float:
        return None
    # Through an array of the source's dtype, as a kernel would cast: a Python integer
    # would be rounded twice, and a number too large for f32 is infinite in silence.
    with np.errstate(over="ignore"):
        return float(np.asarray(number, source.dtype.numpy).astype(target.numpy))


def _is_exact(narrow: DType, wide: DType) -> bool:
    """Tell whether every value of ``narrow`` is one of ``wide``."""
    if narrow.is_complex or wide.is_complex:
        return False
    digits = {DType.F16: 11, DType.BF16: 8, DType.F32: 24, DType.F64: 53}
    if narrow.is_float:
        return wide.is_float and not wide.is_half and wide.bits >= narrow.bits
    if wide.is_float:
        return narrow.bits <= digits[wide] or narrow.is_bool
    if narrow.is_bool:
        return True
    grows = wide.bits > narrow.bits and (wide.is_signed or not narrow.is_signed)
    return wide.is_integer and grows
