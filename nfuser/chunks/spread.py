# SPDX-License-Identifier: Apache-2.0
"""How each tensor of a fusion lies in chunks, and where chunks must be exchanged.

The axes of a tensor are cut into chunks, or free: whatever chunks are asked for can be
made. A *flexible* axis can be computed in other chunks than its own, because what is
read along it can be. Where neither holds, the tensor is *kept*: computed chunk by
chunk, after which it can be read in any chunks, as arguments can.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeAlias

from nfuser.chunks.chunkings import (
    Chunks,
    is_cut,
    met,
    scaled,
    shifted,
)
from nfuser.chunks.folds import wide
from nfuser.domains.reshape import analyze_reshape
from nfuser.errors import UnsupportedError
from nfuser.ir import scalar_walk
from nfuser.ir.base import node
from nfuser.ir.expr import (
    Argument,
    Assign,
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
    Slice,
    Sort,
    Squeeze,
    SumTo,
    Take,
    results,
    sources,
)
from nfuser.ir.point_op import CAST
from nfuser.ir.tensor import tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nfuser.ir.fusion import Fusion
    from nfuser.ir.scalar import Scalar
    from nfuser.ir.tensor import TensorView

Axes: TypeAlias = "list[tuple[Chunks | None, bool]]"
Job: TypeAlias = "FoldJob | ScanJob | KeepJob | MoveJob"


@node
class FoldJob:
    """A reduction along axes that are cut: parts of each chunk, and a tree of them.

    ``shift`` is the maximum that the exponentials it sums are taken relative to: each
    chunk takes its own, which the tree carries along.
    """

    reduce: Reduce
    source: TensorView
    shift: Reduce | None = None


@node
class ScanJob:
    """A scan along an axis that is cut: a total of each chunk, carried to the next."""

    scan: Scan

    @property
    def source(self) -> TensorView:
        """What is scanned."""
        return self.scan.source


@node
class KeepJob:
    """A tensor that is computed in its own chunks, to be read in others."""

    source: TensorView


@node
class MoveJob:
    """An expression that Dask computes of whole arrays."""

    expr: Expr


def shape_of(
    fusion: Fusion, values: Mapping[Scalar, int]
) -> dict[TensorView, tuple[int, ...]]:
    """Return the sizes of each tensor in one call."""
    tensors = [t for e in fusion.exprs for t in results(e)]
    flat = scalar_walk.evaluate_all([s for t in tensors for s in t.shape], values)
    numbers = iter(flat)
    return {t: tuple(next(numbers) for _ in t.shape) for t in tensors}


class Spread:
    """The chunks of each tensor, its level, and the jobs that lie between levels."""

    def __init__(
        self,
        fusion: Fusion,
        shapes: Mapping[TensorView, tuple[int, ...]],
        values: Mapping[Scalar, int],
        given: Mapping[TensorView, Axes],
        moved: Callable[[Expr, list[tuple[Chunks, ...]]], tuple[Chunks, ...]],
    ) -> None:
        self.fusion, self.shapes, self.values = fusion, shapes, values
        self._chunks_moved = moved
        self.axes: dict[TensorView, Axes] = {}
        self.level: dict[TensorView, int] = {}
        self.jobs: list[tuple[int, Job]] = []
        self.reasons: list[str] = []
        self.kept: set[TensorView] = set()
        self.carries: dict[Scan, TensorView] = {}
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

    def chunks(self, t: TensorView, axis: int) -> Chunks:
        """Return the chunks of an axis; a free one is in one piece."""
        found = self.axes[t][axis][0]
        return (self.shapes[t][axis],) if found is None else found

    # -- what a tensor is asked for --------------------------------------------

    def keep(self, t: TensorView) -> None:
        """Have ``t`` computed in its own chunks, so that others can be read of it."""
        if t not in self.kept:
            self.kept.add(t)
            self.jobs.append((self.level[t], KeepJob(t)))
            self.level[t] += 1
            self.axes[t] = [(c, True) for c, _ in self.axes[t]]

    def whole(self, expr: Expr, t: TensorView, axis: int) -> None:
        """Say that ``expr`` reads all of ``axis`` at once."""
        chunks, is_flexible = self.axes[t][axis]
        if not is_cut(chunks):
            return
        if not is_flexible:
            self.keep(t)
        name = type(expr).__name__.lower()
        at = results(expr)[0].source
        where = f" ({at})" if at is not None else ""
        self.reasons.append(f"{name} reads all of axis {axis} at once{where}")

    def _join(
        self, size: int, read: Sequence[tuple[TensorView, int]]
    ) -> tuple[Chunks | None, bool]:
        """Return the chunks in which axes of ``read`` meet."""
        if size == 1:
            return (1,), True
        found = [(t, *self.axes[t][k]) for t, k in read if self.shapes[t][k] == size]
        rigid = [(t, c) for t, c, is_flexible in found if not is_flexible]
        flexible = [c for _, c, f in found if f and c is not None]
        cuts = [c for _, c in rigid if is_cut(c)]
        if rigid and not cuts and any(map(is_cut, flexible)):
            for t, _ in rigid:
                self.keep(t)
            rigid = []
        if rigid:
            chosen = cuts[0] if cuts else rigid[0][1]
            for t, c in rigid:
                if c != chosen:
                    self.keep(t)
            return chosen, False
        return (met(flexible) if flexible else None), True

    # -- one rule a kind of expression -----------------------------------------

    def _spread(self, expr: Expr, level: int) -> tuple[Axes, int]:
        match expr:
            case Loop():
                message = (
                    "loops do not run over arrays in chunks yet: call the function "
                    "inside dask.array.map_blocks, which gives it one chunk at a time"
                )
                raise UnsupportedError(message)
            case Reduce():
                return self._reduce(expr, level)
            case Scan():
                return self._scan(expr, level)
            case Slice() | Pad() | Concatenate() | Remap() | Matmul() | Reshape():
                found = self._moved(expr)
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
                return [self._join(n, _at(operands, k, shape)) for k, n in _each(shape)]
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
            found = [self._join(n, [(source, k), (index, k)]) for k, n in _each(shape)]
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
                found.append(self._join(n, [(expr.source, k), (expr.value, k)]))
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

    # -- moves -----------------------------------------------------------------

    def _by_dask(self, expr: Expr, level: int) -> tuple[Axes, int]:
        self.jobs.append((level, MoveJob(expr)))
        read = [tuple(self.chunks(t, k) for k in range(t.ndim)) for t in sources(expr)]
        return [(c, True) for c in self._chunks_moved(expr, read)], level + 1

    def _moved(self, expr: Expr) -> Axes | None:
        match expr:
            case Slice():
                return self._sliced(expr)
            case Pad():
                return self._padded(expr)
            case Concatenate():
                return self._joined(expr)
            case Remap():
                return self._remapped(expr)
            case Matmul(lhs, rhs):
                return self._multiplied(lhs, rhs)
            case Reshape():
                return self._reshaped(expr)
            case _:
                return None

    def _sliced(self, expr: Slice) -> Axes | None:
        source = expr.source
        starts = scalar_walk.evaluate_all(expr.starts, self.values)
        found: Axes = []
        for k, (start, n) in enumerate(
            zip(starts, self.shapes[expr.result], strict=True)
        ):
            chunks, is_flexible = self.axes[source][k]
            step = expr.steps[k]
            if start == 0 and step == 1 and n == self.shapes[source][k]:
                found.append((chunks, is_flexible))
            elif is_cut(chunks) and step != 1:
                return None
            elif chunks is not None and is_cut(chunks) and not is_flexible:
                self.keep(source)
                found.append((shifted(chunks, start, n), True))
            elif is_flexible and step == 1:
                moved = None if chunks is None else shifted(chunks, start, n)
                found.append((moved, True))
            else:
                found.append(((n,), False))
        return found

    def _padded(self, expr: Pad) -> Axes | None:
        source = expr.source
        lefts = scalar_walk.evaluate_all(expr.lefts, self.values)
        found: Axes = []
        for k, (left, n) in enumerate(
            zip(lefts, self.shapes[expr.result], strict=True)
        ):
            if left == 0 and n == self.shapes[source][k]:
                found.append(self.axes[source][k])
            elif is_cut(self.axes[source][k][0]):
                return None
            else:
                found.append(((n,), False))
        return found

    def _joined(self, expr: Concatenate) -> Axes | None:
        shape, axis = self.shapes[expr.result], expr.axis
        if any(is_cut(self.axes[t][axis][0]) for t in expr.parts):
            return None
        return [
            ((n,), False) if k == axis else self._join(n, [(t, k) for t in expr.parts])
            for k, n in enumerate(shape)
        ]

    def _remapped(self, expr: Remap) -> Axes | None:
        found: Axes = []
        own = remapped_by_place(expr)
        if len(own) != expr.result.ndim:
            if any(is_cut(c) for c, _ in self.axes[expr.source]):
                for k in range(expr.source.ndim):
                    self.whole(expr, expr.source, k)
            return [((n,), False) for n in self.shapes[expr.result]]
        for k, n in enumerate(self.shapes[expr.result]):
            if own[k] and n == self.shapes[expr.source][k]:
                found.append(self.axes[expr.source][k])
            elif is_cut(self.axes[expr.source][k][0]):
                return None
            else:
                found.append(((n,), False))
        return found

    def _multiplied(self, lhs: TensorView, rhs: TensorView) -> Axes | None:
        cut = any(is_cut(c) for c, _ in self.axes[rhs])
        if cut or lhs.ndim < 2 or rhs.ndim > 2 or is_cut(self.axes[lhs][-1][0]):
            if any(is_cut(c) for t in (lhs, rhs) for c, _ in self.axes[t]):
                return None
            return [((n,), False) for n in self._product_shape(lhs, rhs)]
        right = [((n,), False) for n in self.shapes[rhs][1:]]
        return [*self.axes[lhs][:-1], *right]

    def _product_shape(self, lhs: TensorView, rhs: TensorView) -> tuple[int, ...]:
        found = next(
            e.result
            for e in self.fusion.exprs
            if isinstance(e, Matmul) and e.lhs is lhs and e.rhs is rhs
        )
        return self.shapes[found]

    def _reshaped(self, expr: Reshape) -> Axes | None:
        if flat_iota(expr, self.fusion) is not None:
            return [(None, True) for _ in self.shapes[expr.result]]
        old, new = self.shapes[expr.source], self.shapes[expr.result]
        axes = self.axes[expr.source]
        found: Axes = [((n,), n == 1) for n in new]
        if 0 in old:
            return None if any(is_cut(c) for c, _ in axes) else found
        for left, right in analyze_reshape(old, new).groups:
            if not left or not right:
                continue
            if len(left) == len(right) == 1:
                found[right[0]] = axes[left[0]]
                continue
            if any(is_cut(axes[k][0]) for k in left[1:]):
                return None
            chunks = axes[left[0]][0]
            if is_cut(chunks):
                assert chunks is not None
                times = prod(old[k] for k in left[1:])
                over = prod(new[k] for k in right[1:])
                moved = scaled(chunks, times, over)
                if moved is None:
                    return None
                found[right[0]] = moved, False
        return found


def _each(shape: Sequence[int]) -> list[tuple[int, int]]:
    return list(enumerate(shape))


def _at(
    operands: Sequence[TensorView], axis: int, shape: Sequence[int]
) -> list[tuple[TensorView, int]]:
    """Return the axis of each operand that meets ``axis`` of the result."""
    back = len(shape) - axis
    return [(t, t.ndim - back) for t in operands if t.ndim >= back]


def remapped_by_place(expr: Remap) -> list[bool]:
    """Tell of each axis whether its elements stay; nothing where axes mix."""
    found: list[bool] = []
    if expr.source.ndim != expr.result.ndim:
        return []
    for k, index in enumerate(expr.index):
        loops = scalar_walk.loops_in(index)
        if any(-1 - loop.number != k for loop in loops):
            return []
        found.append(len(loops) == 1 and index is loops[0])
    return found


def flat_iota(expr: Expr, fusion: Fusion) -> tuple[Iota, Pointwise | None] | None:
    """Return the index that ``expr`` reshapes, with the cast between them, if any."""
    if not isinstance(expr, Reshape):
        return None
    cast, made = None, fusion.definition[expr.source]
    if isinstance(made, Pointwise) and made.op is CAST:
        cast, made = made, fusion.definition[made.operands[0]]
    return (made, cast) if isinstance(made, Iota) else None


def shift_of(expr: Reduce, fusion: Fusion) -> Reduce | None:
    """Return the maximum relative to which ``expr`` sums exponentials, if it does."""
    if expr.op is not ReduceOp.SUM:
        return None
    power = fusion.definition[expr.source]
    if not (isinstance(power, Pointwise) and power.op.name == "exp"):
        return None
    gap = fusion.definition[power.operands[0]]
    if not (isinstance(gap, Pointwise) and gap.op.name == "subtract"):
        return None
    base, less = gap.operands
    made = fusion.definition[less]
    kept: tuple[int, ...] = ()
    while isinstance(made, (ExpandDims, Expand)):
        kept = made.axes if isinstance(made, ExpandDims) else kept
        made = fusion.definition[made.source]
    if not (isinstance(made, Reduce) and made.op is ReduceOp.MAX):
        return None
    if made.source is not base or made.axes != expr.axes:
        return None
    fits = kept == made.axes or len(made.axes) == base.ndim
    return made if fits else None
