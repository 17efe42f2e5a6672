# SPDX-License-Identifier: Apache-2.0
"""From the cotangents of an expression's results to those of its sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
import nfuser.compiler.transforms.differentiate.rules.casts as casts
import nfuser.compiler.transforms.differentiate.rules.folds as folds
import nfuser.compiler.transforms.differentiate.rules.gathers as gathers
import nfuser.compiler.transforms.differentiate.rules.products as products
import nfuser.compiler.transforms.differentiate.rules.scatters as scatters
import nfuser.compiler.transforms.differentiate.rules.views as views
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    VIEWS,
    Assign,
    Called,
    Concatenate,
    Expr,
    Matmul,
    Pad,
    Pointwise,
    Reduce,
    ReduceOp,
    Scan,
    Scatter,
    Sort,
    SumTo,
    Take,
)
from nfuser.compiler.transforms.differentiate.flow import Flow
from nfuser.compiler.transforms.differentiate.numbers import Numbers
from nfuser.compiler.transforms.differentiate.rules.choices import CHOICES
from nfuser.compiler.transforms.differentiate.rules.slopes import slopes_of
from nfuser.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


def pull_point(b: Builder, expr: Pointwise, flow: Flow, place: int) -> Flow | None:
    """Return the cotangent of one operand, before it is summed to its shape."""
    name, given = expr.op.name, expr.operands
    t, taken = flow.held, flow.taken
    if name in casts.KINDS:
        return Flow(casts.pulled(b, name, t, given[place].dtype, place), taken)
    n = Numbers(b, t.dtype)
    if name in CHOICES:
        t, chosen = CHOICES[name](n, t, given, place)
        return Flow(t, chosen if taken is None else n.bit_and(taken, chosen))
    found = _slope(name, place)(n, t, given, expr.result)
    return None if found is None else Flow(found, taken)


def _slope(name: str, place: int) -> Slope:
    slopes = slopes_of(name)
    if slopes is None:
        message = (
            f"write nfuser.stop_gradient(x) around what goes into {name}: it has no "
            "derivative"
        )
        raise UnsupportedError(message)
    return slopes[place]


def push_point(
    b: Builder, expr: Pointwise, tangents: Sequence[TensorView | None]
) -> TensorView | None:
    """Return the tangent of the result of an elementwise operation."""
    name, given, result = expr.op.name, expr.operands, expr.result
    n = Numbers(b, result.dtype)
    found: list[TensorView] = []
    for place, t in enumerate(tangents):
        if t is None:
            continue
        if name in casts.KINDS:
            found.append(casts.pushed(b, name, t, result.dtype, place))
        elif name in CHOICES:
            part, chosen = CHOICES[name](n, t, given, place)
            found.append(n.select(chosen, part, n(0.0)))
        elif (part := _slope(name, place)(n, t, given, result)) is not None:
            found.append(part)
    if not found:
        return None
    total = found[0]
    for part in found[1:]:
        total = n.add(total, part)
    return ops.broadcast_to(b, total, result.shape)


def pull(
    b: Builder,
    expr: Expr,
    ts: Sequence[TensorView | None],
    place: int,
    definition: Mapping[TensorView, Expr],
) -> Flow:
    """Return the cotangent of source ``place`` of what is not elementwise."""
    if isinstance(expr, Called):
        message = (
            "write nfuser.stop_gradient(x) around what goes into it: "
            f"{expr.name} has no derivative yet"
        )
        raise UnsupportedError(message)
    if isinstance(expr, Reduce):
        return folds.of_reduce(b, expr, ts)
    t = ts[0]
    assert t is not None
    match expr:
        case Scan():
            return Flow(folds.of_scan(b, expr, t))
        case Pad():
            return Flow(views.of_pad(b, expr, t, place))
        case Concatenate():
            return Flow(views.of_part(b, expr, t, place))
        case Assign():
            return views.of_assign(b, expr, t, place)
        case Matmul():
            return Flow(products.of_matmul(b, expr, t, place))
        case Take():
            return Flow(gathers.of_take(b, expr, t, definition))
        case Scatter():
            return scatters.of_scatter(b, expr, t, place)
        case Sort():
            return Flow(gathers.of_sort(b, expr, t))
        case _:
            assert isinstance(expr, (*VIEWS, SumTo)), expr
            return Flow(views.of_view(b, expr, t))


def pull_taken(
    b: Builder, expr: Expr, taken: TensorView, place: int
) -> TensorView | None:
    """Return which elements of a source reach what was taken; None: all may."""
    t = b.cast(taken, DType.F32)
    match expr:
        case Reduce(op, source, _, axes) if op is not ReduceOp.MOMENTS:
            found = views.put_back(b, t, source.shape, axes)
        case Pad() if place == 0:
            found = views.of_pad(b, expr, t, place)
        case Concatenate():
            found = views.of_part(b, expr, t, place)
        case _ if isinstance(expr, (*VIEWS, SumTo)):
            found = views.of_view(b, expr, t)
        case _:
            return None
    return b.point("not_equal", found, b.constant(0.0, DType.F32))


if TYPE_CHECKING:
    from nfuser.compiler.transforms.differentiate.rules.slopes import Slope
