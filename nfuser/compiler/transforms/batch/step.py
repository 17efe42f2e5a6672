# SPDX-License-Identifier: Apache-2.0
"""From an expression of one row to what gives it for all rows, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import nfuser.compiler.transforms.batch.axes as axes
import nfuser.compiler.transforms.batch.folds as folds
import nfuser.compiler.transforms.batch.indices as indices
import nfuser.compiler.transforms.batch.loops_of_rows as loops
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Called,
    Concatenate,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Loop,
    Matmul,
    Pad,
    PartialSum,
    Permute,
    Pointwise,
    Reduce,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
)
from nfuser.compiler.ops.loops.going_wrong import LOOK
from nfuser.compiler.ops.python_integers import WITHIN
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.transforms.batch.stacks import Stacks


def of_point(rows: Stacks, expr: Pointwise, whole: TensorView) -> Pointwise:
    """Return the elementwise operation that gives ``whole``; operands meet as ever."""
    rank = expr.result.ndim
    operands = tuple(rows.aligned(t, rank) for t in expr.operands)
    return Pointwise(expr.op, operands, whole)


def step(rows: Stacks, expr: Expr) -> Sequence[TensorView]:
    """Return all rows of the results of ``expr``, some source of which differs."""
    match expr:
        case Reduce():
            return folds.of_reduce(rows, expr)
        case Loop():
            return loops.of_loop(rows, expr, step)
        case Called(name) if name in (LOOK, WITHIN):
            return (loops.of_look(rows, expr),)
        case Called(name):
            message = (
                f"write {name} of all rows at once: it does not run on each row by "
                "itself yet"
            )
            raise UnsupportedError(message)
        case _:
            return (_one(rows, expr),)


def _one(rows: Stacks, expr: Expr) -> TensorView:
    match expr:
        case Pointwise():
            made = rows.new(expr.result)
            rows.b.emit(of_point(rows, expr, made))
            return made
        case SumTo():
            return axes.of_sum_to(rows, expr)
        case Pad():
            return axes.of_pad(rows, expr)
        case Concatenate():
            return axes.of_concatenate(rows, expr)
        case Assign():
            return axes.of_assign(rows, expr)
        case Take():
            return indices.of_take(rows, expr)
        case Scatter():
            return indices.of_scatter(rows, expr)
        case Scan() | Sort():
            return folds.along(rows, expr)
        case Matmul():
            return folds.of_product(rows, expr)
        case (
            Expand()
            | ExpandDims()
            | Squeeze()
            | Permute()
            | Slice()
            | Reshape()
            | Remap()
        ):
            return axes.of_view(rows, expr)
        case (
            Argument()
            | Constant()
            | FromScalar()
            | Iota()
            | Reduce()
            | Loop()
            | Called()
            | PartialSum()
        ):
            message = f"{type(expr).__name__} has rows of its own, or none"
            raise TypeError(message)
        case _:
            assert_never(expr)
