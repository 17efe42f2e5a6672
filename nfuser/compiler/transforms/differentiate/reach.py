# SPDX-License-Identifier: Apache-2.0
"""Which tensors of a program depend on its inputs so that there is a derivative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nfuser.compiler.ir.expr import (
    Expr,
    Pointwise,
    Reduce,
    ReduceOp,
    Scatter,
    Sort,
    Take,
    results,
    sources,
)
from nfuser.compiler.transforms.differentiate.rules.casts import KINDS
from nfuser.compiler.transforms.differentiate.rules.choices import CHOICES
from nfuser.compiler.transforms.differentiate.rules.slopes import FLAT, STEADY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from nfuser.compiler.ir.tensor import TensorView
    from nfuser.compiler.ops.customs import Custom


def extend(
    reached: dict[TensorView, bool],
    program: Sequence[Expr],
    stopped: AbstractSet[TensorView],
    customs: Mapping[TensorView, Custom],
) -> dict[TensorView, bool]:
    """Add to ``reached`` what ``program`` makes of it.

    The truth says whether a slope on the way may be no finite number.
    """
    for expr in program:
        custom = customs.get(results(expr)[0])
        followed = _followed(expr) if custom is None else custom.inputs
        given = [t for t in followed if t in reached]
        if not given:
            continue
        wild = any(reached[t] for t in given) or not is_steady(expr)
        for tensor in results(expr):
            is_constant = tensor in reached or tensor in stopped
            if not is_constant and (tensor.dtype.is_float or tensor.dtype.is_complex):
                reached[tensor] = wild
    return reached


def _followed(expr: Expr) -> tuple[TensorView, ...]:
    """Return the sources in which ``expr`` has a derivative."""
    match expr:
        case Pointwise(op) if op.name in FLAT:
            return ()
        case Take(source):
            return (source,)
        case Scatter(_, source, _, value):
            return (source, value)
        case Sort(_, _, _, True):
            return ()
        case _:
            return sources(expr)


def is_steady(expr: Expr) -> bool:
    """Tell whether the slopes of ``expr`` are finite numbers for all operands."""
    match expr:
        case Pointwise(op):
            return op.name in STEADY or op.name in CHOICES or op.name in KINDS
        case Reduce(op):
            return op is ReduceOp.SUM
        case _:
            return True
