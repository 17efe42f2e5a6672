# SPDX-License-Identifier: Apache-2.0
"""What an assigned value reads of the array that it is assigned to, and where."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import nfuser.compiler.ir.scalars.symbols as scalar_symbols
from nfuser.compiler.domains.maps import Point, source_points
from nfuser.compiler.ir.expr import (
    FOLDING,
    VIEWS,
    Loop,
    Pointwise,
    Scatter,
    results,
    sources,
)
from nfuser.compiler.ir.fusion import remembered
from nfuser.compiler.ir.scalars import scalar as sc
from nfuser.compiler.ir.scalars import scalar_walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nfuser.compiler.ir.expr import Assign, Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.scalars.scalar import Scalar
    from nfuser.compiler.ir.tensor import TensorView


def computed_in_place(
    fusion: Fusion, assign: Assign, *, or_apart: bool = False
) -> set[Expr]:
    """Return what computes each element of the value at that element's own place.

    Such an expression may read the array that is assigned to: of an element it reads
    what is about to be overwritten by it, and nobody else needs it any more. If that is
    said, it may read it ``or_apart``, in rows of which none is overwritten.
    """
    made = fusion.definition[assign.value]
    if isinstance(made, Scatter) and made.source is assign.source and assign.is_whole:
        return {made}
    return _Walk(fusion, assign, or_apart).run()


class _Walk:
    """From the value back to what it reads, the last expression first."""

    def __init__(self, fusion: Fusion, assign: Assign, or_apart: bool) -> None:
        self._fusion = fusion
        self._or_apart = or_apart
        self._order = _order(fusion)
        self._assign = assign
        own = [
            sc.const(0) if axis.is_broadcast else scalar_symbols.place(k, axis.extent)
            for k, axis in enumerate(assign.value.axes)
        ]
        jumps = zip(assign.starts, own, assign.steps, strict=True)
        self._written = tuple(start + at * step for start, at, step in jumps)
        self._points: dict[TensorView, Point | None] = {assign.value: Point(tuple(own))}
        self._found: set[Expr] = set()
        self._waiting = [-self._order[fusion.definition[assign.value]]]

    def run(self) -> set[Expr]:
        seen = set(self._waiting)
        while self._waiting:
            expr = self._fusion.exprs[-heappop(self._waiting)]
            if not isinstance(expr, (Pointwise, *VIEWS)) or not self._is_private(expr):
                continue
            point = self._points[expr.result]
            read = [] if point is None else source_points(expr, point)
            if point is None or not all(self._is_own(t, at) for t, at in read):
                continue
            self._found.add(expr)
            for tensor, at in read:
                known = self._points.setdefault(tensor, at)
                if known != at:
                    self._points[tensor] = None  # read at several places
                number = -self._order[self._fusion.definition[tensor]]
                if number not in seen:
                    seen.add(number)
                    heappush(self._waiting, number)
        return self._found

    def _is_private(self, expr: Expr) -> bool:
        """Tell whether nothing else reads what ``expr`` gives."""
        (tensor,) = results(expr)
        users = self._fusion.users[tensor]
        if tensor in self._fusion.outputs or not users:
            return False
        return all(user is self._assign or user in self._found for user in users)

    def _is_own(self, tensor: TensorView, point: Point) -> bool:
        """Tell whether a read is of another array, or of the element to overwrite."""
        if tensor is not self._assign.source:
            return True
        pairs = list(zip(point.index, self._written, tensor.axes, strict=True))
        if self._or_apart and any(_are_apart(a, b) for a, b, _ in pairs):
            return True
        return all(a is b or axis.is_broadcast for a, b, axis in pairs)


def _are_apart(read: Scalar, written: Scalar) -> bool:
    """Tell whether two indices are the same in all elements, and not one index."""
    gap = read - written
    one_each = not scalar_walk.loops_in(read) and not scalar_walk.loops_in(written)
    return one_each and isinstance(gap, sc.Const) and gap.value != 0


def reads_elsewhere(fusion: Fusion, assign: Assign, own: set[Expr]) -> bool:
    """Tell whether a kernel of the value would read other elements that it overwrites.

    ``own`` is what is computed in place. What is folded first is read before.
    """
    seen: set[Expr] = set()
    stack = [fusion.definition[assign.value]]
    while stack:
        expr = stack.pop()
        if expr in seen or isinstance(expr, (*FOLDING, Loop)):
            continue
        seen.add(expr)
        if assign.source in sources(expr) and expr not in own:
            return True
        stack += [fusion.definition[t] for t in sources(expr) if t is not assign.source]
    return False


@remembered
def _order(fusion: Fusion) -> Mapping[Expr, int]:
    return {e: k for k, e in enumerate(fusion.exprs)}
