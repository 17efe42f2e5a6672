# SPDX-License-Identifier: Apache-2.0
"""What is a sum of arrays: its derivative reads no element of any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import VIEWS, Argument, Pointwise, results, sources
from nfuser.compiler.transforms.differentiate.rules.slopes import STEADY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nfuser.compiler.ir.expr import Expr
    from nfuser.compiler.ir.tensor import TensorView


def sums_of_arrays(exprs: Iterable[Expr]) -> frozenset[TensorView]:
    """Return what ``exprs`` compute as sums of arrays, which may be moved and weighted.

    Weights are computed of no array: numbers, and what is drawn of a key, which may be
    one integer in memory.
    """
    found: set[TensorView] = set()
    free: set[TensorView] = set()
    for expr in exprs:
        is_array = isinstance(expr, Argument) and not _is_number(expr)
        if not is_array and free.issuperset(sources(expr)):
            free.update(results(expr))
        elif is_array or _adds(expr, found, free):
            found.update(results(expr))
    return frozenset(found)


def _is_number(expr: Argument) -> bool:
    """Tell whether an argument is one number that no derivative goes back to."""
    is_integer = not (expr.result.dtype.is_float or expr.result.dtype.is_complex)
    return expr.by_value or (is_integer and not expr.result.ndim)


def _adds(expr: Expr, found: set[TensorView], free: set[TensorView]) -> bool:
    """Tell whether ``expr`` makes sums of what is ``found`` to be sums."""
    given = sources(expr)
    held = [k for k, t in enumerate(given) if t not in free]
    if not all(given[k] in found for k in held):
        return False
    return isinstance(expr, VIEWS) or (
        isinstance(expr, Pointwise) and _weighs(expr.op.name, held)
    )


def _weighs(name: str, places: Sequence[int]) -> bool:
    """Tell whether an operation is linear in all its operands at ``places``."""
    match name:
        case "multiply":
            return len(places) == 1
        case "divide":
            return list(places) == [0]
        case "select":
            return 0 not in places
        case _:
            return name == "cast" or name in STEADY
