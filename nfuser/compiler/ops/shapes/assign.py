# SPDX-License-Identifier: Apache-2.0
"""The verb that puts a value in the place of a part of an array, or of a view of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Assign,
    ExpandDims,
    Permute,
    Pointwise,
    Reshape,
    Slice,
    Squeeze,
    Take,
    results,
)
from nfuser.compiler.ir.fusion import with_sources
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ops.elementwise.complex.functions import complex_of, imag, real
from nfuser.compiler.ops.shapes.views import drop, expand_dims, permute
from nfuser.errors import MutationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


class AssignedPart:
    """A part of an array that was found by views, one after another.

    ``shape`` and ``dtype`` are those of the part. Views of stretched axes have no
    elements of their own, and are refused.
    """

    def __init__(
        self,
        b: Builder,
        whole: TensorView,
        views: Callable[[TensorView], TensorView],
    ) -> None:
        """Follow ``views`` from a tensor like ``whole``; nothing of that remains."""
        before = len(b.exprs)
        first = b.new(whole.shape, whole.dtype)
        last = views(first)
        self.steps: list[Expr] = b.exprs[before:]
        del b.exprs[before:]
        self.shape, self.dtype = last.shape, last.dtype
        self._whole = first

    @property
    def spelling(self) -> tuple[object, ...]:
        """What two targets in one array have in common that are the same part."""
        return tuple(_spelled(expr) for expr in self.steps)

    def assigned(self, b: Builder, whole: TensorView, value: TensorView) -> TensorView:
        """Return ``whole`` with ``value`` in the place of the part."""
        return _put(b, whole, value, self.steps)


def _spelled(expr: Expr) -> tuple[object, ...]:
    match expr:
        case Slice(_, result, starts, steps):
            return ("slice", starts, steps, result.shape)
        case Permute(_, _, order):
            return ("permute", order)
        case ExpandDims(_, _, axes):
            return ("expand_dims", axes)
        case Squeeze(_, _, axes):
            return ("squeeze", axes)
        case Take(_, index, _, axis):
            return ("take", index, axis)
        case _:
            return (expr,)


def _put(
    b: Builder, whole: TensorView, value: TensorView, steps: Sequence[Expr]
) -> TensorView:
    """Return ``whole`` with ``value`` where ``steps`` lead, from the last one back."""
    starts: list[Scalar] = [sc.const(0)] * value.ndim
    strides = [1] * value.ndim
    for number, expr in reversed(list(enumerate(steps))):
        match expr:
            case Slice(_, _, begins, jumps):
                axes = zip(starts, begins, jumps, strict=True)
                starts = [begin + at * jump for at, begin, jump in axes]
                strides = [a * c for a, c in zip(strides, jumps, strict=True)]
            case Permute(_, _, order):
                back = [order.index(k) for k in range(len(order))]
                value = permute(b, value, back)
                starts = [starts[k] for k in back]
                strides = [strides[k] for k in back]
            case ExpandDims(_, _, axes):
                if any(value.shape[axis] == sc.const(0) for axis in axes):
                    return whole  # what is left of an inserted axis is empty
                value = drop(b, value, axes)
                kept = [k for k in range(len(starts)) if k not in axes]
                starts, strides = [starts[k] for k in kept], [strides[k] for k in kept]
            case Squeeze(_, _, axes):
                value = expand_dims(b, value, axes)
                for axis in axes:
                    starts.insert(axis, sc.const(0))
                    strides.insert(axis, 1)
            case Pointwise(op, (_,)) if op.name in ("real", "imag"):
                own = _seen(b, whole, steps[:number])
                parts = {"real": real(b, own), "imag": imag(b, own)}
                parts[op.name] = _assign(b, parts[op.name], value, starts, strides)
                value = complex_of(b, parts["real"], parts["imag"])
                starts = [sc.as_scalar(0)] * value.ndim
                strides = [1] * value.ndim
            case Reshape():
                message = (
                    "assign into the array itself, by an index of its own axes: "
                    "whether what reshape, ravel or flatten gives shares its memory is "
                    "known to calls only"
                )
                raise MutationError(message)
            case _:
                message = (
                    "assign into the array itself: several places of this view of it "
                    "stand for one element"
                )
                raise MutationError(message)
    return _assign(b, whole, value, starts, strides)


def _assign(
    b: Builder,
    whole: TensorView,
    value: TensorView,
    starts: Sequence[Scalar],
    steps: Sequence[int],
) -> TensorView:
    result = b.new(whole.shape, whole.dtype)
    b.emit(Assign(whole, value, result, tuple(starts), tuple(steps)))
    return result


def _seen(b: Builder, whole: TensorView, steps: Sequence[Expr]) -> TensorView:
    """Return the view of ``whole`` to which ``steps`` lead."""
    for expr in steps:
        made = replace(results(expr)[0])
        b.emit(replace(with_sources(expr, [whole]), result=made))
        whole = made
    return whole
