# SPDX-License-Identifier: Apache-2.0
"""What is kept of a program for the program that goes back through it.

Each value can be kept, at the cost of its bytes, or computed again of others. Products
of matrices, sorts, loops and folds of much into little are not: who needs them keeps
them, or what comes after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.base import value
from nfuser.compiler.ir.expr import (
    LIBRARY_CALLS,
    Argument,
    Loop,
    Reduce,
    results,
    sources,
)
from nfuser.compiler.transforms.partition.network import ENDLESS, FlowNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.fusion import Fusion
    from nfuser.compiler.ir.tensor import TensorView

_DEAR = (*LIBRARY_CALLS, Loop)
_MOVED = 16  # what a byte that is read or written costs, where one that is held costs 1


@value
class Choice:
    """A tensor that is kept, and why."""

    tensor: TensorView
    why: str


def cut(
    fusion: Fusion,
    there: Collection[TensorView],
    results_there: Sequence[TensorView],
    size: Callable[[TensorView], int | None],
    told: Mapping[TensorView, bool] | None = None,
    folds_much: Callable[[Expr], bool] = lambda _: False,
    *,
    arguments_stay: bool = True,
) -> tuple[Choice, ...]:
    """Return what the way back reads of the tensors ``there``, of the way there.

    ``fusion`` gives the derivatives; ``size`` counts the bytes of a tensor, None if it
    is not to be kept. An argument, and a result of the way there, is written by others:
    to keep it costs a read. Anything else is written, too. Of what moves as many bytes
    it is what holds fewest that is kept; arguments are not held for the way back alone
    where they stay in memory anyway. What is ``told`` is kept, or computed again,
    whatever it costs. An expression that ``folds_much`` is not computed again where it
    can be kept: that would read all that it folds once more.
    """
    known, told = set(there), told or {}
    read = _read_back(fusion, known)
    graph = FlowNetwork()
    inside: dict[TensorView, tuple[int, int]] = {}
    order = _needed(fusion, known, read)
    for tensor in order:
        expr = fusion.definition[tensor]
        inside[tensor] = graph.node(), graph.node()
        begin, end = inside[tensor]
        is_again = told.get(tensor) is False
        cost = _cost(tensor, expr, results_there, size(tensor), arguments_stay)
        graph.edge(begin, end, ENDLESS if is_again else cost)
        is_asked = told.get(tensor, False) and cost < ENDLESS
        is_fold = folds_much(expr) and cost < ENDLESS
        is_dear = (isinstance(expr, _DEAR) or is_fold) and not is_again
        if is_asked or is_dear or _is_array(expr):
            graph.edge(0, begin, ENDLESS)
        for source in sources(expr):
            graph.edge(inside[source][1], begin, ENDLESS)
    for tensor in read:
        graph.edge(inside[tensor][1], 1, ENDLESS)
    reached = graph.reached()
    return tuple(
        Choice(t, _why(t, fusion.definition, results_there, told.get(t, False)))
        for t in order
        if inside[t][0] in reached and inside[t][1] not in reached
    )


def _read_back(fusion: Fusion, known: set[TensorView]) -> list[TensorView]:
    """Return what the way back reads, or gives, of the way there."""
    back = (e for e in fusion.exprs if known.isdisjoint(results(e)))
    found = [t for e in back for t in sources(e) if t in known]
    found += [t for t in fusion.outputs if t in known]
    return list(dict.fromkeys(found))


def _needed(
    fusion: Fusion, known: set[TensorView], read: Sequence[TensorView]
) -> list[TensorView]:
    """Return ``read``, and all that it is computed of, definitions first."""
    wanted = set(read)
    for expr in reversed(fusion.exprs):
        if not wanted.isdisjoint(results(expr)):
            wanted.update(sources(expr))
    return [t for t in fusion.definition if t in wanted and t in known]


def _is_array(expr: Expr) -> bool:
    return isinstance(expr, Argument) and not expr.by_value


def _cost(
    tensor: TensorView,
    expr: Expr,
    results_there: Sequence[TensorView],
    size: int | None,
    arguments_stay: bool,
) -> int:
    """Return what it costs to keep ``tensor``; of equals, an argument is kept."""
    if _is_array(expr):
        size = size or 0
        return _MOVED * size + (0 if arguments_stay else size) + 1
    if size is None:
        return ENDLESS
    is_there = tensor in results_there
    return _MOVED * size + size + 2 if is_there else 2 * _MOVED * size + size + 3


def _why(
    tensor: TensorView,
    definition: Mapping[TensorView, Expr],
    results_there: Sequence[TensorView],
    is_asked: bool,
) -> str:
    expr = definition[tensor]
    if _is_array(expr):
        return "an argument, which the backward pass reads"
    if is_asked:
        return "what a policy keeps"
    if tensor in results_there:
        return "a result, which is there anyway"
    if isinstance(expr, Loop):
        return "a loop, which does not run twice"
    if isinstance(expr, LIBRARY_CALLS):
        return f"a {expr.noun}, which is not computed twice"
    if isinstance(expr, Reduce):
        return "a fold, which does not read its source twice"
    return "fewer bytes than what it is computed of"
