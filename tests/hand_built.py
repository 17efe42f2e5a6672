# SPDX-License-Identifier: Apache-2.0
"""Fusions written down by hand, and what it takes to run one stage on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.concretize import Concrete, answer, concretize, questions
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Constant,
    Expand,
    ExpandDims,
    Expr,
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Slice,
    Squeeze,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import CAST, POINT_OPS
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.tensor import TensorView, tensor
from nfuser.compiler.trace import call_of, trace_function

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar

Shape = tuple["Scalar | int", ...]


class Hand:
    """Appends expressions in the order in which they are written."""

    def __init__(self) -> None:
        self.exprs: list[Expr] = []
        self._slots = 0

    def argument(self, rank: int, dtype: DType = DType.F32) -> TensorView:
        """Add an argument whose sizes are symbols."""
        return self.shaped(
            *(scalar_symbols.size(self._slots, k) for k in range(rank)), dtype=dtype
        )

    def shaped(self, *shape: Scalar | int, dtype: DType = DType.F32) -> TensorView:
        """Add an argument of a given shape."""
        made = tensor(shape, dtype)
        self.exprs.append(Argument(self._slots, made))
        self._slots += 1
        return made

    def number(self, dtype: DType = DType.F32) -> TensorView:
        """Add an argument that is passed by value."""
        made = tensor((), dtype)
        self.exprs.append(Argument(self._slots, made, by_value=True))
        self._slots += 1
        return made

    def constant(self, value: complex, dtype: DType = DType.F32) -> TensorView:
        """Add a number."""
        made = tensor((), dtype)
        self.exprs.append(Constant(value, made))
        return made

    def point(
        self, name: str, *operands: TensorView, shape: Shape | None = None
    ) -> TensorView:
        """Add an elementwise operation with the shape of its widest operand."""
        widest = max(
            operands, key=lambda t: (t.ndim, -sum(a.is_broadcast for a in t.axes))
        )
        op = POINT_OPS[name]
        dtype = DType.BOOL if op.gives == "bool" else operands[-1].dtype
        made = tensor(widest.shape if shape is None else shape, dtype)
        self.exprs.append(Pointwise(op, operands, made))
        return made

    def cast(self, source: TensorView, dtype: DType) -> TensorView:
        """Add a cast."""
        made = tensor(source.shape, dtype)
        self.exprs.append(Pointwise(CAST, (source,), made))
        return made

    def reduce(self, op: ReduceOp, source: TensorView, *axes: int) -> TensorView:
        """Add a reduction with one result."""
        kept = [x for k, x in enumerate(source.shape) if k not in axes]
        index = op in (ReduceOp.ARGMAX, ReduceOp.ARGMIN)
        made = tensor(kept, DType.I64 if index else source.dtype)
        self.exprs.append(Reduce(op, source, (made,), axes))
        return made

    def moments(self, source: TensorView, *axes: int) -> tuple[TensorView, TensorView]:
        """Add a mean with its sum of squared deviations."""
        kept = [x for k, x in enumerate(source.shape) if k not in axes]
        mean, spread = tensor(kept, source.dtype), tensor(kept, source.dtype)
        self.exprs.append(Reduce(ReduceOp.MOMENTS, source, (mean, spread), axes))
        return mean, spread

    def expand_dims(self, source: TensorView, *axes: int) -> TensorView:
        """Add axes of extent 1 at ``axes`` of the result."""
        rest = iter(source.shape)
        rank = source.ndim + len(axes)
        shape = [1 if k in axes else next(rest) for k in range(rank)]
        made = tensor(shape, source.dtype)
        self.exprs.append(ExpandDims(source, made, axes))
        return made

    def squeeze(self, source: TensorView, *axes: int) -> TensorView:
        """Drop ``axes``."""
        kept = [x for k, x in enumerate(source.shape) if k not in axes]
        made = tensor(kept, source.dtype)
        self.exprs.append(Squeeze(source, made, axes))
        return made

    def expand(self, source: TensorView, *shape: Scalar | int) -> TensorView:
        """Stretch to ``shape``."""
        made = tensor(shape, source.dtype)
        self.exprs.append(Expand(source, made))
        return made

    def permute(self, source: TensorView, *order: int) -> TensorView:
        """Reorder the axes."""
        made = tensor([source.shape[k] for k in order], source.dtype)
        self.exprs.append(Permute(source, made, order))
        return made

    def slice(
        self,
        source: TensorView,
        starts: Sequence[Scalar | int],
        steps: Sequence[int],
        shape: Shape,
    ) -> TensorView:
        """Take every ``steps``-th element from ``starts`` on."""
        made = tensor(shape, source.dtype)
        first = tuple(sc.as_scalar(x) for x in starts)
        self.exprs.append(Slice(source, made, first, tuple(steps)))
        return made

    def fusion(self, *outputs: TensorView, name: str = "hand") -> Fusion:
        """Return what was written, giving ``outputs``."""
        return Fusion(name, self.exprs, outputs)


def hand_softmax(dtype: DType = DType.F32) -> Fusion:
    """Softmax of rows, with the two reductions that depend on each other."""
    hand = Hand()
    x = hand.argument(2, dtype)
    top = hand.expand_dims(hand.reduce(ReduceOp.MAX, x, 1), 1)
    powers = hand.point("exp", hand.point("subtract", x, top))
    total = hand.expand_dims(hand.reduce(ReduceOp.SUM, powers, 1), 1)
    return hand.fusion(hand.point("divide", powers, total), name="softmax")


def sizes_of(*shapes: Sequence[int]) -> dict[Scalar, int]:
    """Return the value of every size, one shape a slot."""
    return {
        scalar_symbols.size(slot, k): n
        for slot, shape in enumerate(shapes)
        for k, n in enumerate(shape)
    }


def settle(fusion: Fusion, *shapes: Sequence[int]) -> Concrete:
    """Concretize ``fusion`` for arguments of these shapes."""
    asked = questions(fusion)
    return concretize(fusion, asked, answer(fusion, asked, sizes_of(*shapes)))


def traced(function: Callable[..., Any], *arguments: Any) -> Fusion:
    """Return the fusion of ``function``."""
    return trace_function(function, call_of(arguments)).fusion


def settled(function: Callable[..., Any], *arguments: Any) -> Fusion:
    """Return the concrete fusion of ``function`` for these arrays."""
    return settle(
        traced(function, *arguments), *(np.shape(a) for a in arguments)
    ).fusion
