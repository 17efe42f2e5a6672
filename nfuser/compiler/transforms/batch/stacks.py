# SPDX-License-Identifier: Apache-2.0
"""What stands for the tensors of one row: those of all rows, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nfuser.compiler.ops as ops
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops import Builder


class Stacks:
    """The ``count`` rows of each tensor that differs from row to row, as one tensor.

    ``same`` has other names for tensors that are the same in each row, and ``goes``
    says which rows run, where others have come to their end.
    """

    def __init__(self, b: Builder, count: Scalar) -> None:
        self.b = b
        self.count = count
        self.held: dict[TensorView, TensorView] = {}
        self.same: dict[TensorView, TensorView] = {}
        self.goes: TensorView | None = None

    def differs(self, t: TensorView) -> bool:
        """Tell whether ``t`` differs from row to row."""
        return t in self.held

    def plain(self, t: TensorView) -> TensorView:
        """Return a tensor that is the same in each row."""
        return self.same.get(t, t)

    def all(self, t: TensorView) -> TensorView:
        """Return all rows of ``t``; one that is the same in each is stretched."""
        if t in self.held:
            return self.held[t]
        return ops.broadcast_to(self.b, self.plain(t), (self.count, *t.shape))

    def aligned(self, t: TensorView, rank: int) -> TensorView:
        """Return what stretches against all rows of a tensor with ``rank`` axes.

        Axes of one row meet from the last one on, so that those which a row lacks
        stand behind the first of all rows.
        """
        if t not in self.held:
            return self.plain(t)
        missing = tuple(range(1, 1 + rank - t.ndim))
        return ops.expand_dims(self.b, self.held[t], missing)

    def new(self, t: TensorView) -> TensorView:
        """Return a tensor for all rows of ``t``, still without definition."""
        return self.b.new((self.count, *t.shape), t.dtype)

    def numbers(self, rank: int) -> TensorView:
        """Return the number of each row, against which ``rank`` axes of one stretch."""
        found = ops.arange(self.b, self.count)
        return ops.expand_dims(self.b, found, tuple(range(1, 1 + rank)))


def shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return where axes of a row are in all rows."""
    return tuple(axis + 1 for axis in axes)


def front(starts: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Return starts in a row as starts in all rows."""
    return (sc.const(0), *starts)
