# SPDX-License-Identifier: Apache-2.0
"""Whether two tensors hold the same, and what a tensor is a copy of."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from nfuser.compiler.ir.expr import Argument, Pointwise, results, sources
from nfuser.compiler.ir.point_op import is_copy
from nfuser.compiler.ir.tensor import TensorView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nfuser.compiler.ir.expr import Expr


def original(definition: Mapping[TensorView, Expr], tensor: TensorView) -> TensorView:
    """Return what ``tensor`` is a copy of: itself, where it is none."""
    expr = definition.get(tensor)
    while isinstance(expr, Pointwise) and is_copy(expr.op):
        (tensor,) = expr.operands
        expr = definition.get(tensor)
    return tensor


def same_value(exprs: Iterable[Expr], one: TensorView, other: TensorView) -> bool:
    """Tell whether two tensors are computed alike, of the same tensors.

    ``x > 0`` written twice is; that two are not does not mean that their elements
    differ.
    """
    if one is other:
        return True
    made = {tensor: expr for expr in exprs for tensor in results(expr)}
    pairs, seen = [(one, other)], set[tuple[TensorView, TensorView]]()
    while pairs:
        pair = pairs.pop()
        if pair[0] is pair[1] or pair in seen:
            continue
        seen.add(pair)
        left, right = made[pair[0]], made[pair[1]]
        if not _is_alike(left, right):
            return False
        pairs += zip(sources(left), sources(right), strict=True)
    return True


def _is_alike(one: Expr, other: Expr) -> bool:
    """Tell whether two expressions do the same to what they are given."""
    if type(one) is not type(other) or isinstance(one, Argument):
        return False
    if len(results(one)) > 1 or len(sources(one)) != len(sources(other)):
        return False
    (left,), (right,) = results(one), results(other)
    same_form = left.dtype is right.dtype and left.shape == right.shape
    return same_form and _own(one) == _own(other)


def _own(expr: Expr) -> list[object]:
    """Return what an expression says beside the tensors that it is about."""
    found: list[object] = []
    for field in fields(expr):
        held: object = getattr(expr, field.name)
        if isinstance(held, TensorView) or _is_of_tensors(held):
            continue
        # 0.0 and -0.0, 1 and True differ, and a NaN is like itself.
        is_number = isinstance(held, (bool, int, float, complex))
        found.append(f"{type(held)} {held!r}" if is_number else held)
    return found


def _is_of_tensors(held: object) -> bool:
    is_tuple = isinstance(held, tuple)
    return is_tuple and any(isinstance(x, TensorView) for x in cast("list[Any]", held))
