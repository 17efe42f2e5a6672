# SPDX-License-Identifier: Apache-2.0
"""What must be known of a call: which extents are 0, which are 1, which are more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.errors import ShapeError
from nfuser.ir import scalar_walk
from nfuser.ir.base import value
from nfuser.ir.expr import Expand, Pointwise, Reduce, ReduceOp, Squeeze
from nfuser.ir.scalar import Const, Scalar
from nfuser.ops.mismatch import no_common_shape, no_stretch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.ir.expr import Expr
    from nfuser.ir.fusion import Fusion
    from nfuser.ir.tensor import TensorView

MANY = 2


@value
class Questions:
    """The extents whose size class decides the form of a fusion."""

    extents: tuple[Scalar, ...]


@value
class Answers:
    """The class of each extent asked for: 0, 1 or MANY."""

    classes: tuple[int, ...]


def questions(fusion: Fusion) -> Questions:
    """Return every symbolic extent of ``fusion``, once."""
    extents = (axis.extent for t in fusion.definition for axis in t.axes)
    return Questions(
        tuple(e for e in dict.fromkeys(extents) if not isinstance(e, Const))
    )


def answer(fusion: Fusion, asked: Questions, values: Mapping[Scalar, int]) -> Answers:
    """Return the answers for one call; sizes that do not fit are refused here."""
    sizes = scalar_walk.evaluate_all(asked.extents, values)
    known: dict[Scalar, int] = dict(zip(asked.extents, sizes, strict=True))
    shapes = {
        t: tuple(
            a.extent.value if isinstance(a.extent, Const) else known[a.extent]
            for a in t.axes
        )
        for t in fusion.definition
    }
    for expr in fusion.exprs:
        _check(expr, shapes)
    return Answers(tuple(min(s, MANY) for s in sizes))


def _check(expr: Expr, shapes: Mapping[TensorView, tuple[int, ...]]) -> None:
    match expr:
        case Pointwise(op, operands, result):
            _check_stretch(op.name, operands, result, shapes)
        case Expand(source, result):
            _check_stretch("broadcast_to", (source,), result, shapes)
        case Squeeze(source, result, axes):
            for axis in axes:
                if (size := shapes[source][axis]) != 1:
                    text = f"squeeze: axis {axis} must have size 1, but has {size}"
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
        case _:
            pass


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
