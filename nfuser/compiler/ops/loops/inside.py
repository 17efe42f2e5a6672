# SPDX-License-Identifier: Apache-2.0
"""Elements that are there in all turns of a loop, and of the loops around it.

Nobody has to look for them: what is read is read as it is, and what is written cannot
fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Called,
    Expr,
    Loop,
    Pointwise,
    Scatter,
    Take,
    results,
)
from nfuser.compiler.ir.fusion import Fusion
from nfuser.compiler.ir.point_op import COPY
from nfuser.compiler.ir.scalars.functions import less, minimum
from nfuser.compiler.ops.loops.index_ranges import WORD, Range, Ranges
from nfuser.compiler.ops.python_integers import WITHIN, within
from nfuser.compiler.ops.shapes.scatter import indices_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.builder import Builder


def writing_inside(b: Builder, loop: Loop) -> Loop:
    """Let no scatter look for places that are there in each turn, by its number."""

    def change(expr: Expr, ranges: Ranges) -> Expr:
        is_open = isinstance(expr, Scatter) and not (expr.inside or expr.complaint)
        if not is_open or not isinstance(expr, Scatter):
            return expr
        extents = expr.source.shape[: expr.lead]
        indices = indices_of(ranges.definition, expr.index, extents)
        if indices is None:
            return expr
        found = [ranges.of(t) for t in indices]
        for known, extent in zip(found, extents, strict=True):
            if known is None or not _is_there(b, known, extent, from_end=True):
                return expr
        return replace(expr, inside=True) if _is_held(b, ranges) else expr

    return _Inside(change).loop(loop, around(b))


def reading_inside(b: Builder, loop: Loop) -> Loop:
    """Let kernels look for no index from the end where turns count inside an axis."""

    def change(expr: Expr, ranges: Ranges) -> Expr:
        if not isinstance(expr, Take) or expr.inside or expr.along:
            return expr
        is_inside = is_read_inside(b, expr, ranges)
        return replace(expr, inside=True) if is_inside else expr

    return _Inside(change).loop(loop, around(b))


def fitting_inside(b: Builder, loop: Loop) -> Loop:
    """Let nobody look at integers of Python's that a dtype holds in each turn."""

    def change(expr: Expr, ranges: Ranges) -> Expr:
        if not isinstance(expr, Called) or expr.name != WITHIN:
            return expr
        known = ranges.of(expr.operands[0])
        if known is None or not all(b.ask(x, usual=1) for x in within(expr, known)):
            return expr
        copied = Pointwise(COPY, expr.operands, expr.result)
        return copied if _is_held(b, ranges) else expr

    return _Inside(change).loop(loop, around(b))


def is_read_inside(
    b: Builder,
    read: Take,
    ranges: Ranges,
    *,
    where: TensorView | None = None,
    from_end: bool = False,
) -> bool:
    """Tell whether each turn reads an element that is there, counted from the front.

    A turn in which ``where`` does not hold reads it for nothing.
    """
    known, extent = ranges.of(read.index), read.source.shape[read.axis]
    low, high = known or (None, None)
    if where is not None:
        low = ranges.limit(where, read.index, up=False) if low is None else low
        limit = ranges.limit(where, read.index, up=True)
        if limit is not None:
            high = limit if high is None else minimum(high, limit)
    if low is None or high is None:
        return False
    return _is_there(b, (low, high), extent, from_end=from_end) and _is_held(b, ranges)


def has_elements(b: Builder, shape: Sequence[Scalar]) -> bool:
    """Tell whether arrays of this shape have elements, in all calls."""
    return _holds(b, *(less(0, extent) for extent in shape))


def _is_there(
    b: Builder, known: Range, extent: Scalar, *, from_end: bool = False
) -> bool:
    """Tell whether all numbers from one to another name elements in all calls."""
    low, high = known
    least = low + extent if from_end else low
    return _holds(b, less(-1, least), less(high, extent))


def _is_held(b: Builder, ranges: Ranges) -> bool:
    """Tell whether 64 bits hold all that is compared, in all calls."""
    ends = ((less(-WORD, x), less(x, WORD)) for x in ranges.compared)
    return all(_holds(b, *wanted) for wanted in ends)


def _holds(b: Builder, *wanted: Scalar) -> bool:
    return all(b.today(c) is not None and bool(b.ask(c, usual=1)) for c in wanted)


def around(b: Builder) -> Ranges:
    """Return what is known where a loop is written down."""
    return Ranges({t: e for e in b.exprs for t in results(e)}, {})


class _Inside:
    """Changes expressions of a loop, and of the loops inside of it."""

    def __init__(self, change: Callable[[Expr, Ranges], Expr]) -> None:
        self._change = change

    def loop(self, loop: Loop, around: Ranges) -> Loop:
        """Return ``loop`` changed; ``around`` is what is known where it stands."""
        body = loop.body
        ranges = around.inside(loop)
        exprs = [self._changed(expr, ranges) for expr in body.exprs]
        if exprs == list(body.exprs):
            return loop
        return replace(loop, body=Fusion(body.name, exprs, body.outputs))

    def _changed(self, expr: Expr, ranges: Ranges) -> Expr:
        if not isinstance(expr, Loop):
            return self._change(expr, ranges)
        return self.loop(expr, ranges)
