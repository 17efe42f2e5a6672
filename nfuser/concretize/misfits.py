# SPDX-License-Identifier: Apache-2.0
"""Sizes of one call that an operation cannot take, and what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.errors import ShapeError
from nfuser.ir.expr import (
    Concatenate,
    Expand,
    Pad,
    Pointwise,
    Reduce,
    ReduceOp,
    Reshape,
    Squeeze,
    Take,
)
from nfuser.ops.mismatch import (
    no_common_shape,
    no_join,
    no_pad,
    no_reshape,
    no_stretch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.ir.expr import Expr
    from nfuser.ir.tensor import TensorView


def check(expr: Expr, shapes: Mapping[TensorView, tuple[int, ...]]) -> None:
    """Raise ShapeError if ``expr`` does not fit its sources."""
    match expr:
        case Pointwise(op, operands, result):
            _check_stretch(op.name, operands, result, shapes)
        case Expand(source, result):
            _check_stretch("broadcast_to", (source,), result, shapes)
        case Squeeze(source, result, axes):
            for axis in axes:
                if (size := shapes[source][axis]) != 1:
                    text = f"squeeze: the size of axis {axis} must be 1, but is {size}"
                    raise ShapeError(text + _at(result))
        case Reduce(op, source, _, axes):
            empty = any(shapes[source][axis] == 0 for axis in axes)
            has_rest = all(s for k, s in enumerate(shapes[source]) if k not in axes)
            if empty and has_rest and op in _NO_IDENTITY:
                text = (
                    f"{op.value}: zero-size array to a reduction that has no identity "
                    f"(shape {shapes[source]}, axes {axes})"
                )
                raise ShapeError(text + _at(expr.result))
        case Reshape() | Concatenate() | Pad() | Take():
            problem = _moved_problem(expr, shapes)
            if problem:
                raise ShapeError(problem + _at(expr.result))
        case _:
            pass


def _moved_problem(
    expr: Reshape | Concatenate | Pad | Take,
    shapes: Mapping[TensorView, tuple[int, ...]],
) -> str | None:
    target = shapes[expr.result]
    match expr:
        case Reshape(source, _, _, inferred):
            return no_reshape(shapes[source], target, inferred)
        case Concatenate(parts, _, axis):
            return no_join([shapes[t] for t in parts], axis)
        case Pad(source):
            return no_pad(shapes[source], target)
        case Take(source, index, _, axis):
            if shapes[source][axis] or 0 in shapes[index]:
                return None
            return f"take: axis {axis} has no element to take from"


_NO_IDENTITY = {ReduceOp.MAX, ReduceOp.MIN, ReduceOp.ARGMAX, ReduceOp.ARGMIN}


def _check_stretch(
    name: str,
    operands: tuple[TensorView, ...],
    result: TensorView,
    shapes: Mapping[TensorView, tuple[int, ...]],
) -> None:
    target = shapes[result]
    for operand in operands:
        own = shapes[operand]
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
