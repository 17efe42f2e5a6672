# SPDX-License-Identifier: Apache-2.0
"""Cotangents that add up to zero: multiples of what has no mean.

``x - mean(x)`` adds up to zero along the axes of the mean, and so does what multiplies
it by a number for each row. The cotangent of the mean is a sum of all cotangents of the
difference: what is such a multiple among them is left out. That is exact, and the sum
does not wait for factors that are sums themselves, as where a variance is found of the
difference.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.expr import (
    Constant,
    Expand,
    ExpandDims,
    FromScalar,
    Pointwise,
    Reduce,
    ReduceOp,
)
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.folds.reduction import count_of
from nfuser.compiler.transforms.differentiate.numbers import Numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder

_MOST_TERMS = 64  # of a cotangent; of more all are summed
_MULTIPLES = frozenset({"multiply", "divide", "negative"})


def summed(
    b: Builder,
    definition: Mapping[TensorView, Expr],
    cotangent: TensorView,
    expr: Pointwise,
    mean: TensorView,
) -> TensorView | None:
    """Return the sum of ``cotangent``, of the result of ``expr``, for its ``mean``.

    None stands for a sum that leaves nothing out. What is left out is no number where
    the mean or a factor is none, or is infinite; so is the sum then.
    """
    axes = _centred_axes(definition, expr, mean)
    rest: list[TensorView] = []
    factors: list[TensorView] = []
    for term, is_minus in _terms(definition, cotangent) if axes else ():
        found = _factors(definition, term, expr.result, axes)
        if found is None:
            rest.append(b.point("negative", term) if is_minus else term)
        factors += found or ()
    if not factors:
        return None
    n = Numbers(b, cotangent.dtype)
    parts = [n.scaled(t, 0.0) for t in dict.fromkeys([mean, *factors])]
    left_out = reduce(n.add, parts)
    left_out = ops.squeeze(b, left_out, [*range(left_out.ndim - mean.ndim)])
    left_out = ops.sum_to(b, left_out, mean.shape)
    b.stopped.add(left_out)
    if not rest:
        return left_out
    held = ops.broadcast_to(b, reduce(n.add, rest), expr.result.shape)
    return n.add(ops.sum_to(b, held, mean.shape), left_out)


def _terms(
    definition: Mapping[TensorView, Expr], cotangent: TensorView
) -> list[tuple[TensorView, bool]]:
    """Return what adds up to ``cotangent``, and whether with a minus."""
    found: list[tuple[TensorView, bool]] = []
    stack = [(cotangent, False)]
    while stack:
        term, is_minus = stack.pop()
        match definition.get(term):
            case Pointwise(op, (one, other)) if op.name == "add":
                stack += [(other, is_minus), (one, is_minus)]
            case Pointwise(op, (one,)) if op.name == "negative":
                stack.append((one, not is_minus))
            case _:
                found.append((term, is_minus))
        if len(found) + len(stack) > _MOST_TERMS:
            return [(cotangent, False)]
    return found


def _factors(
    definition: Mapping[TensorView, Expr],
    term: TensorView,
    centred: TensorView,
    axes: tuple[int, ...],
) -> list[TensorView] | None:
    """Return the factors by which ``term`` is ``centred``, None if it is no multiple.

    They have one element along each of ``axes``.
    """
    found: list[TensorView] = []
    while term is not centred:
        expr = definition.get(term)
        if not isinstance(expr, Pointwise) or expr.op.name not in _MULTIPLES:
            return None
        evens = [_even(definition, t, centred.ndim, axes) for t in expr.operands]
        others = [t for t, even in zip(expr.operands, evens, strict=True) if not even]
        is_divided = expr.op.name == "divide" and others[:1] != [expr.operands[0]]
        if len(others) != 1 or is_divided:
            return None
        found += [even for even in evens if even]
        (term,) = others
    return found


def _even(
    definition: Mapping[TensorView, Expr],
    x: TensorView,
    ndim: int,
    axes: tuple[int, ...],
) -> TensorView | None:
    """Return what has one element along each of ``axes``, and is ``x`` stretched."""
    expr = definition.get(x)
    while isinstance(expr, Expand):
        x = expr.source
        expr = definition.get(x)
    missing = ndim - x.ndim
    is_even = all(k < missing or x.shape[k - missing] == sc.const(1) for k in axes)
    return x if is_even else None


def _centred_axes(
    definition: Mapping[TensorView, Expr], expr: Pointwise, mean: TensorView
) -> tuple[int, ...]:
    """Return the axes along which ``expr`` is a tensor without its ``mean``.

    There are none where the other operand is something else than what has that mean.
    """
    source = next((t for t in expr.operands if t is not mean), None)
    if expr.op.name != "subtract" or source is None or not mean.dtype.is_float:
        return ()
    inserted: tuple[int, ...] | None = None
    count: TensorView | None = None
    while True:
        match definition.get(mean):
            case ExpandDims(inner, _, axes) if inserted is None:
                mean, inserted = inner, axes
            case Pointwise(op, (inner, divisor)) if op.name == "divide":
                if count is not None:
                    return ()
                mean, count = inner, divisor
            case Reduce(ReduceOp.SUM, inner, _, axes) if inner is source:
                is_all = count and _is_count(definition.get(count), inner, axes)
                placed = tuple(range(len(axes))) if inserted is None else inserted
                fits = axes == placed and source.shape == expr.result.shape
                return axes if is_all and fits else ()
            case _:
                return ()


def _is_count(expr: Expr | None, source: TensorView, axes: tuple[int, ...]) -> bool:
    count = count_of(source, axes)
    match expr:
        case FromScalar(scalar):
            return scalar is count
        case Constant(number):
            return isinstance(count, sc.Const) and number == count.value
        case _:
            return False
