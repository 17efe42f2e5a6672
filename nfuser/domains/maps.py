# SPDX-License-Identifier: Apache-2.0
"""Where an expression reads each source, given the index of its result.

This is the only origin of index arithmetic: an index belongs to a use of a tensor,
and is derived by walking from results to sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, assert_never

from nfuser.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Permute,
    Pointwise,
    Reduce,
    Slice,
    Squeeze,
)
from nfuser.ir.scalar import Scalar, const

if TYPE_CHECKING:
    from nfuser.ir.tensor import TensorView

Point: TypeAlias = tuple[Scalar, ...]


def source_points(expr: Expr, point: Point) -> list[tuple[TensorView, Point]]:
    """Return each source of ``expr`` with the point at which it is read.

    A reduction is read at its result's point; its own sources are read at
    ``reduced_point``, once for each step of its loops.
    """
    match expr:
        case Argument() | Constant() | FromScalar() | Iota() | Reduce():
            return []
        case Pointwise(_, operands):
            return [(t, _stretched(t, point)) for t in operands]
        case Expand(source):
            return [(source, _stretched(source, point))]
        case ExpandDims(source, _, axes):
            return [(source, tuple(p for k, p in enumerate(point) if k not in axes))]
        case Squeeze(source, _, axes):
            rest = iter(point)
            full = (const(0) if k in axes else next(rest) for k in range(source.ndim))
            return [(source, tuple(full))]
        case Permute(source, _, order):
            full = [const(0)] * source.ndim
            for index, axis in zip(point, order, strict=True):
                full[axis] = index  # pyright: ignore[reportArgumentType, reportCallIssue]
            return [(source, tuple(full))]
        case Slice(source, _, starts, steps):
            moved = (
                s + p * step for s, p, step in zip(starts, point, steps, strict=True)
            )
            return [(source, tuple(moved))]
        case _:
            assert_never(expr)


def _stretched(tensor: TensorView, point: Point) -> Point:
    own = point[len(point) - tensor.ndim :]
    pairs = zip(tensor.axes, own, strict=True)
    return tuple(const(0) if axis.is_broadcast else p for axis, p in pairs)


def reduced_point(expr: Reduce, kept: Point, reduced: Point) -> Point:
    """Return the point of the source of ``expr``: ``reduced`` along its axes."""
    own, rest = iter(reduced), iter(kept)
    return tuple(
        next(own) if k in expr.axes else next(rest) for k in range(expr.source.ndim)
    )
