# SPDX-License-Identifier: Apache-2.0
"""What the expressions of a body write into arrays that the caller of all may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    VIEWS,
    Argument,
    Assign,
    Loop,
    Pointwise,
    Scatter,
    Slice,
    Take,
    results,
)
from nfuser.compiler.ir.point_op import SELECT, is_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nfuser.compiler.ir.expr import Expr, Home
    from nfuser.compiler.ir.tensor import TensorView


def seen_writes(exprs: Iterable[Expr]) -> set[Expr]:
    """Return what writes into arrays of the caller's, who sees them if a turn fails.

    Loops that do are such, too. What puts a part back that was written, or all of it,
    is none.
    """
    home: dict[TensorView, Home] = {}
    done: set[TensorView] = set()
    found: set[Expr] = set()
    for expr in exprs:
        match expr:
            case Argument(home=own) if own is not None:
                home[expr.result] = own
            case Assign(source, value) | Scatter(source=source, value=value):
                if source not in home:
                    continue
                if value not in done or home[value] != home[source]:
                    found.add(expr)
                home[expr.result] = home[source]
                done.add(expr.result)
            case Loop():
                lasting = [(x, left) for x, _, left in expr.pairs if x in home]
                if lasting:
                    found.add(expr)
                home |= {left: home[x] for x, left in lasting}
                done |= {left for _, left in lasting}
            case _:
                given = _same_array(expr)
                homes = {home.get(t) for t in given}
                (own,) = homes if len(homes) == 1 else (None,)
                if own is not None:
                    home[results(expr)[0]] = own
                    if not (isinstance(expr, (Slice, Take)) or done.isdisjoint(given)):
                        done.add(results(expr)[0])
    return found


def _same_array(expr: Expr) -> Sequence[TensorView]:
    """Return the arrays of which ``expr`` gives elements as they are."""
    match expr:
        case Pointwise(op, operands) if is_copy(op) or op is SELECT:
            return operands[-2:] if op is SELECT else operands
        case _ if isinstance(expr, (Take, *VIEWS)):
            return (expr.source,)
        case _:
            return ()
