# SPDX-License-Identifier: Apache-2.0
"""Stages: what one task computes of its chunks, as a fusion of its own.

A stage is worked out from its results back. Its tasks are numbered by *labels*, one for
each axis that is cut; each tensor is needed along an axis as a whole, or for a label's
chunk, with more elements before and after it where shifted parts meet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.dtypes import DType
from nfuser.compiler.ir.expr import (
    Argument,
    Assign,
    Concatenate,
    ExpandDims,
    Expr,
    FromScalar,
    Iota,
    Matmul,
    Pad,
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
    results,
)
from nfuser.compiler.ir.fusion import with_sources
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk
from nfuser.compiler.ops.builder import Builder
from nfuser.execution.chunks.axes.needs import required
from nfuser.execution.chunks.axes.patterns import JOINED_BY, flat_iota
from nfuser.execution.chunks.axes.places import NONE, Read
from nfuser.execution.chunks.folds import emit_carried, joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.execution.chunks.axes.places import Along, Margins, Need, Place
    from nfuser.execution.chunks.axes.spread import Spread


class Stage:
    """One fusion for the tasks of a grid: inputs, numbers, and what is emitted.

    ``numbers`` are those of the call by slot; ``edges`` are the slots that take the
    place (0) or the length (1) of the chunk of a label.
    """

    def __init__(
        self,
        spread: Spread,
        held: Iterable[TensorView],
        roots: Sequence[tuple[TensorView, Place]],
        given: Mapping[int, Any],
    ) -> None:
        self._spread = spread
        self._given = given
        self._held = set(held)
        self.builder = Builder(None, spread.fusion.name)
        self.reads: list[Read] = []
        self.slots: list[int] = []
        self.numbers: dict[int, Any] = {}
        self.edges: dict[tuple[int, int], int] = {}
        self._slot = 0
        self._known: dict[tuple[str, Any], int] = {}
        self._needs: dict[tuple[TensorView, Place], list[list[int]]] = {}
        self._places: dict[TensorView, list[Place]] = {}
        self._made: dict[tuple[TensorView, Place], TensorView] = {}
        for tensor, place in roots:
            self._need((tensor, place, (NONE,) * len(place)))
        self._collect()
        self._emit()

    def local(self, t: TensorView, place: Place, margins: Margins = ()) -> TensorView:
        """Return what the stage has of ``t`` there, with margins of this width."""
        made, wide = self._made[t, place], self._needs[t, place]
        wanted = margins or (NONE,) * len(place)
        cuts = [
            (low - w[0], w[1] - high)
            for (low, high), w in zip(wanted, wide, strict=True)
        ]
        if all(cut == NONE for cut in cuts):
            return made
        shape = [n - (a + b) for n, (a, b) in zip(made.shape, cuts, strict=True)]
        result = self.builder.new(shape, made.dtype)
        starts = tuple(sc.const(a) for a, _ in cuts)
        self.builder.emit(Slice(made, result, starts, (1,) * len(cuts)))
        return result

    # -- from results back -----------------------------------------------------

    def _need(self, need: Need) -> None:
        tensor, place, margins = need
        if (tensor, place) not in self._needs:
            self._needs[tensor, place] = [list(m) for m in margins]
            self._places.setdefault(tensor, []).append(place)
        wide = self._needs[tensor, place]
        for known, (low, high) in zip(wide, margins, strict=True):
            known[0], known[1] = min(known[0], low), max(known[1], high)

    def _collect(self) -> None:
        for expr in reversed(self._spread.fusion.exprs):
            for tensor, place, margins in self._instances(expr):
                if tensor not in self._held:
                    for need in required(self._spread, expr, place, margins):
                        self._need(need)

    def _instances(self, expr: Expr) -> list[Need]:
        return [
            (t, place, tuple((m[0], m[1]) for m in self._needs[t, place]))
            for t in results(expr)
            for place in self._places.get(t, ())
        ]

    # -- forward again ---------------------------------------------------------

    def _emit(self) -> None:
        spread = self._spread
        hidden = {*spread.carries.values(), *spread.partials.values()}
        for (tensor, place), wide in list(self._needs.items()):
            if tensor in hidden:
                margins = tuple((m[0], m[1]) for m in wide)
                self._made[tensor, place] = self._input(tensor, place, margins)
        for expr in self._spread.fusion.exprs:
            for tensor, place, margins in self._instances(expr):
                if (tensor, place) in self._made:
                    continue
                self.builder.source = tensor.source
                if tensor in self._held:
                    self._made[tensor, place] = self._input(tensor, place, margins)
                    continue
                needs = required(self._spread, expr, place, margins)
                read = [self.local(*need) for need in needs]
                for t, made in zip(
                    results(expr), self._local(expr, place, margins, read), strict=True
                ):
                    # A result that nobody asked for is as wide as the one asked for.
                    self._need((t, place, margins))
                    self._made[t, place] = made

    def _input(self, t: TensorView, place: Place, margins: Margins) -> TensorView:
        self.reads.append(Read(t, place, margins))
        self.slots.append(self._slot)
        self._slot += 1
        return self.builder.argument(self._slot - 1, t.ndim, t.dtype)

    def number(self, kind: str, number: Any) -> int:
        """Return the slot of a number of the call."""
        key = (kind, repr(number))
        if key not in self._known:
            self._known[key] = self._slot
            self.numbers[self._slot] = number
            self._slot += 1
        return self._known[key]

    def size(self, number: int) -> Scalar:
        """Return a size of the whole call as a scalar; 0 and 1 mean something."""
        if number in (0, 1):
            return sc.const(number)
        return scalar_symbols.scalar_input(self.number("size", number))

    def edge(self, label: int, which: int) -> Scalar:
        """Return where the chunk of ``label`` begins (0), or how long it is (1)."""
        if (label, which) not in self.edges:
            self.edges[label, which] = self._slot
            self._slot += 1
        return scalar_symbols.scalar_input(self.edges[label, which])

    def extent(self, n: int, along: Along | None, margin: tuple[int, int]) -> Scalar:
        """Return how many elements there are of an axis of ``n``."""
        if along is None:
            return self.size(n)
        own = self.edge(along.label, 1) * along.times // along.over
        return own + (margin[1] - margin[0])

    def start(self, along: Along | None, margin: tuple[int, int]) -> Scalar:
        """Return the index of the first element of an axis."""
        if along is None:
            return sc.const(0)
        own = self.edge(along.label, 0) * along.times // along.over
        return own + margin[0]

    def scalar(self, x: Scalar) -> Scalar:
        """Return what ``x`` is in this call, as a scalar of the stage."""
        if not scalar_walk.symbols([x]):
            return x
        return self.size(scalar_walk.evaluate(x, self._spread.values))

    def _local(
        self, expr: Expr, place: Place, margins: Margins, read: list[TensorView]
    ) -> list[TensorView]:
        b, dtype = self.builder, results(expr)[0].dtype
        match expr:
            case Argument():
                slot = self.number("given", expr.slot)
                self.numbers[slot] = self._given[expr.slot]
                return [b.argument(slot, 0, dtype, by_value=True)]
            case FromScalar(scalar):
                number = scalar_walk.evaluate(scalar, self._spread.values)
                found = scalar_symbols.scalar_input(self.number("size", number))
                return [self._emitted(FromScalar(found, b.new((), dtype)))]
            case Scan() if expr in self._spread.carries:
                return [emit_carried(b, expr, *read)]
            case Scatter() if expr in self._spread.partials:
                return [joined(b, JOINED_BY[expr.op], *read)]
            case Iota():
                shape = self._spread.shapes[expr.result]
                return [self._iota(dtype, shape[0], place[0], margins[0])]
            case Reshape() if flat_iota(expr, self._spread.fusion) is not None:
                return [self._flat(expr, place, margins)]
            case Slice() if self._is_window(expr, place):
                return read
            case Reduce():
                kept = [n for k, n in enumerate(read[0].shape) if k not in expr.axes]
                made = tuple(b.new(kept, t.dtype) for t in expr.results)
                b.emit(replace(expr, source=read[0], results=made))
                return list(made)
            case _:
                shape = self._shape(expr, place, margins, read)
                new: Any = with_sources(expr, read)
                new = replace(new, result=b.new(shape, dtype))
                return [self._emitted(self._with_numbers(new, place))]

    def _emitted(self, expr: Any) -> TensorView:
        self.builder.emit(expr)
        return expr.result

    def _is_window(self, expr: Slice, place: Place) -> bool:
        """Tell whether what was read is all that ``expr`` takes."""
        old, new = self._spread.shapes[expr.source], self._spread.shapes[expr.result]
        steps = zip(place, old, new, expr.steps, strict=True)
        return all(p is not None or (m == n and s == 1) for p, m, n, s in steps)

    def _with_numbers(self, expr: Any, place: Place) -> Any:
        """Return ``expr`` with scalars of the stage for those of the call."""
        match expr:
            case Slice() | Assign():
                starts = (
                    sc.const(0) if p is not None else self.scalar(s)
                    for p, s in zip(place, expr.starts, strict=True)
                )
                return replace(expr, starts=tuple(starts))
            case Pad():
                return replace(expr, lefts=tuple(map(self.scalar, expr.lefts)))
            case Remap():
                return replace(expr, index=tuple(self._moved(expr, place)))
            case _:
                return expr

    def _moved(self, expr: Remap, place: Place) -> list[Scalar]:
        """Return the index of a remap; along a label elements stay where they are."""
        shape = expr.result.shape
        found: list[Scalar] = []
        for k, index in enumerate(expr.index):
            if k < len(place) and place[k] is not None:
                found.append(scalar_symbols.place(k, shape[k]))
                continue
            by: dict[Scalar, Scalar] = {}
            for x in scalar_walk.symbols([index]):
                if not isinstance(x, sc.LoopIndex):
                    by[x] = self.scalar(x)
            for loop in scalar_walk.loops_in(index):
                axis = scalar_symbols.place_axis(loop)
                by[loop] = scalar_symbols.place(axis, shape[axis])
            found += scalar_walk.substitute([index], by)
        return found

    def _shape(
        self, expr: Expr, place: Place, margins: Margins, read: list[TensorView]
    ) -> Sequence[Scalar]:
        first = read[0].shape if read else ()
        shape = self._spread.shapes[results(expr)[0]]
        match expr:
            case Pointwise(op):
                return self.builder.broadcast(*read, name=op.name)
            case ExpandDims(axes=axes):
                old = iter(first)
                one = sc.const(1)
                return [one if k in axes else next(old) for k in range(len(shape))]
            case Squeeze(axes=axes):
                return [n for k, n in enumerate(first) if k not in axes]
            case Permute(order=order):
                return [first[k] for k in order]
            case Scan() | Sort() | Assign() | Scatter():
                return first
            case Slice() | Pad() | Remap():
                old = self._spread.shapes[expr.source]
                same = len(old) == len(shape)
                return [
                    first[k]
                    if place[k] is not None or (same and old[k] == n)
                    else self.size(n)
                    for k, n in enumerate(shape)
                ]
            case Take() | Concatenate() | SumTo() | Matmul():
                return self._shape_of_whole(expr, place, read)
            case _:
                axes = zip(shape, place, margins, strict=True)
                return [self.extent(n, p, m) for n, p, m in axes]

    def _shape_of_whole(
        self,
        expr: Take | Concatenate | SumTo | Matmul,
        place: Place,
        read: list[TensorView],
    ) -> Sequence[Scalar]:
        """Return the sizes of what was made of all of some axes."""
        first = read[0].shape
        match expr:
            case Take(axis=axis):
                if expr.along:
                    return read[1].shape
                return [*first[:axis], *read[1].shape, *first[axis + 1 :]]
            case Concatenate(axis=axis):
                total: Scalar = sc.const(0)
                for t in read:
                    total = total + t.shape[axis]
                return [total if k == axis else n for k, n in enumerate(first)]
            case SumTo(axes=axes):
                summed = self._spread.summed_axes(expr)
                one = sc.const(1)
                kept = [one if k in summed else n for k, n in enumerate(first)]
                return [n for k, n in enumerate(kept) if k not in axes]
            case Matmul():
                if all(p is None for p in place):
                    return [self.size(n) for n in self._spread.shapes[expr.result]]
                columns = read[1].shape[1:] if read[1].ndim == 2 else ()
                return [*first[:-1], *columns]

    # -- indices ---------------------------------------------------------------

    def _iota(
        self, dtype: DType, n: int, along: Along | None, margin: tuple[int, int]
    ) -> TensorView:
        """Return the indices of the call's axis that lie in the chunk."""
        b = self.builder
        found = self._emitted(Iota(b.new([self.extent(n, along, margin)], dtype)))
        start = self.start(along, margin)
        if start is sc.const(0):
            return found
        return b.point("add", found, b.from_scalar(start, dtype))

    def _flat(self, expr: Reshape, place: Place, margins: Margins) -> TensorView:
        """Return the C-order index of each element of the chunk."""
        b, shape = self.builder, self._spread.shapes[expr.result]
        found: TensorView | None = None
        step = 1
        axes = list(enumerate(zip(shape, place, margins, strict=True)))
        for k, (n, along, margin) in reversed(axes):
            index = self._iota(DType.I64, n, along, margin)
            others = tuple(j for j in range(len(shape)) if j != k)
            if others:
                one = sc.const(1)
                wide = [index.shape[0] if j == k else one for j in range(len(shape))]
                made = b.new(wide, DType.I64)
                index = self._emitted(ExpandDims(index, made, others))
            if step != 1:
                number = self.number("size", step)
                index = b.point(
                    "multiply",
                    index,
                    b.from_scalar(scalar_symbols.scalar_input(number), DType.I64),
                )
            found = index if found is None else b.point("add", found, index)
            step *= n
        assert found is not None
        return b.cast(found, expr.result.dtype)
