# SPDX-License-Identifier: Apache-2.0
"""Products of a computed matrix and one row or column are sums of products."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    ExpandDims,
    Expr,
    Matmul,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_results
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import IterDomain, IterType, TensorView

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

_ONE = IterDomain(sc.const(1), IterType.BROADCAST)


@value
class _Sum:
    """A product, and the axis ``along`` which it adds up a computed matrix."""

    product: Matmul
    matrix: TensorView
    vector: TensorView
    along: int


def sum_products(fusion: Fusion) -> Fusion:
    """Add up in a kernel what the library would need a matrix stored for.

    A matrix of arguments is the library's to read; one that is computed element by
    element need not be in memory, when each element is multiplied by one number. Where
    it is read again with what the product has given, it is better stored.
    """
    sums = {s.product: s for e in fusion.exprs if (s := _sum(fusion.definition, e))}
    while stored := [s.product for s in sums.values() if _is_stored(fusion, s, sums)]:
        sums = {e: s for e, s in sums.items() if e not in stored}
    if not sums:
        return fusion
    exprs = [
        new for e in fusion.exprs for new in (_folded(sums[e]) if e in sums else (e,))
    ]
    return Fusion(fusion.name, exprs, fusion.outputs)


def _is_stored(fusion: Fusion, found: _Sum, sums: Container[Expr]) -> bool:
    """Tell whether a matrix is better stored: for the library, or to be read again.

    That is where what is computed of it meets what follows the product.
    """
    same, after = {found.matrix}, {found.product.result}
    for expr in fusion.exprs:
        reads = sources(expr)
        reads_same = not same.isdisjoint(reads)
        if expr is found.product:
            continue
        if not after.isdisjoint(reads):
            if reads_same:
                return True
            after.update(results(expr))
        elif isinstance(expr, Matmul):
            if reads_same and expr not in sums:
                return True
        elif reads_same and not isinstance(expr, Reduce):
            same.update(results(expr))
    return False


def _sum(definition: Mapping[TensorView, Expr], expr: Expr) -> _Sum | None:
    """Return what a product with a row or a column adds up, if it is one."""
    if not isinstance(expr, Matmul):
        return None
    lhs, rhs, result = expr.lhs, expr.rhs, expr.result
    if not (lhs.dtype is rhs.dtype is result.dtype and result.dtype.is_float):
        return None
    for matrix, vector, along in ((lhs, rhs, -1), (rhs, lhs, -2)):
        if (
            isinstance(definition[matrix], Pointwise)
            and _is_one(vector, along)
            and _takes_each_element_once(matrix, vector, result)
        ):
            return _Sum(expr, matrix, vector, along)
    return None


def _is_one(vector: TensorView, along: int) -> bool:
    """Tell whether an operand of a product is one column, or one row along -2."""
    return vector.ndim == 1 or vector.axes[along].is_broadcast


def _takes_each_element_once(
    matrix: TensorView, vector: TensorView, result: TensorView
) -> bool:
    """Tell whether a product needs no element of a matrix for several results."""
    if matrix.ndim < 2 or matrix.axes[-1].is_broadcast or matrix.axes[-2].is_broadcast:
        return False
    batch = result.axes[: -2 if vector.ndim > 1 else -1]
    own = matrix.axes[:-2]
    return len(own) == len(batch) and not any(
        a.is_broadcast and not b.is_broadcast for a, b in zip(own, batch, strict=True)
    )


def _folded(found: _Sum) -> list[Expr]:
    """Return what adds up a matrix times a vector that lies along one of its axes."""
    matrix, vector, result = found.matrix, found.vector, found.product.result
    made: list[Expr] = []
    if vector.ndim > 1:
        order = (*range(vector.ndim - 2), vector.ndim - 1, vector.ndim - 2)
        turned = replace(vector, axes=tuple(vector.axes[k] for k in order))
        made.append(Permute(vector, turned, order))
        batch = result.axes[:-2]
    else:
        turned = vector
        if found.along == -2:
            turned = replace(vector, axes=(vector.axes[0], _ONE))
            made.append(ExpandDims(vector, turned, (1,)))
        batch = result.axes[:-1]
    product = replace(result, axes=(*batch, *matrix.axes[-2:]))
    made.append(Pointwise(POINT_OPS["multiply"], (matrix, turned), product))
    folded = product.ndim + found.along
    rest = tuple(a for k, a in enumerate(product.axes) if k != folded)
    total = replace(result, axes=rest)
    made.append(Reduce(ReduceOp.SUM, product, (total,), (folded,)))
    if vector.ndim > 1:
        made.append(ExpandDims(total, replace(result), (folded,)))
    made[-1] = with_results(made[-1], (result,))
    return made
