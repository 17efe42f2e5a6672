# SPDX-License-Identifier: Apache-2.0
"""What a piece computes again, as that takes less than to store and to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    FOLDING,
    LIBRARY_CALLS,
    VIEWS,
    Argument,
    Assign,
    Constant,
    FromScalar,
    Iota,
    Loop,
    Permute,
    Pointwise,
    results,
    sources,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

CHEAP = 8  # expressions that are rather computed twice than stored and read
_STEPS = 2  # operations on two small arrays, which are rather computed twice


def with_cheap_producers(
    exprs: list[Expr], fusion: Fusion, written: AbstractSet[TensorView]
) -> list[Expr]:
    """Return ``exprs`` with what is rather computed again than stored and read.

    Nothing is computed again of the arrays in ``written``; beside a loop, only views.
    """
    if any(isinstance(e, Assign) for e in exprs):
        return exprs
    rank = max(_rank(t) for e in exprs for t in results(e))
    reads = _Producers(fusion, written, rank)
    own = dict.fromkeys(exprs)
    is_library_call = any(isinstance(e, LIBRARY_CALLS) for e in exprs)
    takes_views = is_library_call or any(isinstance(e, Loop) for e in exprs)
    read = dict.fromkeys(t for e in exprs for t in sources(e))
    for tensor in read:
        producers = reads.cheap(tensor)
        only_views = all(isinstance(p, VIEWS) for p in producers)
        if is_library_call:
            own.update(dict.fromkeys(reads.transposes(tensor)))
        if takes_views and not only_views:
            continue  # it reads arrays, however cheap they are to compute
        if not takes_views and fusion.definition[tensor] not in own:
            producers = producers or reads.beside(tensor, read)
        own.update(dict.fromkeys(producers))
    return list(own)


class _Producers:
    """What computes tensors of a fusion; nothing of the arrays in ``written``.

    Who reads them has loops along ``rank`` axes.
    """

    def __init__(
        self, fusion: Fusion, written: AbstractSet[TensorView], rank: int
    ) -> None:
        self.fusion = fusion
        self.written = written
        self.rank = rank

    def transposes(self, tensor: TensorView) -> list[Expr]:
        """Return what only turns the matrices of ``tensor``, read as they then lie.

        A product of a matrix and its own transpose is half of the work, where the
        library sees that both are one array.
        """
        found: list[Expr] = []
        expr = self.fusion.definition[tensor]
        while isinstance(expr, Permute) and _keeps_matrices(expr):
            if expr.source in self.written:
                break
            found.append(expr)
            expr = self.fusion.definition[expr.source]
        return found

    def beside(
        self, tensor: TensorView, read: Mapping[TensorView, object]
    ) -> list[Expr]:
        """Return what computes ``tensor`` from others that are ``read``, if cheap."""
        closure: dict[Expr, None] = {}
        stack = [self.fusion.definition[tensor]]
        while stack:
            expr = stack.pop()
            if expr in closure:
                continue
            if not isinstance(expr, Pointwise) or _is_dear(expr):
                return []
            if not self.written.isdisjoint(expr.operands):
                return []
            closure[expr] = None
            if len(closure) > CHEAP:
                return []
            parents = (t for t in expr.operands if t not in read)
            found = (self.fusion.definition[t] for t in parents)
            stack += [e for e in found if not is_free(e) or results(e)[0].ndim]
        return list(closure)

    def cheap(self, tensor: TensorView) -> list[Expr]:
        """Return what computes ``tensor`` from at most one array, if that is cheap.

        From two, if it is stretched along an axis of the loops that read it: such
        arrays are small, and a kernel of its own takes longer than what it does.
        """
        closure: dict[Expr, None] = {}
        leaves: dict[Expr, None] = {}
        stack = [self.fusion.definition[tensor]]
        while stack:
            expr = stack.pop()
            if is_free(expr):
                leaves[expr] = None
                continue
            if expr in closure:
                continue
            closure[expr] = None
            if len(closure) > CHEAP or _is_dear(expr):
                return []
            if not self.written.isdisjoint(sources(expr)):
                return []
            stack.extend(self.fusion.definition[t] for t in sources(expr))
        arrays = [e for e in leaves if isinstance(e, Argument) and e.result.ndim]
        steps = sum(isinstance(e, Pointwise) for e in closure)
        is_small = steps <= _STEPS and _rank(tensor) < self.rank
        most = 2 if is_small else 1
        return list(closure) if sum(not a.by_value for a in arrays) <= most else []


def _rank(tensor: TensorView) -> int:
    return sum(not axis.is_broadcast for axis in tensor.axes)


def _keeps_matrices(expr: Permute) -> bool:
    """Tell whether the last two axes stay the last two, as libraries read matrices."""
    first = len(expr.order) - 2
    return first >= 0 and set(expr.order[first:]) == {first, first + 1}


def _is_dear(expr: Expr) -> bool:
    if isinstance(expr, Pointwise):
        return expr.op.is_costly
    return isinstance(expr, (*FOLDING, Loop))


def is_free(expr: Expr) -> bool:
    """Tell whether ``expr`` takes no kernel: arguments, numbers, indices."""
    return isinstance(expr, (Argument, Constant, FromScalar, Iota))
