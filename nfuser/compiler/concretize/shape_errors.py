# SPDX-License-Identifier: Apache-2.0
"""Sizes of one call that an operation cannot take, and what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Concatenate,
    Expand,
    Iota,
    Loop,
    Matmul,
    Pad,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Squeeze,
    Take,
    results,
)
from nfuser.compiler.ops.mismatch import (
    carried_changes,
    negative_sizes,
    no_common_shape,
    no_extension,
    no_join,
    no_pad,
    no_product,
    no_reshape,
    no_stretch,
)
from nfuser.errors import AxisError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def check(expr: Expr, shapes: Mapping[TensorView, tuple[int, ...]]) -> None:
    """Raise ShapeError if ``expr`` does not fit its sources."""
    match expr:
        case Pointwise(op, operands, result):
            _check_stretch(op.name, operands, result, shapes)
        case Expand(source, result):
            _refuse(negative_sizes("broadcast_to", shapes[result]), result)
            _check_stretch("broadcast_to", (source,), result, shapes)
        case Squeeze(source, result, axes):
            for axis in axes:
                if (size := shapes[source][axis]) != 1:
                    text = f"squeeze: the size of axis {axis} must be 1, but is {size}"
                    raise ShapeError(text + _at(result))
        case Take(source, _, result, axis) if not expr.inside:
            if not shapes[source][axis] and 0 not in shapes[result]:
                text = f"take: axis {axis} has size 0: no element to take from it"
                raise AxisError(text + _at(result))
        case Matmul(lhs, rhs, result):
            _refuse(no_product(shapes[lhs], shapes[rhs]), result)
        case Loop():
            for number, (before, after, result) in enumerate(expr.pairs):
                now = shapes[before], shapes[after]
                _refuse(carried_changes(number, *now), result)
        case Reduce():
            _refuse(_empty_fold(expr, shapes), expr.result)
        case _:
            _refuse(_moved_problem(expr, shapes), results(expr)[0])


def _refuse(problem: str | None, result: TensorView) -> None:
    if problem:
        raise ShapeError(problem + _at(result))


def _empty_fold(
    expr: Reduce, shapes: Mapping[TensorView, tuple[int, ...]]
) -> str | None:
    source, axes, op = shapes[expr.source], expr.axes, expr.op
    empty = any(source[axis] == 0 for axis in axes)
    has_rest = all(s for k, s in enumerate(source) if k not in axes)
    if not (empty and has_rest and op in _NO_IDENTITY):
        return None
    return (
        f"{op.value}: zero-size array to a reduction that has no identity "
        f"(shape {source}, axes {axes})"
    )


def _moved_problem(
    expr: Expr, shapes: Mapping[TensorView, tuple[int, ...]]
) -> str | None:
    match expr:
        case Reshape(source, result, _, inferred):
            return no_reshape(shapes[source], shapes[result], inferred)
        case Concatenate(parts, _, axis):
            return no_join([shapes[t] for t in parts], axis)
        case Pad(source, _, result):
            return no_pad(shapes[source], shapes[result])
        case Remap(source, result):
            pairs = zip(shapes[source], shapes[result], strict=True)
            found = (no_extension(a, b, k) for k, (a, b) in enumerate(pairs))
            negative = negative_sizes("tile or repeat", shapes[result])
            return next(filter(None, found), None) or negative
        case Iota(result):
            return negative_sizes("arange", shapes[result])
        case _:
            return None


_NO_IDENTITY = {
    *(ReduceOp.MAX, ReduceOp.MIN, ReduceOp.FMAX, ReduceOp.FMIN),
    *(ReduceOp.ARGMAX, ReduceOp.ARGMIN),
}


def _check_stretch(
    name: str,
    operands: tuple[TensorView, ...],
    result: TensorView,
    shapes: Mapping[TensorView, tuple[int, ...]],
) -> None:
    target = shapes[result]
    for operand in operands:
        own = shapes[operand]
        if own is target:
            continue
        pairs = zip(own, target[len(target) - len(own) :], strict=True)
        if any(a not in (1, b) for a, b in pairs):
            given = [shapes[t] for t in operands]
            text = (
                no_stretch(name, own, target)
                if len(given) == 1
                else no_common_shape(name, given)
            )
            raise ShapeError(text + _at(result))


def _at(tensor: TensorView) -> str:
    return tensor.source.note if tensor.source else ""
