# SPDX-License-Identifier: Apache-2.0
"""Sums that derivatives ask for, and that are multiples of one another, are one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    Constant,
    Expand,
    Expr,
    Pointwise,
    Reduce,
    ReduceOp,
    Squeeze,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import Fusion, with_results
from nfuser.compiler.ir.point_op import POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import TensorView
from nfuser.compiler.ir.walk import toposort

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_FACTORS = 16  # of a product; one of more is not looked into
_MULTIPLIES, _DIVIDES = ("multiply",), ("divide", "divide_near")

Power: TypeAlias = tuple[TensorView, bool]
"""A factor, and whether the product is divided by it."""


@value
class _Product:
    """A sum as a product: what changes along its axes, what does not, and the sign."""

    varying: frozenset[tuple[Power, int]]
    even: tuple[Power, ...]
    is_minus: bool


def share_derived_sums(fusion: Fusion) -> Fusion:
    """Compute a derivative's sum of another sum that it is a multiple of.

    ``sum(g * y * w / s)`` is ``sum(g * y) * w / s`` where ``w`` and ``s`` have no axis
    of the sum. Elements are read once for both, and nothing waits for a second sum. A
    factor that is infinite, or a divisor that is zero, makes it no number: of terms of
    both signs each way gives that.
    """
    derived = [e for e in fusion.reductions if e.is_derived and _is_shared(e)]
    if not derived or len(fusion.reductions) < 2:
        return fusion
    products: dict[object, dict[Reduce, _Product]] = {}
    for expr in filter(_is_shared, fusion.reductions):
        product = _product(fusion.definition, expr)
        key = (expr.axes, expr.source.shape, expr.source.dtype, product.varying)
        products.setdefault(key, {})[expr] = product
    made: dict[Expr, list[Expr]] = {}
    for alike in products.values():
        base = min(alike, key=lambda e: (len(alike[e].even), e.is_derived))
        for expr, product in alike.items():
            more = _quotient(product, alike[base])
            if expr is not base and expr.is_derived and more is not None:
                is_minus = product.is_minus is not alike[base].is_minus
                made[expr] = _multiple(fusion.definition, expr, base, more, is_minus)
    return _ordered(fusion, made) if made else fusion


def _is_shared(expr: Reduce) -> bool:
    """Tell whether ``expr`` is a sum of real numbers, and not of none."""
    extents = [expr.source.shape[k] for k in expr.axes]
    is_sum = expr.op is ReduceOp.SUM and expr.source.dtype.is_float
    return is_sum and sc.const(0) not in extents


def _product(definition: Mapping[TensorView, Expr], expr: Reduce) -> _Product:
    """Return the factors of what ``expr`` adds up."""
    whole = _Product(frozenset({((expr.source, False), 1)}), (), is_minus=False)
    varying: Counter[Power] = Counter()
    even: list[Power] = []
    is_minus = False
    stack: list[Power] = [(expr.source, False)]
    while stack:
        if len(stack) + len(even) + varying.total() > _MOST_FACTORS:
            return whole
        tensor, is_below = stack.pop()
        match definition[tensor]:
            case Expand(source):
                stack.append((source, is_below))
            case _ if _is_even(tensor, expr):
                even.append((tensor, is_below))
            case Pointwise(op, (one, other)) if op.name in _MULTIPLIES:
                stack += [(other, is_below), (one, is_below)]
            case Pointwise(op, (one, other)) if op.name in _DIVIDES:
                stack += [(other, not is_below), (one, is_below)]
            case Pointwise(op, (one,)) if op.name == "negative":
                is_minus = not is_minus
                stack.append((one, is_below))
            case _:
                varying[tensor, is_below] += 1
    return _Product(frozenset(varying.items()), tuple(even), is_minus)


def _is_even(tensor: TensorView, expr: Reduce) -> bool:
    """Tell whether ``tensor`` is stretched along each axis of the sum."""
    missing = expr.source.ndim - tensor.ndim
    one = sc.const(1)
    return all(k < missing or tensor.shape[k - missing] is one for k in expr.axes)


def _quotient(product: _Product, base: _Product) -> tuple[Power, ...] | None:
    """Return the factors that ``product`` has beside those of ``base``, if it has."""
    more, less = Counter(product.even), Counter(base.even)
    return tuple((more - less).elements()) if less <= more else None


def _multiple(
    definition: Mapping[TensorView, Expr],
    expr: Reduce,
    base: Reduce,
    factors: Sequence[Power],
    is_minus: bool,
) -> list[Expr]:
    """Return what computes ``expr`` as ``base`` times its other factors."""
    made: list[Expr] = []
    like = expr.results[0]

    def point(name: str, *operands: TensorView) -> TensorView:
        result = TensorView(like.axes, like.dtype, like.source)
        made.append(Pointwise(POINT_OPS[name], operands, result))
        return result

    zero = TensorView((), like.dtype, like.source)
    made.append(Constant(0.0, zero))
    found = point("negative", base.results[0]) if is_minus else base.results[0]
    for tensor, is_below in factors:
        factor = _without(made, tensor, expr)
        found = point("divide" if is_below else "multiply", found, factor)
        nothing = (zero, factor) if is_below else (factor, zero)
        nothing = point("divide" if is_below else "multiply", *nothing)
        found = point("add", found, nothing)
    if found is base.results[0]:
        point("copy", found)
    made[-1] = with_results(made[-1], expr.results)
    return made


def _without(made: list[Expr], tensor: TensorView, expr: Reduce) -> TensorView:
    """Return a factor without the axes of the sum."""
    missing = expr.source.ndim - tensor.ndim
    gone = tuple(k - missing for k in expr.axes if k >= missing)
    if not gone:
        return tensor
    kept = tuple(axis for k, axis in enumerate(tensor.axes) if k not in gone)
    result = TensorView(kept, tensor.dtype, tensor.source)
    made.append(Squeeze(tensor, result, gone))
    return result


def _ordered(fusion: Fusion, made: Mapping[Expr, Sequence[Expr]]) -> Fusion:
    """Return ``fusion`` with other expressions for some, definitions first."""
    exprs = [new for e in fusion.exprs for new in made.get(e, (e,))]
    definition = {t: e for e in exprs for t in results(e)}
    ordered = toposort(exprs, lambda e: [definition[t] for t in sources(e)])
    return Fusion(fusion.name, ordered, fusion.outputs)
