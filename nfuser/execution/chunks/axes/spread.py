# SPDX-License-Identifier: Apache-2.0
"""How each tensor of a fusion lies in chunks, expression by expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    Permute,
    Pointwise,
    Reduce,
    ReduceOp,
    Remap,
    Reshape,
    Scan,
    Scatter,
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ir.tensor import tensor
from nfuser.errors import UnsupportedError
from nfuser.execution.chunks.axes.chunkings import Chunks, is_cut
from nfuser.execution.chunks.axes.known import Axes, Known
from nfuser.execution.chunks.axes.moved_axes import moved_axes
from nfuser.execution.chunks.axes.patterns import JOINED_BY, shift_of
from nfuser.execution.chunks.folds import wide
from nfuser.execution.chunks.jobs import FoldJob, MoveJob, ScanJob, ScatterJob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


class Spread(Known):
    """The chunks of each tensor, its level, and the jobs that lie between levels."""

    def __init__(
        self,
        fusion: Fusion,
        shapes: Mapping[TensorView, tuple[int, ...]],
        values: Mapping[Scalar, int],
        given: Mapping[TensorView, Axes],
        moved: Callable[[Expr, list[tuple[Chunks, ...]]], tuple[Chunks, ...]],
    ) -> None:
        super().__init__(fusion, shapes, values)
        self._chunks_moved = moved
        self.carries: dict[Scan, TensorView] = {}
        self.partials: dict[Scatter, TensorView] = {}
        for expr in fusion.exprs:
            read = sources(expr)
            level = max((self.level[t] for t in read), default=0)
            found = given.get(results(expr)[0])
            if found is None:
                found, level = self._spread(expr, level)
            # Reading an axis in other chunks may have asked for a tensor to be kept.
            level = max([level, *(self.level[t] for t in read)])
            for result in results(expr):
                self.axes[result] = found
                self.level[result] = level

    # -- one rule a kind of expression -----------------------------------------

    def _spread(self, expr: Expr, level: int) -> tuple[Axes, int]:
        match expr:
            case Loop():
                message = (
                    "loops do not run over arrays in chunks yet: call the function "
                    "inside dask.array.map_blocks, which gives it one chunk at a time"
                )
                raise UnsupportedError(message)
            case Called(name):
                message = (
                    f"{name} does not run over arrays in chunks yet: call the function "
                    "inside dask.array.map_blocks, which gives it one chunk at a time"
                )
                raise UnsupportedError(message)
            case Reduce():
                return self._reduce(expr, level)
            case Scan():
                return self._scan(expr, level)
            case Scatter():
                return self._scattered(expr, level)
            case Slice() | Pad() | Concatenate() | Remap() | Matmul() | Reshape():
                found = moved_axes(self, expr)
                if found is not None:
                    return found, level
                return self._by_dask(expr, level)
            case _:
                return self._local(expr), level

    def _local(self, expr: Expr) -> Axes:
        result = results(expr)[0]
        shape = self.shapes[result]
        match expr:
            case Argument() | Constant() | FromScalar() | Iota():
                return [(None, True) for _ in shape]
            case Pointwise(_, operands):
                return [self.join(n, _at(operands, k, shape)) for k, n in _each(shape)]
            case Expand(source):
                return self._expanded(source, shape)
            case ExpandDims(source, axes=axes):
                old = iter(self.axes[source])
                return [
                    ((1,), True) if k in axes else next(old) for k, _ in _each(shape)
                ]
            case Squeeze(source, axes=axes):
                return [a for k, a in enumerate(self.axes[source]) if k not in axes]
            case Permute(source, order=order):
                return [self.axes[source][k] for k in order]
            case _:
                return self._with_whole_axes(expr)

    def _with_whole_axes(self, expr: Expr) -> Axes:
        """Spread what reads all of some axes."""
        match expr:
            case Take():
                return self._taken(expr)
            case Sort(source, axis=axis):
                self.whole(expr, source, axis)
                return self._with_whole(source, (axis,))
            case SumTo():
                return self._summed(expr)
            case Assign():
                return self._assigned(expr)
            case _:
                for t in sources(expr):
                    for k in range(t.ndim):
                        self.whole(expr, t, k)
                return [((n,), False) for n in self.shapes[results(expr)[0]]]

    def _expanded(self, source: TensorView, shape: tuple[int, ...]) -> Axes:
        lead = len(shape) - source.ndim
        return [
            self.axes[source][k - lead]
            if k >= lead and self.shapes[source][k - lead] == n
            else (None, True)
            for k, n in enumerate(shape)
        ]

    def _with_whole(self, source: TensorView, axes: Sequence[int]) -> Axes:
        """Return the axes of ``source``, of which ``axes`` were read as a whole."""
        sizes = self.shapes[source]
        return [
            ((sizes[k],), False) if k in axes else a
            for k, a in enumerate(self.axes[source])
        ]

    def _taken(self, expr: Take) -> Axes:
        source, index, axis = expr.source, expr.index, expr.axis
        self.whole(expr, source, axis)
        if expr.along:
            self.whole(expr, index, axis)
            shape = self.shapes[expr.result]
            found = [self.join(n, [(source, k), (index, k)]) for k, n in _each(shape)]
            found[axis] = (shape[axis],), False
            return found
        old = self.axes[source]
        return [*old[:axis], *self.axes[index], *old[axis + 1 :]]

    def summed_axes(self, expr: SumTo) -> tuple[int, ...]:
        """Return the axes of the source that are summed in this call."""
        old, new = self.shapes[expr.source], self.shapes[expr.result]
        kept = [k for k in range(len(old)) if k not in expr.axes]
        stretched = [
            k for k, n in zip(kept, new, strict=True) if n == 1 and old[k] != 1
        ]
        return (*expr.axes, *stretched)

    def _summed(self, expr: SumTo) -> Axes:
        summed = self.summed_axes(expr)
        for k in summed:
            self.whole(expr, expr.source, k)
        return [
            ((1,), True) if k in summed else a
            for k, a in enumerate(self.axes[expr.source])
            if k not in expr.axes
        ]

    def is_part(self, expr: Assign, axis: int) -> bool:
        """Tell whether the value lies along a part of ``axis`` only."""
        same = self.shapes[expr.source][axis] == self.shapes[expr.value][axis]
        (start,) = scalar_walk.evaluate_all([expr.starts[axis]], self.values)
        return not (same and start == 0 and expr.steps[axis] == 1)

    def _assigned(self, expr: Assign) -> Axes:
        found: Axes = []
        for k, n in enumerate(self.shapes[expr.result]):
            if self.is_part(expr, k):
                self.whole(expr, expr.source, k)
                self.whole(expr, expr.value, k)
                found.append(((n,), False))
            else:
                found.append(self.join(n, [(expr.source, k), (expr.value, k)]))
        return found

    # -- folds and scans -------------------------------------------------------

    def _reduce(self, expr: Reduce, level: int) -> tuple[Axes, int]:
        source = expr.source
        shift = shift_of(expr, self.fusion)
        if shift is not None and any(
            is_cut(self.axes[shift.source][k][0]) for k in expr.axes
        ):
            source = shift.source
            level = self.level[source]
        elif not any(is_cut(self.axes[source][k][0]) for k in expr.axes):
            kept = [a for k, a in enumerate(self.axes[source]) if k not in expr.axes]
            return kept, level
        else:
            shift = None
        self.jobs.append((level, FoldJob(expr, source, shift)))
        kept = [k for k in range(source.ndim) if k not in expr.axes]
        found: Axes = [(self.chunks(source, k), True) for k in kept]
        return found, level + 1

    def _any_cut(self, t: TensorView, axes: Sequence[int]) -> bool:
        return any(is_cut(self.axes[t][k][0]) for k in axes)

    def _scan(self, expr: Scan, level: int) -> tuple[Axes, int]:
        source, axis = expr.source, expr.axis
        chunks = self.axes[source][axis][0]
        if not is_cut(chunks):
            return self._with_whole(source, (axis,)), level
        self.jobs.append((level, ScanJob(expr)))
        dtype = expr.source.dtype
        carried = wide(dtype) if expr.op is ReduceOp.SUM else dtype
        self.carries[expr] = tensor(source.shape, carried)
        found: Axes = [(self.chunks(source, k), False) for k in range(source.ndim)]
        return found, level + 1

    def _scattered(self, expr: Scatter, level: int) -> tuple[Axes, int]:
        index, value = expr.index, expr.value
        whole: Axes = [((n,), False) for n in self.shapes[expr.result]]
        inner = range(index.ndim, value.ndim)
        joins = expr.op in JOINED_BY and expr.source.dtype.numpy.kind in "iuf"
        for t, axes in ((expr.source, range(expr.source.ndim)), (value, inner)):
            for k in axes:
                self.whole(expr, t, k)
        if not any(self._any_cut(t, range(index.ndim)) for t in (index, value)):
            return whole, level
        if not joins:
            for t in (index, value):
                for k in range(index.ndim):
                    self.whole(expr, t, k)
            return whole, max(level, self.level[index], self.level[value])
        lead = self._lead_of(index, value)
        level = max(level, self.level[index], self.level[value])
        self.jobs.append((level, ScatterJob(expr, lead)))
        self.partials[expr] = tensor(expr.source.shape, expr.source.dtype)
        return whole, level + 1

    def _lead_of(self, index: TensorView, value: TensorView) -> TensorView:
        """Return which of two has the chunks in which both are read."""
        axes = range(index.ndim)
        lead, other = (index, value) if self._any_cut(index, axes) else (value, index)
        for k in axes:
            chunks, is_flexible = self.axes[other][k]
            if not is_flexible and chunks != self.axes[lead][k][0]:
                self.keep(other)
        return lead

    def _by_dask(self, expr: Expr, level: int) -> tuple[Axes, int]:
        """Spread what Dask computes of whole arrays; if it cannot, all is read."""
        read = [tuple(self.chunks(t, k) for k in range(t.ndim)) for t in sources(expr)]
        shape = self.shapes[results(expr)[0]]
        try:
            chunks = self._chunks_moved(expr, read) if 0 not in shape else None
        except NotImplementedError:  # a reshape that mixes axes otherwise
            chunks = None
        if chunks is None:
            for t in sources(expr):
                for k in range(t.ndim):
                    self.whole(expr, t, k)
            return [((n,), False) for n in shape], level
        self.jobs.append((level, MoveJob(expr)))
        return [(c, True) for c in chunks], level + 1


def _each(shape: Sequence[int]) -> list[tuple[int, int]]:
    return list(enumerate(shape))


def _at(
    operands: Sequence[TensorView], axis: int, shape: Sequence[int]
) -> list[tuple[TensorView, int]]:
    """Return the axis of each operand that meets ``axis`` of the result."""
    back = len(shape) - axis
    return [(t, t.ndim - back) for t in operands if t.ndim >= back]
