# SPDX-License-Identifier: Apache-2.0
"""How many bytes a fusion must move, and how many its operations would one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeGuard

from nfuser.compiler.ir.base import node, value
from nfuser.compiler.ir.expr import (
    FOLDING,
    VIEWS,
    Argument,
    Constant,
    FromScalar,
    Iota,
    Pointwise,
    Reduce,
    Remap,
    results,
    sources,
)
from nfuser.compiler.ir.point_op import CAST, COPY

if TYPE_CHECKING:
    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.schedule.facts.facts import Facts


@value
class Traffic:
    """Bytes read and written."""

    reads: int
    writes: int

    @property
    def total(self) -> int:
        """All bytes that move."""
        return self.reads + self.writes

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.reads + other.reads, self.writes + other.writes)


NOTHING = Traffic(0, 0)


def elements(tensor: TensorView, facts: Facts) -> int:
    """Return how many elements ``tensor`` has in memory: stretched axes have one."""
    shape = [facts.size(extent) for extent in tensor.shape]
    layout = facts.layouts.get(tensor)
    if layout is not None and 0 not in shape:
        pairs = zip(shape, layout.strides, strict=True)
        shape = [n if stride else 1 for n, stride in pairs]
    return math.prod(shape)


def size_of(tensor: TensorView, facts: Facts) -> int:
    """Return the bytes of ``tensor``."""
    return elements(tensor, facts) * tensor.dtype.itemsize


def fused(fusion: Fusion, facts: Facts) -> Traffic:
    """Return what one kernel must move: what it needs of each input, and its outputs.

    What a gather or a slice leaves out is not read; where it is unknown how much that
    is, this is an upper bound.
    """
    needed = dict.fromkeys(fusion.definition, 0)
    needed |= {t: elements(t, facts) for t in fusion.outputs}
    for expr in reversed(fusion.exprs):
        asked = max(needed[t] for t in results(expr))
        takes_all = isinstance(expr, FOLDING)
        for source in sources(expr) if asked else ():
            whole = elements(source, facts)
            some = whole if takes_all else needed[source] + asked
            needed[source] = min(whole, some)
    given = [a.result for a in fusion.arguments if not a.by_value]
    reads = sum(needed[t] * t.dtype.itemsize for t in given)
    return Traffic(reads, sum(size_of(t, facts) for t in dict.fromkeys(fusion.outputs)))


@node
class Unfused:
    """The operations of a fusion that would each run by itself, and what they move."""

    operations: tuple[Expr, ...]
    traffic: Traffic


def unfused(fusion: Fusion, facts: Facts) -> Unfused:
    """Return what moves if each operation reads its operands and writes its result.

    As in NumPy a view costs nothing, nor does an array that is returned as it is; and
    what an operation converts for itself alone goes through no array.
    """
    counter = _Counter(fusion, facts)
    operations = [e for e in fusion.exprs if not counter.is_free(e)]
    return Unfused(tuple(operations), sum(map(counter.traffic, operations), NOTHING))


class _Counter:
    def __init__(self, fusion: Fusion, facts: Facts) -> None:
        self.fusion = fusion
        self.facts = facts
        self.is_array: dict[TensorView, bool] = {}
        for expr in fusion.exprs:
            reads_one = any(self.is_array[t] for t in sources(expr))
            begins = isinstance(expr, Iota) or (
                isinstance(expr, Argument) and not expr.by_value
            )
            for tensor in results(expr):
                self.is_array[tensor] = begins or reads_one or tensor.ndim > 0

    def is_free(self, expr: Expr) -> bool:
        """Tell whether ``expr`` computes numbers on the host, or gives a view."""
        if isinstance(expr, Argument | Constant | FromScalar):
            return True
        if not self.is_array[results(expr)[0]]:
            return True
        return self._is_view(expr) or self._is_return(expr) or self._is_inside(expr)

    def _is_view(self, expr: Expr) -> bool:
        is_view = isinstance(expr, VIEWS) and not isinstance(expr, Remap)
        return is_view and self.is_array[sources(expr)[0]]

    def _is_return(self, expr: Expr) -> bool:
        """Tell whether ``expr`` makes a result of its own of what NumPy returns."""
        return is_copy(expr) and expr.result in self.fusion.outputs

    def _is_inside(self, expr: Expr) -> bool:
        """Tell whether one operation of the same line converts an operand so."""
        if not (isinstance(expr, Pointwise) and expr.op is CAST):
            return False
        users = self.fusion.users[expr.result]
        if len(users) != 1 or expr.result in self.fusion.outputs:
            return False
        line = results(users[0])[0].source
        return isinstance(users[0], Pointwise | Reduce) and line == expr.result.source

    def traffic(self, expr: Expr) -> Traffic:
        """Return what ``expr`` alone moves."""
        read = dict.fromkeys(t for t in sources(expr) if self.is_array[t])
        most = sum(size_of(t, self.facts) for t in results(expr))
        gathers = not isinstance(expr, (Pointwise, *FOLDING))
        reads = 0
        for tensor in read:
            n, itemsize = self._held(tensor)
            if gathers:
                n = min(n, sum(elements(t, self.facts) for t in results(expr)))
            reads += n * itemsize
        return Traffic(reads, most)

    def _held(self, tensor: TensorView) -> tuple[int, int]:
        """Return how many elements are read for ``tensor``, and the bytes of one."""
        n = elements(tensor, self.facts)
        expr = self.fusion.definition[tensor]
        while self._is_view(expr) or self._is_inside(expr):
            tensor = sources(expr)[0]
            n = min(n, elements(tensor, self.facts))
            expr = self.fusion.definition[tensor]
        return n, tensor.dtype.itemsize


def is_copy(expr: Expr) -> TypeGuard[Pointwise]:
    """Tell whether ``expr`` gives what it reads in memory of its own, laid out alike.

    What users copy is a copy in C order, unless they ask for another.
    """
    return isinstance(expr, Pointwise) and expr.op is COPY
