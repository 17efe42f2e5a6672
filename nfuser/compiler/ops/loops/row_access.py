# SPDX-License-Identifier: Apache-2.0
"""Which rows of an array a turn of a loop writes and reads, and by what expressions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import node
from nfuser.compiler.ir.expr import (
    Assign,
    ExpandDims,
    Expr,
    Permute,
    Pointwise,
    Scatter,
    ScatterOp,
    Slice,
    Squeeze,
    Take,
    results,
)
from nfuser.compiler.ir.point_op import is_copy
from nfuser.compiler.ir.scalars import scalar as sc

if TYPE_CHECKING:
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import IterDomain, TensorView


@node
class RowPart:
    """A part of an array in which rows lie: a slice, of which axes are ``dropped``."""

    starts: tuple[Scalar, ...]
    steps: tuple[int, ...]
    axes: tuple[IterDomain, ...]
    dropped: tuple[int, ...]

    @property
    def shape(self) -> tuple[Scalar, ...]:
        """The extents of its axes."""
        return tuple(axis.extent for axis in self.axes)

    def is_as(self, other: RowPart, along: int) -> bool:
        """Tell whether rows along axis ``along`` are the same elements of others."""

        def rest(part: RowPart) -> tuple[object, ...]:
            spelled = zip(part.starts, part.steps, part.axes, strict=True)
            kept = [
                (start, step, own.extent)
                for k, (start, step, own) in enumerate(spelled)
                if k != along
            ]
            return (*kept, part.dropped)

        return rest(self) == rest(other)


@node
class RowAccess:
    """A row of a version of the array, read or written by ``exprs``."""

    version: TensorView
    part: RowPart
    axis: int
    index: TensorView
    row: TensorView
    exprs: tuple[Expr, ...]


@node
class History:
    """What a turn writes into the array, in order.

    ``versions`` says of each tensor that the array is in a turn how many writes it has
    seen; ``exprs`` make these.
    """

    writes: tuple[RowAccess, ...]
    versions: dict[TensorView, int]
    exprs: frozenset[Expr]


def history_of(body: Fusion, array: TensorView, output: TensorView) -> History | None:
    """Return the writes that make ``output`` of the array; None if others do."""
    return _Looking(body, array).history(output)


class _Looking:
    """A search from what a turn leaves back to the array that it was given."""

    def __init__(self, body: Fusion, array: TensorView) -> None:
        self._body, self._array = body, array
        self._exprs: dict[Expr, None] = {}
        self._versions: dict[TensorView, int] = {}

    def history(self, output: TensorView) -> History | None:
        """Return the writes that make ``output`` of the array; None if others do."""
        writes: list[RowAccess] = []
        tensor = self._copied(output, 0)
        while tensor is not self._array:
            write = self._write(tensor)
            if write is None:
                return None
            writes.append(write)
            self._exprs.update(dict.fromkeys(write.exprs))
            tensor = self._copied(write.version, len(writes))
        if not writes:
            return None
        versions = {t: len(writes) - k for t, k in self._versions.items()}
        return History(tuple(writes[::-1]), versions, frozenset(self._exprs))

    def _copied(self, tensor: TensorView, number: int) -> TensorView:
        """Return what ``tensor``, the version ``number`` from last, is a copy of."""
        self._versions[tensor] = number
        while isinstance(expr := self._body.definition[tensor], Pointwise):
            if not is_copy(expr.op):
                break
            self._exprs[expr] = None
            (tensor,) = expr.operands
            self._versions[tensor] = number
        return tensor

    def _write(self, tensor: TensorView) -> RowAccess | None:
        """Return how ``tensor`` is another one with one of its rows written."""
        definition = self._body.definition
        expr = definition[tensor]
        assign = expr if isinstance(expr, Assign) else None
        exprs: list[Expr] = []
        number = self._versions[tensor]
        if assign is not None:
            exprs.append(assign)
            expr = definition[assign.value]
            if assign.is_whole:
                self._versions[assign.value] = number
        while isinstance(expr, (ExpandDims, Permute)):
            exprs.append(expr)
            expr = definition[expr.source]
        if not isinstance(expr, Scatter) or expr.op is not ScatterOp.SET:
            return None
        if expr.index.ndim or expr.lead != 1:
            return None
        exprs.append(expr)
        return self._scattered(expr, assign, tuple(exprs))

    def _scattered(
        self, scatter: Scatter, assign: Assign | None, exprs: tuple[Expr, ...]
    ) -> RowAccess | None:
        viewed = _view(self._body, scatter.source)
        version = viewed.whole
        if assign is not None:
            before = self._copied(assign.source, self._versions[assign.result] + 1)
            if before is not self._copied(version, self._versions[assign.result] + 1):
                return None
            part = viewed.part
            if (assign.starts, assign.steps) != (part.starts, part.steps):
                return None
            if assign.value.shape != part.shape:
                return None
        elif not viewed.is_whole:
            return None
        order = viewed.order
        if list(order[1:]) != sorted(order[1:]) or not viewed.is_whole_along(0):
            return None
        row, along = scatter.value, viewed.axis(0)
        every = (*viewed.exprs, *exprs)
        return RowAccess(version, viewed.part, along, scatter.index, row, every)


@node
class _View:
    """A part of ``whole``; axis k of the view is the ``order[k]``-th that is kept."""

    whole: TensorView
    part: RowPart
    order: tuple[int, ...]
    exprs: tuple[Expr, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it has all elements."""
        return not self.part.dropped and self.part.shape == self.whole.shape

    def axis(self, number: int) -> int:
        """Return the axis of the whole that axis ``number`` runs along."""
        dropped = self.part.dropped
        kept = [k for k in range(self.whole.ndim) if k not in dropped]
        return kept[self.order[number]]

    def is_whole_along(self, number: int) -> bool:
        """Tell whether an index along axis ``number`` is one along the whole's."""
        part, k = self.part, self.axis(number)
        is_from_front = part.starts[k] is sc.const(0) and part.steps[k] == 1
        return is_from_front and part.axes[k].extent is self.whole.shape[k]


def _view(body: Fusion, tensor: TensorView) -> _View:
    """Return what ``tensor`` is a view of: a slice, squeezed, and permuted."""
    order: tuple[int, ...] = tuple(range(tensor.ndim))
    exprs: list[Expr] = []
    dropped: tuple[int, ...] = ()
    expr = body.definition[tensor]
    if isinstance(expr, Permute):
        order, tensor = expr.order, expr.source
        exprs.append(expr)
        expr = body.definition[tensor]
    if isinstance(expr, Squeeze):
        dropped, tensor = expr.axes, expr.source
        exprs.append(expr)
        expr = body.definition[tensor]
    if isinstance(expr, Slice):
        part = RowPart(expr.starts, expr.steps, expr.result.axes, dropped)
        return _View(expr.source, part, order, (*exprs, expr))
    part = replace(_whole(tensor).part, dropped=dropped)
    return _View(tensor, part, order, tuple(exprs))


def _whole(tensor: TensorView) -> _View:
    zeros = (sc.const(0),) * tensor.ndim
    part = RowPart(zeros, (1,) * tensor.ndim, tensor.axes, ())
    return _View(tensor, part, tuple(range(tensor.ndim)), ())


def reads_of(body: Fusion, history: History, number: int) -> list[RowAccess] | None:
    """Return the rows that are read of all versions; None if more than rows are."""
    versions = history.versions
    others = (t for k, t in enumerate(body.outputs) if k != number)
    if any(t in versions for t in others):
        return None
    own = {t for e in history.exprs for t in results(e)}
    found: list[RowAccess] = []
    for tensor in {**versions, **dict.fromkeys(_in_order(body, own))}:
        for expr in body.users[tensor]:
            if expr in history.exprs:
                continue
            rows = _rows_read(body, history, expr)
            if rows is None:
                return None
            found += rows
    return found


def _in_order(body: Fusion, tensors: set[TensorView]) -> list[TensorView]:
    return [t for e in body.exprs for t in results(e) if t in tensors]


def _rows_read(body: Fusion, history: History, expr: Expr) -> list[RowAccess] | None:
    """Return the rows that are read through ``expr``: a view of a version, or a row."""
    if isinstance(expr, Take):
        read = _taken(body, history, expr)
        return None if read is None else [read]
    if not isinstance(expr, (Slice, Squeeze)) or expr.result in body.outputs:
        return None
    found: list[RowAccess] = []
    for user in body.users[expr.result]:
        if isinstance(user, Scatter) and user.source is not expr.result:
            return None  # it is a value that is put somewhere
        if user in history.exprs:
            continue
        rows = _rows_read(body, history, user)
        if rows is None:
            return None
        found += rows
    return found


def _taken(body: Fusion, history: History, take: Take) -> RowAccess | None:
    source, versions = take.source, history.versions
    viewed = _whole(source) if source in versions else _view(body, source)
    if take.along or take.index.ndim or viewed.whole not in versions:
        return None
    if viewed.order != tuple(range(len(viewed.order))):
        return None
    if not viewed.is_whole_along(take.axis):
        return None
    along, exprs = viewed.axis(take.axis), (*viewed.exprs, take)
    return RowAccess(viewed.whole, viewed.part, along, take.index, take.result, exprs)
